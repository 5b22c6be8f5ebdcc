#include "cli/commands/published.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "calibrate/published/folds.h"
#include "calibrate/published/judge.h"
#include "calibrate/published/records.h"
#include "calibrate/published/report.h"
#include "cli/output/progress.h"
#include "traces/export/atomic_file.h"

namespace ringside {
namespace {

Result<std::vector<PublishedRecord>> selected(const PublishedFlags& flags) {
    std::vector<RecordFilter> filters;
    for (const std::string& text : flags.filters) {
        TRY(RecordFilter filter, recordFilter(text));
        filters.push_back(std::move(filter));
    }
    std::vector<std::string> files = flags.files;
    if (files.empty()) {
        TRY(files, ownRecordFiles());
    }
    std::vector<PublishedRecord> records;
    for (const std::string& file : files) {
        TRY(std::vector<PublishedRecord> all, readRecords(file));
        for (PublishedRecord& record : all)
            if (matches(record, filters)) records.push_back(std::move(record));
    }
    if (records.empty() && !filters.empty()) return badInput("--filter", "no record matches; `ringside validate --published` lists families, devices and strategies");
    return records;
}

Result<void> rewriteSection(const std::string& path, const PublishedVerdict& verdict) {
    std::ifstream in(path);
    if (!in) return badInput(path, "cannot be read; expected a Markdown file with the markers of the section");
    std::stringstream text;
    text << in.rdbuf();
    TRY(const std::string document, withSection(text.str(), publishedMarkdown(verdict), path));
    return atomicWriteFile(path, document);
}

}  // namespace

void addPublishedFlags(Command& command, PublishedFlags& flags) {
    command.list("--published", flags.given, flags.files, "predict published runs, collectives and memory peaks instead: those of the files, or the project's own", "FILE", "Published");
    command.repeated("--filter", flags.filters, "only records that contain this text, or key=text (kind, class, family, device, strategy, model, source, id)", "TEXT", "Published");
    command.option("--plot", flags.plot, "draw predicted over measured into this file (SVG)", "FILE", "Published");
    command.option("--markdown", flags.markdown, "write the tables into this file, between its markers (docs/validation.md)", "FILE", "Published");
    command.flag("--csv", flags.csv, "print the rows as CSV", "Published");
}

Result<void> refusePublishedFlags(const PublishedFlags& flags) {
    const char* slip = !flags.filters.empty() ? "--filter" : !flags.plot.empty() ? "--plot" : !flags.markdown.empty() ? "--markdown" : flags.csv ? "--csv" : nullptr;
    if (slip) return failure(ErrorCode::Usage, slip, "goes with --published; give that too");
    return {};
}

Result<int> runPublished(const PublishedFlags& flags, const OutputFlags& output) {
    if (flags.csv && output.wantsJson()) return failure(ErrorCode::Usage, "--csv", "does not go with --json; leave one of them out");
    TRY(const std::vector<PublishedRecord> records, selected(flags));
    TRY(const Catalogs catalogs, Catalogs::builtin());
    PublishedVerdict verdict;
    {
        Progress progress("predicting", 0, 2 * records.size(), output.wantsJson());
        const std::vector<PublishedRun> runs = prepareRuns(records, catalogs, 0, [&](std::size_t done) { progress.update(done); });
        verdict = judgeRuns(records, runs);
        // Records of other sources are held out as they are: no fit has seen them.
        const bool seen = std::any_of(records.begin(), records.end(), [](const PublishedRecord& record) { return &heldOutFigures(record.repository) != &shippedFigures(); });
        const auto unseen = [](const PublishedRecord& record) -> const PublishedFigures& { return heldOutFigures(record.repository); };
        if (seen) addHeldOut(verdict, judgeRuns(records, runs, unseen, 0, [&](std::size_t done) { progress.update(records.size() + done); }));
    }
    if (!flags.plot.empty()) TRY_VOID(atomicWriteFile(flags.plot, publishedScatter(verdict)));
    if (!flags.markdown.empty()) TRY_VOID(rewriteSection(flags.markdown, verdict));
    const bool csv = flags.csv || output.wantsCsv();
    TRY_VOID(writeOutput(output, output.wantsJson() ? publishedJson(verdict).dump(2) + "\n" : csv ? publishedCsv(verdict) : publishedText(verdict)));
    return 0;
}

}  // namespace ringside
