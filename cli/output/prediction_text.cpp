#include "cli/output/prediction_text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/output/wrap.h"

namespace ringside {
namespace {


class Style {
public:
    explicit Style(bool color) : color_(color) {}
    std::string bold(const std::string& text) const { return wrap("1", text); }
    std::string good(const std::string& text) const { return wrap("32", text); }
    std::string warn(const std::string& text) const { return wrap("33", text); }
    std::string bad(const std::string& text) const { return wrap("31", text); }

private:
    std::string wrap(const char* code, const std::string& text) const { return color_ ? fmt::format("\033[{}m{}\033[0m", code, text) : text; }
    bool color_;
};

std::string bar(double share, int width) {
    static const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const int units = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 8));
    std::string text;
    for (int i = 0; i < units / 8; ++i) text += "█";
    text += eighths[units % 8];
    const int cells = units / 8 + (units % 8 != 0 ? 1 : 0);
    text.append(static_cast<std::size_t>(width - cells), ' ');
    return text;
}

std::string plural(std::int64_t n, const std::string& word) { return fmt::format("{} {}{}", formatCount(n), word, n == 1 ? "" : "s"); }

/// " (tp 8, pp 4)", or nothing.
std::string meshText(const DeviceMesh& mesh) {
    std::vector<std::string> axes;
    for (const auto& [name, size] : {std::pair{"tp", mesh.tp}, {"cp", mesh.cp}, {"pp", mesh.pp}, {"ep", mesh.ep}})
        if (size > 1) axes.push_back(fmt::format("{} {}", name, size));
    return axes.empty() ? "" : fmt::format(" ({})", fmt::join(axes, ", "));
}

std::string heading(const Scenario& scenario, const Prediction& prediction, const Style& style) {
    const Cluster& cluster = scenario.cluster;
    std::string devices;
    for (const NodeGroup& group : cluster.nodes) {
        if (!devices.empty()) devices += " + ";
        devices += fmt::format("{} × {}", formatCount(group.count * group.kind.devices), group.kind.device.fullName);
    }
    std::string place = cluster.nodeCount() == 1 ? "one node" : fmt::format("{} nodes", formatCount(cluster.nodeCount()));
    if (cluster.nodeCount() > 1 && cluster.nodes.size() == 1) place += fmt::format(" of {}", cluster.nodes.front().kind.devices);
    if (cluster.nodeCount() > 1 && !cluster.network.name.empty()) place += ", " + cluster.network.name;
    const TrainingConfig& training = scenario.training;
    std::string batch = fmt::format("{} per rank", plural(training.microBatch, "sample"));
    if (training.gradAccum > 1) batch += fmt::format(" × {} micro-steps", training.gradAccum);
    if (!training.rankBatches.empty()) {
        const auto [least, most] = std::minmax_element(training.rankBatches.begin(), training.rankBatches.end());
        batch = fmt::format("{} to {} samples per rank", formatCount(*least), formatCount(*most));
        if (training.gradAccum > 1) batch += fmt::format(" × {} micro-steps", training.gradAccum);
    }
    const bool cut = scenario.mesh.dp != cluster.deviceCount();
    if (cluster.deviceCount() > 1)
        batch += fmt::format(" × {} {}rank{} = {}", formatCount(scenario.mesh.dp), cut ? "data-parallel " : "", scenario.mesh.dp == 1 ? "" : "s", formatCount(scenario.globalBatch()));
    if (training.seqLen > 0) batch += fmt::format(", {} tokens each", formatCount(training.seqLen));
    const std::string how = fmt::format("{}; {}, {}, {}{}", batch, training.precision.name, nameOf(training.optimizer),
                                        training.recompute == Recompute::None ? "no recompute" : fmt::format("{} recompute", nameOf(training.recompute)),
                                        scenario.step == StepKind::First ? "; the first step" : "");
    return fmt::format("{} ({} parameters) with {} on {} ({})\n  {}\n", style.bold(scenario.model.name), formatShortCount(static_cast<double>(prediction.parameters)),
                       scenario.parallel.strategy + meshText(scenario.mesh), devices, place, wrapped(how, 2));
}

std::string verdictText(const Prediction& prediction, const Style& style) {
    switch (prediction.verdict) {
        case MemoryVerdict::Fits: return style.good("fits");
        case MemoryVerdict::Tight: return style.warn("tight");
        case MemoryVerdict::OutOfMemory: return style.bad("does not fit");
    }
    return {};
}

std::string categoryWord(MemoryCategory category) {
    std::string word(nameOf(category));
    std::replace(word.begin(), word.end(), '_', ' ');
    return category == MemoryCategory::Nccl ? "NCCL buffers" : category == MemoryCategory::Context ? "CUDA context" : word;
}

std::string capacityLine(const Prediction& prediction, const Style& style) {
    return fmt::format("{} of {}: {}", formatBytes(prediction.memory.peakDevice()), formatBytes(prediction.capacityBytes), verdictText(prediction, style));
}

std::string peakLine(const Prediction& prediction) {
    const Schedule& schedule = *prediction.schedule;
    const RankProgram& program = prediction.memoryProgram();
    const MemoryReport& memory = prediction.memory;
    if (memory.failedBeforeStep)
        return fmt::format("out of memory before the step begins, at {} ({})", bufferName(schedule, program.buffers[memory.failedBuffer]),
                           formatBytes(program.buffers[memory.failedBuffer].bytes));
    if (memory.outOfMemory)
        return fmt::format("out of memory in \"{}\" when it asks for {} ({})", taskName(schedule, program.tasks[memory.failedTask]),
                           bufferName(schedule, program.buffers[memory.failedBuffer]), formatBytes(program.buffers[memory.failedBuffer].bytes));
    return fmt::format("peak in \"{}\"; the largest tensor there is {} ({})", taskName(schedule, program.tasks[memory.peakTask]),
                       bufferName(schedule, program.buffers[memory.largestAtPeak]), formatBytes(program.buffers[memory.largestAtPeak].bytes));
}

std::string hiddenNote(const Breakdown& breakdown) {
    if (breakdown.communicationHidden <= Time()) return "   (nothing hidden behind compute)";
    return fmt::format("   ({} {}hidden behind compute)", formatTime(breakdown.communicationHidden), breakdown.communicationExposed > Time() ? "more " : "");
}

/// "−4.8 %"; what rounds to nothing has no sign.
std::string percentChange(double change) {
    const double percent = std::round(change * 1000) / 10;
    if (percent == 0) return "0.0 %";
    return fmt::format("{}{:.1f} %", percent < 0 ? "−" : "+", std::fabs(percent));
}

/// What the numbers rest on, by where they come from: one line for each provenance.
std::string restsOnLines(const Prediction& prediction) {
    std::vector<std::pair<std::string, std::vector<std::string>>> groups;
    std::set<std::string> devices;
    for (const RestsOn& r : prediction.restsOn) devices.insert(r.figure.substr(0, r.figure.find(' ')));
    for (const RestsOn& r : prediction.restsOn) {
        // With one kind of device its name need not be said again; with several only the peaks differ enough to be shown.
        const std::size_t space = r.figure.find(' ');
        const bool isPeak = r.figure.find(" peak ") != std::string::npos;
        if (devices.size() > 1 && !isPeak && r.figure.substr(0, space) != prediction.restsOn.front().figure.substr(0, space)) continue;
        auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == r.provenance; });
        if (group == groups.end()) group = groups.insert(groups.end(), {r.provenance, {}});
        group->second.push_back((devices.size() > 1 ? r.figure : r.figure.substr(space + 1)) + " " + r.value);
    }
    std::string text;
    for (const auto& [provenance, figures] : groups) {
        std::string line = fmt::format("{}{:<11}  {:<10}", text.empty() ? "\n" : "", text.empty() ? "Rests on" : "", provenance + ":");
        std::size_t width = 23;
        for (std::size_t i = 0; i < figures.size(); ++i) {
            const std::string piece = figures[i] + (i + 1 < figures.size() ? "," : "");
            if (width + 1 + piece.size() > kColumns) {
                line.append("\n").append(23, ' ');
                width = 23;
            }
            line += " " + piece;
            width += 1 + piece.size();
        }
        text += line + "\n";
    }
    return text;
}

std::string warningLines(const std::vector<std::string>& warnings, const Style& style) {
    std::string text;
    for (const std::string& warning : warnings) text += fmt::format("{}         {}\n", style.warn("Note"), wrapped(warning, 13));
    return text.empty() ? text : fmt::format("\n{}", text);
}

}  // namespace

std::string predictionText(const Scenario& scenario, const Prediction& prediction, bool color) {
    const Style style(color);
    const double step = prediction.stepSeconds;
    const double devices = static_cast<double>(scenario.cluster.deviceCount());
    const bool tokens = prediction.schedule->workload->tokensPerSample > 0;
    const bool many = scenario.cluster.deviceCount() > 1;
    std::string text = heading(scenario, prediction, style) + "\n";

    text += fmt::format("Step time    {}   (80 % band: {} to {})\n", style.bold(formatSeconds(step)), formatSeconds(prediction.p10Seconds), formatSeconds(prediction.p90Seconds));
    if (const auto& d = prediction.distribution)
        text += fmt::format("Drawn steps  {}: median {}, P90 {}, P99 {}, most {}; undisturbed {} ({:+.1f} % on average)\n", formatCount(static_cast<std::int64_t>(d->seconds.size())),
                            formatSeconds(d->p50), formatSeconds(d->p90), formatSeconds(d->p99), formatSeconds(d->most), formatSeconds(d->undisturbed),
                            100 * (d->mean / d->undisturbed - 1));
    const auto rates = [&](double samples, double tokensPerS) {
        return formatShortCount(samples) + " samples/s" + (tokens ? ", " + formatShortCount(tokensPerS) + " tokens/s" : "");
    };
    text += "Throughput   " + rates(prediction.samplesPerSecond, prediction.tokensPerSecond);
    if (many) text += "; per device " + rates(prediction.samplesPerSecond / devices, prediction.tokensPerSecond / devices);
    text += "\n";
    if (prediction.round)
        text += fmt::format("Round        {} steps: {} local ones of {}, and one of {} that also averages\n", prediction.round->period, prediction.round->period - 1,
                            formatSeconds(prediction.round->localSeconds), formatSeconds(prediction.round->averagingSeconds));
    if (const std::optional<AsyncOutcome>& async = prediction.timeline.async)
        text += fmt::format("Staleness    {:.1f} updates in the mean, {} at most; a worker's step takes {} to {}\n", async->meanStaleness, async->maxStaleness,
                            formatSeconds(async->fastestSeconds), formatSeconds(async->slowestSeconds));
    const bool transformer = std::holds_alternative<TransformerSpec>(scenario.model.architecture);
    text += fmt::format("Utilisation  MFU {:.1f} %, HFU {:.1f} %   (model FLOPs, {}, against the dense {} peak)\n", prediction.mfu * 100, prediction.hfu * 100,
                        transformer ? "6N + 12·L·h·s per token" : "3 × forward", nameOf(scenario.training.precision.math));

    text += "\nWhere the time goes\n";
    const Breakdown& b = prediction.breakdown;
    const auto row = [&](const char* name, Time time, const std::string& extra = {}) {
        const double share = time.seconds() / step;
        if (time <= Time() && extra.empty()) return;
        text += fmt::format("  {:<22} {} {:>8} {:>5.1f} %{}\n", name, bar(share, 24), formatTime(time), share * 100, extra);
    };
    row("compute", b.compute);
    row("optimizer", b.optimizer);
    if (many) row("exposed communication", b.communicationExposed, hiddenNote(b));
    row("host-bound", b.host);
    row("idle", b.idle);

    text += fmt::format("\nMemory       {}\n", capacityLine(prediction, style));
    std::vector<std::string> parts;
    for (int c = 0; c < kMemoryCategories; ++c)
        if (const Bytes bytes = prediction.memory.atPeak[static_cast<std::size_t>(c)]; bytes > 0)
            parts.push_back(fmt::format("{} {}", categoryWord(static_cast<MemoryCategory>(c)), formatBytes(bytes)));
    Bytes live = 0;
    for (const Bytes bytes : prediction.memory.atPeak) live += bytes;
    if (const Bytes slack = prediction.memory.peakDevice() - live; slack > 0) parts.push_back(fmt::format("cached by the allocator {}", formatBytes(slack)));
    for (std::size_t i = 0; i < parts.size(); i += 3) {
        const auto end = parts.begin() + static_cast<std::ptrdiff_t>(std::min(i + 3, parts.size()));
        text += fmt::format("  {}\n", fmt::join(parts.begin() + static_cast<std::ptrdiff_t>(i), end, " · "));
    }
    text += fmt::format("  {}\n", wrapped(peakLine(prediction), 4));

    text += "\nCritical path";
    for (const auto& [kind, seconds] : prediction.pathSeconds)
        if (seconds / step >= 0.0005) text += fmt::format("{} {} {:.1f} %", kind == prediction.pathSeconds.begin()->first ? "  " : ",", nameOf(kind), seconds / step * 100);
    text += "\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(4, prediction.criticalPath.size()); ++i) {
        const PathItem& item = prediction.criticalPath[i];
        text += fmt::format("  {:<44} {:>8} {:>5.1f} %\n", item.name, formatSeconds(item.seconds), item.seconds / step * 100);
    }
    if (!prediction.sensitivity.empty()) {
        std::vector<std::string> changes;
        for (const Sensitivity& s : prediction.sensitivity) {
            if (s.resource == "network" && !many) continue;
            std::string name = s.resource;
            std::replace(name.begin(), name.end(), '_', ' ');
            changes.push_back(fmt::format("{} {}", name == "host" ? "host speed" : name, percentChange(s.change)));
        }
        text += fmt::format("\nStep time with 10 % more  {}\n", fmt::join(changes, ", "));
    }
    text += restsOnLines(prediction);
    return text + warningLines(prediction.warnings, style);
}

std::string memoryText(const Scenario& scenario, const Prediction& prediction, bool color) {
    const Style style(color);
    const MemoryReport& memory = prediction.memory;
    std::string text = heading(scenario, prediction, style) + "\n";
    text += fmt::format("{}\n\n", capacityLine(prediction, style));
    Bytes live = 0;
    const double capacity = static_cast<double>(prediction.capacityBytes);
    const auto row = [&](const std::string& name, Bytes bytes) {
        text += fmt::format("  {:<24} {} {:>9} {:>5.1f} %\n", name, bar(static_cast<double>(bytes) / capacity, 32), formatBytes(bytes), static_cast<double>(bytes) / capacity * 100);
    };
    for (int c = 0; c < kMemoryCategories; ++c) {
        const Bytes bytes = memory.atPeak[static_cast<std::size_t>(c)];
        live += bytes;
        if (bytes > 0) row(categoryWord(static_cast<MemoryCategory>(c)), bytes);
    }
    row("cached by the allocator", std::max<Bytes>(0, memory.peakDevice() - live));
    text += fmt::format("\n  allocated {}, reserved {} by the allocator; {} outside it (context, NCCL)\n", formatBytes(memory.peakAllocated), formatBytes(memory.peakReserved),
                        formatBytes(memory.outside));
    text += fmt::format("  {}\n", wrapped(peakLine(prediction), 4));
    return text + warningLines(scenario.warnings, style);  // the others are about time
}

}  // namespace ringside
