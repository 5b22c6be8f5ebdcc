#include "cli/output/validation_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringside {
namespace {

Json numberOrNull(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json comparedJson(const Compared& one) { return {{"predicted_s", one.predicted}, {"measured_s", one.measured}, {"error", numberOrNull(one.error())}}; }

Json comparedList(const std::vector<Compared>& list) {
    Json out = Json::object();
    for (const Compared& one : list) out[one.name] = comparedJson(one);
    return out;
}

Json rowJson(const ValidationRow& row) {
    return {{"strategy", row.strategy}, {"model", row.model}, {"ranks", row.ranks}, {"predicted_s", row.predicted}, {"measured_s", row.measured}, {"error", row.error()}, {"noise_floor", row.noiseFloor},
            {"in_band", row.inBand()}, {"p10_s", row.p10}, {"p90_s", row.p90}, {"rounds_s", row.rounds}, {"steps_per_round", row.steps}, {"communication_exposed", comparedJson(row.exposed)},
            {"communication", comparedJson(row.communication)}, {"phases", comparedList(row.phases)}, {"task_classes", comparedList(row.classes)},
            {"peak_memory", row.measuredPeak == 0 ? Json(nullptr) : Json{{"predicted_bytes", row.predictedPeak}, {"measured_bytes", row.measuredPeak}, {"equal", row.predictedPeak == row.measuredPeak}}}};
}

Json summaryJson(const ValidationSummary& summary) {
    return {{"mape", summary.mape}, {"worst", summary.worst}, {"noise_floor", summary.noiseFloor}, {"coverage", summary.coverage}, {"bias", summary.bias}, {"rows", summary.rows},
            {"order", {{"pairs", summary.order.pairs}, {"right", summary.order.right}}}};
}

/// A strategy's reason once, as it hardly differs from model to model.
std::string skippedText(const std::vector<SkippedCase>& skipped) {
    std::vector<std::pair<const SkippedCase*, int>> byStrategy;
    for (const SkippedCase& one : skipped) {
        const auto same = std::find_if(byStrategy.begin(), byStrategy.end(), [&](const auto& entry) { return entry.first->strategy == one.strategy; });
        if (same == byStrategy.end()) byStrategy.emplace_back(&one, 1);
        else ++same->second;
    }
    std::string out;
    for (const auto& [one, models] : byStrategy) out += fmt::format("    {} ({}): {}\n", one->strategy, models == 1 ? one->model : fmt::format("{} models", models), one->reason);
    return out;
}

}  // namespace

std::string validationText(const ValidationReport& report) {
    const StepValidation& validation = *report.validation;
    const ValidationSummaries summaries = summariesOf(validation.rows);
    std::size_t model = 5, strategy = 8;
    for (const ValidationRow& row : validation.rows) {
        model = std::max(model, row.model.size());
        strategy = std::max(strategy, row.strategy.size());
    }
    std::string out = fmt::format("Predicted with {} against {}{}, over {}\n\n", report.profile, validation.device, report.paced ? ", paced" : "", report.link);
    out += fmt::format("  {:<{}}  {:<{}}  ranks  predicted    measured    error   noise  band\n", "model", model, "strategy", strategy);
    for (const ValidationRow& row : validation.rows)
        out += fmt::format("  {:<{}}  {:<{}}  {:>5}  {:>6.2f} ms  {:>7.2f} ms  {:>+6.1f} %  {:>4.1f} %  {}{}\n", row.model, model, row.strategy, strategy, row.ranks, row.predicted * 1e3, row.measured * 1e3, row.error() * 100,
                           row.noiseFloor * 100, row.inBand() ? "in" : "out", row.predictedPeak == row.measuredPeak ? "" : "  memory differs");
    const ValidationSummary& all = summaries.all;
    if (validation.drift) out += fmt::format("\n  drift: kernels take {:.3f} times as long as when the profile was measured, and are predicted so (--as-measured: without)\n", *validation.drift);
    out += fmt::format("\n  mean absolute error {:.1f} %, worst {:.1f} %, noise floor {:.1f} %; {:.0f} % of the measurements lie in the predicted band\n", all.mape * 100, all.worst * 100, all.noiseFloor * 100, all.coverage * 100);
    if (all.order.pairs > 0) out += fmt::format("  {} of {} pairs that differ by more than the noise come in the predicted order\n", all.order.right, all.order.pairs);
    if (summaries.strategies.size() > 1 && summaries.strategies.size() < validation.rows.size()) {
        out += "\n";
        for (const auto& [name, one] : summaries.strategies)
            out += fmt::format("  {:<{}}  {:>2} rows  mean absolute error {:>5.1f} %  bias {:>+6.1f} %  worst {:>5.1f} %\n", name, strategy, one.rows, one.mape * 100, one.bias * 100, one.worst * 100);
    }
    if (report.holdout) {
        out += fmt::format("\n  Held out of the fit ({} series fitted instead)\n", report.holdout->fitted);
        for (const HoldoutGroup& group : report.holdout->groups)
            out += fmt::format("    {:<16} {:>3} points  mean absolute error {:>5.1f} %  median {:>5.1f} %  90 % {:>5.1f} %  worst {:>6.1f} %  sum {:>+6.1f} %\n", group.name, group.points, group.mape * 100, group.median * 100,
                               group.p90 * 100, group.worst * 100, group.total * 100);
    }
    if (!validation.skipped.empty()) out += "\n  Not compared\n" + skippedText(validation.skipped);
    if (report.limit) out += fmt::format("\n  {} the limit of {:g} %\n", all.mape > *report.limit ? "Above" : "Within", *report.limit * 100);
    return out;
}

Json validationJson(const ValidationReport& report) {
    const StepValidation& validation = *report.validation;
    const ValidationSummaries summaries = summariesOf(validation.rows);
    Json out = {{"format", "ringside-validation"}, {"version", 1}, {"profile", report.profile}, {"link", report.link}, {"paced", report.paced}, {"device", validation.device}, {"libraries", validation.libraries}, {"drift", numberOrNull(validation.drift)}};
    out["rows"] = Json::array();
    for (const ValidationRow& row : validation.rows) out["rows"].push_back(rowJson(row));
    out["summary"] = summaryJson(summaries.all);
    if (report.limit) out["summary"]["limit"] = *report.limit;
    out["strategies"] = Json::array();
    for (const auto& [strategy, summary] : summaries.strategies) {
        Json one = {{"strategy", strategy}};
        one.update(summaryJson(summary));
        out["strategies"].push_back(std::move(one));
    }
    out["skipped"] = Json::array();
    for (const SkippedCase& one : validation.skipped) out["skipped"].push_back({{"strategy", one.strategy}, {"model", one.model}, {"ranks", one.ranks}, {"reason", one.reason}});
    out["holdout"] = nullptr;
    if (report.holdout) {
        Json groups = Json::array();
        for (const HoldoutGroup& group : report.holdout->groups)
            groups.push_back({{"name", group.name}, {"points", group.points}, {"mape", group.mape}, {"median", group.median}, {"p90", group.p90}, {"worst", group.worst}, {"total", group.total}});
        out["holdout"] = {{"fitted", report.holdout->fitted}, {"groups", std::move(groups)}};
    }
    return out;
}

}  // namespace ringside
