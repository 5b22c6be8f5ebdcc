#include "cli/commands/from_published.h"

#include <filesystem>

#include <fmt/format.h>

#include "calibrate/published/fit_published.h"
#include "calibrate/published/report.h"
#include "cli/output/progress.h"
#include "traces/export/atomic_file.h"

namespace ringside {
namespace {

constexpr const char* kCommand = "ringside calibrate --from-published --out model/catalog/published";

/// A list of objects with one on each line, so that a change of a figure is a change of a line.
std::string lines(const Json& list, const std::string& indent) {
    std::string out = "[";
    for (std::size_t i = 0; i < list.size(); ++i) out += (i == 0 ? "\n" : ",\n") + indent + "  " + list[i].dump();
    return out + (list.empty() ? "]" : "\n" + indent + "]");
}

std::string head(const char* format) { return fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": 1,\n  \"command\": \"{}\",\n", format, kCommand); }

std::string figuresFile(const PublishedFigures& figures) {
    const Json json = toJson(figures);
    return head("ringside-published-figures") + "  \"figures\": " + lines(json["figures"], "  ") + ",\n  \"collectives\": " + lines(json["collectives"], "  ") + "\n}\n";
}

std::string foldsFile(const std::vector<Fold>& folds) {
    std::string out = head("ringside-published-folds") + "  \"folds\": [";
    for (std::size_t f = 0; f < folds.size(); ++f) {
        PublishedFigures plain = folds[f].figures;
        for (PublishedFigure& one : plain.figures) one.figure.source.clear();  // the sources are those that are not held out
        const Json json = toJson(plain);
        out += fmt::format("{}\n    {{\n      \"held_out\": {},\n      \"figures\": {},\n      \"collectives\": {}\n    }}", f == 0 ? "" : ",", Json(folds[f].heldOut).dump(), lines(json["figures"], "      "),
                           lines(json["collectives"], "      "));
    }
    return out + "\n  ]\n}\n";
}

std::string text(const PublishedFit& fit, const std::string& written) {
    std::string out = fmt::format("{} constants fitted to {} measurements\n\n  {:<32} {:<16} {:>10} {:>9}  {:>6}\n", fit.constants, fit.rows, "figure", "holds for", "value", "spread %", "rows");
    for (const PublishedFigure& one : fit.figures.figures)
        out += fmt::format("  {:<32} {:<16} {:>10.4g} {:>9.1f}  {:>6}\n", one.key, one.scope, one.figure.value, one.figure.relativeSpread * 100, one.rows);
    for (const PublishedConstant& one : fit.figures.collectives) out += fmt::format("  {:<32} {:<16} {:>10.4g} {:>9.1f}\n", one.key, "collectives", one.value, one.relativeSpread * 100);
    out += "\nFolds by source\n";
    for (const Fold& fold : fit.folds) {
        std::string names;
        for (const std::string& name : fold.heldOut) names += (names.empty() ? "" : ", ") + name;
        out += fmt::format("  held out: {}\n", names);
    }
    return out + "\n" + publishedText(fit.verdict) + (written.empty() ? "" : fmt::format("\nWrote {}\n", written));
}

Json json(const PublishedFit& fit) {
    Json out = publishedJson(fit.verdict);
    out["fit"] = toJson(fit.figures);
    out["fit"]["constants"] = fit.constants;
    out["fit"]["measurements"] = fit.rows;
    out["folds"] = toJson(fit.folds);
    return out;
}

}  // namespace

void addFromPublishedFlags(Command& command, FromPublishedFlags& flags) {
    command.list("--from-published", flags.given, flags.files, "fit the figures of profiles to published measurements: those of the files, or the project's own; --out is then a directory", "FILE", "Published");
    command.choice("--folds", flags.folds, "how the fit is cross-validated: five folds of whole sources (default)", {"by-source"}, "Published");
}

Result<int> runFromPublished(const FromPublishedFlags& flags, const std::string& out, const OutputFlags& output) {
    std::error_code ignored;
    if (!out.empty() && !std::filesystem::is_directory(out, ignored)) return failure(ErrorCode::RuntimeFailure, out, "is no directory; --from-published writes figures.json and folds.json into one");
    std::vector<std::string> files = flags.files;
    if (files.empty()) {
        TRY(files, ownRecordFiles(true));
    }
    std::vector<PublishedRecord> records;
    for (const std::string& file : files) {
        TRY(std::vector<PublishedRecord> all, readRecords(file));
        for (PublishedRecord& record : all) records.push_back(std::move(record));
    }
    TRY(const Catalogs catalogs, Catalogs::builtin());
    PublishedFit fit;
    {
        Progress progress("fitting", 0, 1, output.wantsJson());
        PublishedFitOptions options;
        options.progress = [&](double share, const std::string& doing) { progress.updateShare(share, doing); };
        TRY(fit, fitPublished(records, catalogs, options));
    }
    std::string written;
    if (!out.empty()) {
        const std::filesystem::path folder = out;
        TRY_VOID(atomicWriteFile((folder / "figures.json").string(), figuresFile(fit.figures)));
        TRY_VOID(atomicWriteFile((folder / "folds.json").string(), foldsFile(fit.folds)));
        written = fmt::format("{} and {}", (folder / "figures.json").string(), (folder / "folds.json").string());
    }
    TRY_VOID(writeOutput(output, output.wantsJson() ? json(fit).dump(2) + "\n" : text(fit, written)));
    return 0;
}

}  // namespace ringside
