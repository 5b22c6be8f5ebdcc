// ringside trace: look into a trace of PyTorch's profiler, Chrome or Ringside; write it anew; put two side by side.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/output/progress.h"
#include "cli/output/trace_text.h"
#include "traces/export/chrome_json.h"

namespace ringside {
namespace {

struct TraceFlags {
    std::string action, out, rank, failAbove;
    bool given = false, quiet = false;
    std::vector<std::string> files;
    OutputFlags output;
};

Result<ImportedTrace> open(const std::vector<std::string>& files, bool quiet) {
    Progress progress(files.size() == 1 ? "reading " + files.front() : fmt::format("reading {} files", files.size()), 0, 1000, quiet);
    ReadTraceOptions options;
    options.progress = [&](double share) { progress.updateShare(share, "read"); };
    return readTrace(files, options);
}

/// "5%", "5 %" or "5": percent.
std::optional<double> percentOf(std::string text) {
    while (!text.empty() && (text.back() == '%' || text.back() == ' ')) text.pop_back();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || !std::isfinite(value)) return std::nullopt;
    return value;
}

Result<int> inspect(const TraceFlags& flags) {
    TRY(const ImportedTrace imported, open(flags.files, flags.quiet));
    const TraceReport report = reportOf(imported);
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson() ? inspectJson(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                       : flags.output.wantsCsv() ? inspectCsv(report)
                                                                 : inspectText(report)));
    return 0;
}

Result<int> convert(const TraceFlags& flags) {
    if (flags.out.empty()) return failure(ErrorCode::Usage, "--out", "is missing; say where to write the Chrome trace");
    ChromeTraceOptions options;
    if (!flags.rank.empty()) {
        std::int64_t rank = 0;
        const auto [end, error] = std::from_chars(flags.rank.data(), flags.rank.data() + flags.rank.size(), rank);
        if (error != std::errc() || end != flags.rank.data() + flags.rank.size()) return failure(ErrorCode::Usage, "--rank", fmt::format("expected a number, found '{}'", flags.rank));
        options.rank = rank;
    }
    TRY(const ImportedTrace imported, open(flags.files, flags.quiet));
    if (options.rank) {
        const std::vector<std::int64_t> ranks = ranksOf(imported.trace);
        if (!std::binary_search(ranks.begin(), ranks.end(), *options.rank))
            return failure(ErrorCode::Usage, "--rank", fmt::format("rank {} is not in the trace; there are {} ranks, the first is {}", *options.rank, ranks.size(), ranks.empty() ? 0 : ranks.front()));
    }
    if (!imported.metadata.backend.empty()) options.backend = imported.metadata.backend;
    if (!imported.metadata.devices.empty()) {
        options.deviceName = imported.metadata.devices.front().name;
        options.deviceMemory = imported.metadata.devices.front().memory;
    }
    TRY_VOID(writeChromeTrace(imported.trace, flags.out, options));
    std::string said = fmt::format("{} slices written to {}\n", formatCount(std::ssize(imported.trace.start)), flags.out);
    for (const ImportNote& note : imported.notes.all()) said += fmt::format("  {} × {}; first in {}\n", formatCount(note.count), note.what, note.where);
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson() ? Json{{"format", "ringside-trace-conversion"}, {"version", 1}, {"out", flags.out}, {"slices", imported.trace.size()}, {"notes", imported.notes.total()}}.dump(2) + "\n" : said));
    return 0;
}

Result<int> diff(const TraceFlags& flags) {
    if (flags.files.size() != 2) return failure(ErrorCode::Usage, "", fmt::format("diff compares two traces; {} were named (several ranks: convert them into one file each first)", flags.files.size()));
    std::optional<double> limit;
    if (!flags.failAbove.empty()) {
        limit = percentOf(flags.failAbove);
        if (!limit) return failure(ErrorCode::Usage, "--fail-above", fmt::format("expected percent like 5%, found '{}'", flags.failAbove));
    }
    TRY(const ImportedTrace a, open({flags.files[0]}, flags.quiet));
    TRY(const ImportedTrace b, open({flags.files[1]}, flags.quiet));
    const TraceDiff result = diffTraces(a.trace, b.trace);
    if (result.steps.empty()) return badInput(flags.files[1], "the two traces have no step in common");
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson() ? diffJson(result, flags.files[0], flags.files[1]).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                       : flags.output.wantsCsv() ? diffCsv(result)
                                                                 : diffText(result, flags.files[0], flags.files[1])));
    if (limit && !(std::fabs(result.stepPercent()) <= *limit)) return static_cast<int>(ErrorCode::AnswerIsNo);
    return 0;
}

Result<int> runTrace(const TraceFlags& flags) {
    if (flags.action != "inspect" && flags.action != "convert" && flags.action != "diff")
        return failure(ErrorCode::Usage, "", fmt::format("unknown action '{}'; expected inspect, convert or diff", flags.action));
    if (flags.files.empty()) return failure(ErrorCode::Usage, "", fmt::format("no trace is named; give the files of trace {}", flags.action));
    const char* slip = flags.action != "convert" && !flags.out.empty() ? "--out" : flags.action != "convert" && !flags.rank.empty() ? "--rank" : flags.action != "diff" && !flags.failAbove.empty() ? "--fail-above" : nullptr;
    if (slip) return failure(ErrorCode::Usage, slip, fmt::format("does not go with trace {}", flags.action));
    if (flags.action == "convert" && flags.output.wantsCsv()) return failure(ErrorCode::Usage, "--format", "csv does not go with trace convert; take text or json");
    return flags.action == "inspect" ? inspect(flags) : flags.action == "convert" ? convert(flags) : diff(flags);
}

}  // namespace

void addTrace(CommandLine& line) {
    auto flags = std::make_shared<TraceFlags>();
    Command command = line.add("trace", "look into traces of PyTorch's profiler, Chrome or Ringside: inspect, convert, diff", [flags] { return runTrace(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside trace inspect rank0.json.gz rank1.json.gz\n"
        "  ringside trace convert rank0.json.gz rank1.json.gz --out both.json\n"
        "  ringside trace diff before.json after.json --fail-above 5%\n"
        "One file per rank; clocks are aligned by the collectives that ranks share. Exit code 1: steps differ by more than --fail-above.");
    command.required("action", flags->action, "inspect, convert or diff");
    command.list("files", flags->given, flags->files, "traces, plain or gzip-compressed", "FILE", "");
    command.option("--out", flags->out, "convert: the Chrome trace to write", "FILE", "Trace");
    command.option("--rank", flags->rank, "convert: only this rank, as PyTorch writes it", "N", "Trace");
    command.option("--fail-above", flags->failAbove, "diff: exit code 1 if the mean step differs by more", "PERCENT", "Trace");
    command.flag("-q,--quiet", flags->quiet, "no progress on standard error", "Trace");
    addOutputFlags(command, flags->output, true);
}

}  // namespace ringside
