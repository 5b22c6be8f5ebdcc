#include "cli/output/run_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/analysis/breakdown.h"

namespace ringside {
namespace {

Bytes peakOf(const RealRun& run) {
    Bytes peak = 0;
    for (const RealRank& rank : run.ranks) peak = std::max(peak, rank.memory.peakAllocated);
    return peak;
}

/// Of the rank that ends last in the median step.
Breakdown breakdownOf(const RealRun& run) {
    const Trace trace = run.trace();
    const Timeline timeline = run.timeline();
    return breakdownOf(trace, lastRank(timeline), timeline.stepTime);
}

Json toJson(const Breakdown& breakdown) {
    return {{"compute_s", breakdown.compute.seconds()}, {"optimizer_s", breakdown.optimizer.seconds()}, {"communication_exposed_s", breakdown.communicationExposed.seconds()},
            {"communication_hidden_s", breakdown.communicationHidden.seconds()}, {"idle_s", (breakdown.idle + breakdown.host).seconds()}};
}

}  // namespace

std::string runText(const RunReport& report) {
    const RealRun& run = *report.run;
    const auto [least, most] = std::minmax_element(run.stepSeconds.begin(), run.stepSeconds.end());
    std::string out = fmt::format("{} with {} on {} rank{} of {}{}\n\n", report.scenario->model.name, report.scenario->parallel.strategy, run.ranks.size(), run.ranks.size() == 1 ? "" : "s", run.deviceName,
                                  report.paced ? ", paced" : "");
    out += fmt::format("  step            {:.2f} ms   median of {} (from {:.2f} to {:.2f})\n", run.medianStep() * 1e3, run.stepSeconds.size(), *least * 1e3, *most * 1e3);
    const Breakdown breakdown = breakdownOf(run);
    out += fmt::format("  of it           compute {:.2f} ms, optimizer {:.2f} ms, communication exposed {:.2f} ms (hidden {:.2f}), idle {:.2f} ms\n", breakdown.compute.seconds() * 1e3, breakdown.optimizer.seconds() * 1e3,
                       breakdown.communicationExposed.seconds() * 1e3, breakdown.communicationHidden.seconds() * 1e3, (breakdown.idle + breakdown.host).seconds() * 1e3);
    if (!report.paced && !run.losses.empty()) out += fmt::format("  loss            {:.4f} in the first step, {:.4f} in the last\n", run.losses.front(), run.losses.back());
    out += fmt::format("  memory          {:.1f} MiB at the peak of a rank's tensors\n", static_cast<double>(peakOf(run)) / static_cast<double>(kMiB));
    if (report.prediction) {
        const double error = report.prediction->stepSeconds / run.medianStep() - 1;
        out += fmt::format("  predicted       {:.2f} ms, {:+.1f} %; band {:.2f} to {:.2f} ms{}\n", report.prediction->stepSeconds * 1e3, error * 100, report.prediction->p10Seconds * 1e3, report.prediction->p90Seconds * 1e3,
                           run.medianStep() >= report.prediction->p10Seconds && run.medianStep() <= report.prediction->p90Seconds ? ", which the measurement is in" : "");
        out += fmt::format("                  memory {:.1f} MiB\n", static_cast<double>(report.prediction->memory.peakAllocated) / static_cast<double>(kMiB));
    }
    if (report.differenceFromSingle) out += fmt::format("  against single  parameters differ by {:.2g} at most (relative to the largest of each tensor)\n", *report.differenceFromSingle);
    for (const std::string& note : report.notes) out += fmt::format("  note            {}\n", note);
    return out;
}

Json runJson(const RunReport& report) {
    const RealRun& run = *report.run;
    Json measured = {{"step_s", run.medianStep()}, {"steps_s", run.stepSeconds}, {"losses", run.losses}, {"peak_allocated_bytes", peakOf(run)}, {"breakdown", toJson(breakdownOf(run))},
                     {"device", run.deviceName}, {"libraries", run.libraries}, {"paced", report.paced}};
    Json ranks = Json::array();
    for (const RealRank& rank : run.ranks) ranks.push_back({{"steps_s", rank.stepSeconds}, {"peak_allocated_bytes", rank.memory.peakAllocated}, {"peak_reserved_bytes", rank.memory.peakReserved}});
    measured["ranks"] = std::move(ranks);
    if (report.differenceFromSingle) measured["largest_relative_difference"] = *report.differenceFromSingle;
    Json out = {{"format", "ringside-run"}, {"version", 1}, {"scenario", toJson(*report.scenario)}, {"measured", std::move(measured)}, {"notes", report.notes}};
    if (report.prediction)
        out["predicted"] = {{"step_s", report.prediction->stepSeconds}, {"p10_s", report.prediction->p10Seconds}, {"p90_s", report.prediction->p90Seconds}, {"peak_allocated_bytes", report.prediction->memory.peakAllocated}};
    return out;
}

}  // namespace ringside
