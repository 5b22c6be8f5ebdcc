// ringside scale: the same training on more and more devices, as a table, a file or a chart.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/commands/scenario_flags.h"
#include "sim/study/scaling.h"
#include "traces/export/atomic_file.h"

namespace ringside {
namespace {

struct ScaleFlags {
    ScenarioFlags scenario;
    OutputFlags output;
    std::string devices, mode = "weak", strategies, baseline, plot, plotFigure = "efficiency";
};

std::vector<std::string> splitCommas(const std::string& text) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        parts.push_back(text.substr(begin, comma - begin));
        begin = comma + 1;
    }
    return parts;
}

Result<std::int64_t> countOf(const std::string& text, const char* flag) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 1)
        return badInput(flag, fmt::format("'{}' is not a device count; expected whole numbers from 1, as in {}", text,
                                          std::string(flag) == "--devices" ? "1,2,4,8" : "8"));
    return count;
}

std::string percent(const std::optional<SpeedUp>& speedUp) { return speedUp ? fmt::format("{:.1f} %", speedUp->efficiency * 100) : std::string("–"); }

/// UTF-8 text set right in a column of this width.
std::string right(const std::string& text, std::size_t width) {
    const auto columns =
        static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
    return std::string(columns < width ? width - columns : 0, ' ') + text;
}

std::string tableText(const ScalingStudy& study) {
    const bool tokens = std::any_of(study.points.begin(), study.points.end(), [](const ScalingPoint& point) { return point.tokensPerSecond > 0; });
    std::string text = fmt::format("{} scaling of {} on {}: the {} stays\n", study.mode == ScalingMode::Weak ? "Weak" : "Strong", study.model,
                                   study.device, study.mode == ScalingMode::Weak ? "batch per device" : "global batch");
    text += fmt::format("Baseline: {} device{}{}\n\n", formatCount(study.baseline), study.baseline == 1 ? "" : "s",
                        study.baseline == 1 ? "" : ", which already contains their communication");
    std::size_t width = 8;
    for (const ScalingPoint& point : study.points) width = std::max(width, point.strategy.size());
    text += fmt::format("{:<{}}  devices  batch per step      step  {:>9}  speed-up  efficiency   exposed     memory\n", "strategy", width,
                        tokens ? "tokens/s" : "samples/s");
    for (const ScalingPoint& point : study.points) {
        const std::string batch = fmt::format("{}×{}→{}", point.microBatch, point.gradAccum, formatCount(point.globalBatch));
        text +=
            fmt::format("{:<{}}  {:>7}  {}  {}  {:>9}  {:>8}  {}  {}  {}{}\n", point.strategy, width, formatCount(point.devices), right(batch, 14),
                        right(formatSeconds(point.stepSeconds), 8), formatShortCount(tokens ? point.tokensPerSecond : point.samplesPerSecond),
                        point.speedUp ? fmt::format("{:.2f}", point.speedUp->speedup) : "–", right(percent(point.speedUp), 10),
                        right(formatSeconds(point.exposedSeconds), 8), right(formatBytes(point.peakBytes), 9),
                        point.verdict == MemoryVerdict::Fits    ? ""
                        : point.verdict == MemoryVerdict::Tight ? "  tight"
                                                                : "  does not fit");
    }
    for (const SkippedPoint& skipped : study.skipped)
        text += fmt::format("{:<{}}  {:>7}  skipped: {}\n", skipped.strategy, width, formatCount(skipped.devices), skipped.reason);
    text += "\nbatch per step: micro-batch × accumulation → samples over all devices; exposed: communication that nothing hides\n";
    for (const ScalingPoint& base : study.baselines)
        if (base.verdict == MemoryVerdict::OutOfMemory)
            text += fmt::format("The baseline of {} does not fit in memory: its time is what the step would take if it did.\n", base.strategy);
    return text;
}

Result<int> runScale(const ScaleFlags& flags) {
    if (flags.devices.empty())
        return failure(ErrorCode::Usage, "--devices", "is missing; expected the device counts to look at, as in --devices 1,2,4,8");
    ScalingRequest request;
    for (const std::string& part : splitCommas(flags.devices)) {
        TRY(const std::int64_t count, countOf(part, "--devices"));
        request.devices.push_back(count);
    }
    if (!flags.baseline.empty()) {
        TRY(request.baseline, countOf(flags.baseline, "--baseline"));
    }
    if (!flags.strategies.empty()) request.strategies = splitCommas(flags.strategies);
    request.mode = flags.mode == "strong" ? ScalingMode::Strong : ScalingMode::Weak;
    TRY(request.scenario, flags.scenario.document());
    request.source = flags.scenario.source();
    TRY(const Catalogs catalogs, Catalogs::builtin());
    const Result<ScalingStudy> study = studyScaling(request, catalogs);
    if (!study) return tl::unexpected<Error>(flags.scenario.named(study.error()));
    if (study->points.empty()) {
        const SkippedPoint& first = study->skipped.front();
        return badInput("--devices", fmt::format("no point could be predicted; {} on {} devices: {}", first.strategy, first.devices, first.reason));
    }

    if (!flags.plot.empty())
        TRY_VOID(
            atomicWriteFile(flags.plot, svgOf(chartOf(*study, flags.plotFigure == "speedup" ? ScalingFigure::SpeedUp : ScalingFigure::Efficiency))));
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson()  ? toJson(*study).dump(2) + "\n"
                                       : flags.output.wantsCsv() ? toCsv(*study)
                                                                 : tableText(*study)));
    const bool noneFits = std::all_of(study->points.begin(), study->points.end(),
                                      [](const ScalingPoint& point) { return point.verdict == MemoryVerdict::OutOfMemory; });
    return noneFits ? static_cast<int>(ErrorCode::AnswerIsNo) : 0;
}

}  // namespace

void addScale(CommandLine& line) {
    auto flags = std::make_shared<ScaleFlags>();
    Command command = line.add("scale", "speed-up and efficiency over a list of device counts, weak or strong", [flags] { return runScale(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside scale --model gpt2-xl --device a100-80gb-sxm --micro-batch 4 --devices 1,2,4,8,16,32\n"
        "  ringside scale --model gpt2 --device h100-sxm --mode strong --global-batch 512 --micro-batch 16 --devices 1,8,64 --strategies ddp,naive "
        "--plot strong.svg\n"
        "Weak: the batch per device stays. Strong: the global batch stays. Exit code 1: no point fits in memory.");
    command.option("--devices", flags->devices, "device counts: 1,2,4,8", "N,N,…", "Scaling");
    command.choice("--mode", flags->mode, "weak (batch per device stays; the default) or strong (global batch stays)", {"weak", "strong"}, "Scaling");
    command.option("--strategies", flags->strategies, "strategies, a line each (default: the scenario's, or ddp)", "NAME,NAME,…", "Scaling");
    command.option("--baseline", flags->baseline, "devices that efficiency 100 % refers to (default: the fewest of --devices)", "N", "Scaling");
    command.option("--plot", flags->plot, "draw a chart into this file (SVG)", "FILE", "Output");
    command.choice("--plot-figure", flags->plotFigure, "efficiency (default) or speedup", {"efficiency", "speedup"}, "Output");
    flags->scenario.leaveOut("--devices");
    flags->scenario.addTo(command);
    addOutputFlags(command, flags->output, true);
}

}  // namespace ringside
