#include "gui/scenario/result_summary.h"

#include <cmath>

#include <fmt/format.h>

namespace ringside::gui {
namespace {

std::string verdictText(MemoryVerdict verdict) {
    switch (verdict) {
        case MemoryVerdict::Fits: return "fits";
        case MemoryVerdict::Tight: return "tight";
        case MemoryVerdict::OutOfMemory: return "out of memory";
    }
    return "?";
}

std::string partName(MemoryCategory category) {
    switch (category) {
        case MemoryCategory::Context: return "CUDA context";
        case MemoryCategory::Nccl: return "NCCL buffers";
        default: break;
    }
    std::string name(nameOf(category));
    for (char& c : name)
        if (c == '_') c = ' ';
    return name;
}

std::string rates(double samples, double tokens) {
    const std::string text = formatShortCount(samples) + " samples/s";
    return tokens > 0 ? fmt::format("{}, {} tokens/s", text, formatShortCount(tokens)) : text;
}

}  // namespace

ResultSummary summaryOf(const Scenario& scenario, const Prediction& prediction) {
    ResultSummary summary;
    summary.step = formatSeconds(prediction.stepSeconds);
    summary.band = fmt::format("{} to {}", formatSeconds(prediction.p10Seconds), formatSeconds(prediction.p90Seconds));
    const double devices = static_cast<double>(scenario.cluster.deviceCount());
    summary.throughput = rates(prediction.samplesPerSecond, prediction.tokensPerSecond);
    summary.perDevice = rates(prediction.samplesPerSecond / devices, prediction.tokensPerSecond / devices);
    summary.utilisation = fmt::format("{:.1f} %", prediction.mfu * 100);
    const double exposed = prediction.breakdown.communicationExposed.seconds();
    summary.exposedShare = prediction.stepSeconds > 0 ? exposed / prediction.stepSeconds : 0;
    summary.exposed = fmt::format("{} ({:.1f} %)", formatSeconds(exposed), summary.exposedShare * 100);
    summary.hidden = formatSeconds(prediction.breakdown.communicationHidden.seconds());

    summary.memoryUsed = prediction.memory.peakDevice();
    summary.memoryCapacity = prediction.capacityBytes;
    summary.verdict = prediction.verdict;
    summary.memoryText = fmt::format("{} of {}: {}", formatBytes(summary.memoryUsed), formatBytes(summary.memoryCapacity), verdictText(prediction.verdict));
    const auto add = [&](std::string name, Bytes bytes, std::optional<MemoryCategory> category) {
        if (bytes > 0) summary.memory.push_back({std::move(name), bytes, summary.memoryCapacity > 0 ? static_cast<double>(bytes) / static_cast<double>(summary.memoryCapacity) : 0, category});
    };
    Bytes live = 0;
    for (int c = 0; c < kMemoryCategories; ++c) {
        add(partName(static_cast<MemoryCategory>(c)), prediction.memory.atPeak[static_cast<std::size_t>(c)], static_cast<MemoryCategory>(c));
        live += prediction.memory.atPeak[static_cast<std::size_t>(c)];
    }
    add("cached by the allocator", summary.memoryUsed - live, std::nullopt);
    summary.warnings = prediction.warnings;
    return summary;
}

std::string changeText(double before, double after) {
    const double percent = (after / before - 1) * 100;
    if (std::abs(percent) < 0.05) return "no change";
    return fmt::format("{}{:.1f} %", percent < 0 ? "−" : "+", std::abs(percent));
}

}  // namespace ringside::gui
