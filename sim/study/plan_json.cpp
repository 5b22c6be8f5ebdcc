#include "sim/study/plan.h"

#include <algorithm>

namespace ringside {
namespace {

Json orNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json goodputJson(const Candidate& c) {
    const Goodput& g = c.goodput;
    Json json = {{"job_mtbf_hours", g.mtbfSeconds / 3600}, {"checkpoint_blocking_s", g.checkpoint.blockingSeconds}, {"checkpoint_write_s", g.checkpoint.writeSeconds},
                 {"restart_s", g.restartSeconds}, {"young_interval_s", g.youngSeconds}, {"interval_s", g.intervalSeconds}};
    if (c.goodputCheck.empty()) return json;
    json["simulated"] = Json::array();
    for (const GoodputPoint& point : c.goodputCheck)
        json["simulated"].push_back({{"interval_s", point.intervalSeconds}, {"closed_form", point.closedForm}, {"simulated", point.simulated}});
    return json;
}

Json candidateJson(const Candidate& c, const Plan& plan) {
    const double tokens = static_cast<double>(plan.tokensPerSample);
    Json json;
    json["hardware"] = c.hardware;
    json["device"] = c.device;
    json["devices"] = c.devices;
    json["nodes"] = c.nodes;
    json["strategy"] = c.strategy;
    json["micro_batch"] = c.microBatch;
    json["grad_accum"] = c.gradAccum;
    json["recompute"] = nameOf(c.recompute);
    json["knobs"] = c.knobs;
    for (const char* key : {"tp", "pp", "cp"})
        if (c.knobs.contains(key)) json[key] = c.knobs[key];
    json["step_time_s"] = c.stepSeconds;
    json["samples_per_s"] = c.samplesPerSecond;
    json["tokens_per_s"] = tokens > 0 ? Json(c.tokensPerSecond) : Json(nullptr);
    json["mfu"] = c.mfu;
    json["exposed_communication_share"] = c.exposedShare;
    json["memory"] = {{"peak_device_bytes", c.peakBytes}, {"capacity_bytes", c.capacityBytes}, {"verdict", nameOf(c.verdict)}};
    json["goodput"] = c.goodput.goodput;
    json["days"] = orNull(c.days);
    json["usd_per_hour"] = c.usdPerHour;
    json["cost_per_step_usd"] = c.usdPerStep;
    json["cost_per_million_samples_usd"] = c.usdPerSample * 1e6;
    json["cost_per_billion_tokens_usd"] = tokens > 0 ? Json(c.usdPerSample / tokens * 1e9) : Json(nullptr);
    json["total_usd"] = orNull(c.totalUsd);
    json["power_w"] = orNull(c.powerW);
    json["energy_kwh_per_step"] = orNull(c.kwhPerStep);
    json["energy_kwh"] = orNull(c.totalKwh);
    if (c.totalCo2Kg) json["co2_kg"] = *c.totalCo2Kg;
    json["checkpointing"] = goodputJson(c);
    json["scenario"] = c.scenario;
    return json;
}

Json pricesJson(const PlanQuery& query) {
    Json prices = Json::array();
    std::vector<std::string> seen;
    for (const HardwareOption& option : query.hardware)
        for (const NodeGroup& group : option.cluster.nodes) {
            const DevicePrice* price = query.prices.find(group.kind.device.name);
            if (price == nullptr || std::find(seen.begin(), seen.end(), price->device) != seen.end()) continue;
            seen.push_back(price->device);
            prices.push_back({{"device", price->device}, {"usd_per_device_hour", query.prices.usdPerHour(*price, query.commitment)}, {"commitment", nameOf(query.commitment)},
                              {"provenance", price->provenance}, {"source", price->source}, {"date", price->date}});
        }
    return prices;
}

}  // namespace

Json toJson(const PlanQuery& query, const Plan& plan) {
    Json json;
    json["format"] = "ringside-plan";
    json["version"] = 1;
    json["model"] = plan.model;
    json["parameters"] = plan.parameters;
    json["global_batch"] = plan.globalBatch;
    json["global_batch_from"] = plan.globalBatchGiven ? "given" : "default by model size";
    json["seq_len"] = plan.seqLen > 0 ? Json(plan.seqLen) : Json(nullptr);
    json["goal"] = {{"samples", orNull(plan.samples)},
                    {"tokens", plan.samples && plan.tokensPerSample > 0 ? Json(*plan.samples * static_cast<double>(plan.tokensPerSample)) : Json(nullptr)},
                    {"deadline_days", orNull(query.deadlineDays)}, {"target_tokens_per_s", orNull(query.tokensPerSecond)}, {"met", plan.found()}};
    const auto fast = plan.found() ? candidateJson(plan.fastest(), plan) : Json(nullptr);
    const auto cheap = plan.found() ? candidateJson(plan.cheapest(), plan) : Json(nullptr);
    json["fastest"] = fast;
    json["cheapest"] = cheap;
    json["pareto"] = Json::array();
    for (const Candidate& c : plan.pareto) json["pareto"].push_back(candidateJson(c, plan));
    json["nearest_miss"] = plan.nearestMiss ? candidateJson(*plan.nearestMiss, plan) : Json(nullptr);
    json["rejected"] = Json::array();
    for (const Rejection& r : plan.rejected) {
        Json entry = r.candidate ? candidateJson(*r.candidate, plan) : Json{{"hardware", r.hardware}, {"devices", r.devices}, {"strategy", r.strategy}};
        entry["reason"] = r.reason;
        if (r.why == Rejection::Why::OutOfMemory) entry["lacking_bytes"] = r.lackingBytes;
        json["rejected"].push_back(std::move(entry));
    }
    json["assumptions"]["prices"] = pricesJson(query);
    json["assumptions"]["energy"] = {{"idle_fraction", query.energy.idleFraction}, {"communication_fraction", query.energy.communicationFraction},
                                     {"node_overhead_fraction", query.energy.nodeOverheadFraction}, {"pue", query.energy.pue}, {"co2_g_per_kwh", orNull(query.energy.gramsCo2PerKwh)}};
    json["assumptions"]["failures"] = {{"device_mtbf_hours", query.failures.deviceMtbfHours}, {"restart_s", query.failures.restartSeconds}};
    json["assumptions"]["checkpoint"] = {{"seconds", orNull(query.checkpoint.seconds)}, {"gb_per_s", orNull(query.checkpoint.gbPerS)},
                                         {"gb_per_s_per_node_if_not_given", kStorageGbPerSPerNode}, {"async", query.checkpoint.async}};
    json["evaluated"] = plan.evaluated;
    json["warnings"] = plan.warnings;
    return json;
}

}  // namespace ringside
