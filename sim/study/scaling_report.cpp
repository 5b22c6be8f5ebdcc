// How a scaling study is handed on: JSON, CSV, a chart.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/study/scaling.h"

namespace ringside {
namespace {

Json toJson(const ScalingPoint& point) {
    Json json;
    json["devices"] = point.devices;
    json["strategy"] = point.strategy;
    json["step_time_s"] = point.stepSeconds;
    json["samples_per_s"] = point.samplesPerSecond;
    json["tokens_per_s"] = point.tokensPerSecond > 0 ? Json(point.tokensPerSecond) : Json(nullptr);
    json["speedup"] = point.speedUp ? Json(point.speedUp->speedup) : Json(nullptr);
    json["efficiency"] = point.speedUp ? Json(point.speedUp->efficiency) : Json(nullptr);
    json["exposed_communication_s"] = point.exposedSeconds;
    json["peak_memory_bytes"] = point.peakBytes;
    json["verdict"] = nameOf(point.verdict);
    json["mfu"] = point.mfu;
    json["micro_batch"] = point.microBatch;
    json["grad_accum"] = point.gradAccum;
    json["global_batch"] = point.globalBatch;
    return json;
}

std::string counted(std::int64_t devices) { return fmt::format("{} device{}", formatCount(devices), devices == 1 ? "" : "s"); }

}  // namespace

Json toJson(const ScalingStudy& study) {
    Json json;
    json["format"] = "ringside-scaling";
    json["version"] = 1;
    json["mode"] = nameOf(study.mode);
    json["model"] = study.model;
    json["device"] = study.device;
    json["baseline"]["devices"] = study.baseline;
    json["baseline"]["points"] = Json::array();
    for (const ScalingPoint& point : study.baselines) json["baseline"]["points"].push_back(toJson(point));
    json["points"] = Json::array();
    for (const ScalingPoint& point : study.points) json["points"].push_back(toJson(point));
    json["skipped"] = Json::array();
    for (const SkippedPoint& skipped : study.skipped)
        json["skipped"].push_back({{"devices", skipped.devices}, {"strategy", skipped.strategy}, {"reason", skipped.reason}});
    return json;
}

std::string toCsv(const ScalingStudy& study) {
    std::string text = "mode,baseline_devices";
    const Json names = toJson(ScalingPoint{});
    for (const auto& entry : names.items()) text += "," + entry.key();
    text += "\n";
    for (const ScalingPoint& point : study.points) {
        text += fmt::format("{},{}", nameOf(study.mode), study.baseline);
        const Json values = toJson(point);
        for (const Json& value : values)
            text += "," + (value.is_string() ? value.get<std::string>() : value.is_null() ? std::string() : value.dump());
        text += "\n";
    }
    return text;
}

Chart chartOf(const ScalingStudy& study, ScalingFigure figure) {
    const bool efficiency = figure == ScalingFigure::Efficiency;
    Chart chart;
    chart.title = fmt::format("{} scaling of {}", study.mode == ScalingMode::Weak ? "Weak" : "Strong", study.model);
    chart.subtitle = fmt::format("{}; {}, baseline {}", study.device,
                                 study.mode == ScalingMode::Weak ? "batch per device fixed" : "global batch fixed", counted(study.baseline));
    chart.xLabel = "devices";
    chart.yLabel = efficiency ? "scaling efficiency" : "speed-up";
    chart.hollowMeans = "does not fit in memory";
    chart.log2X = true;
    chart.log2Y = !efficiency;
    chart.percentY = efficiency;
    double fewest = static_cast<double>(study.baseline), most = fewest;
    for (const ScalingPoint& point : study.points) {
        if (!point.speedUp) continue;
        if (chart.series.empty() || chart.series.back().name != point.strategy) chart.series.push_back({point.strategy, {}, true, false});
        const double x = static_cast<double>(point.devices);
        fewest = std::min(fewest, x);
        most = std::max(most, x);
        chart.series.back().points.push_back(
            {x, efficiency ? point.speedUp->efficiency : point.speedUp->speedup, point.verdict == MemoryVerdict::OutOfMemory,
             fmt::format("{} on {}: {} per step, {:.1f} % efficient, speed-up {:.3g}, {}", point.strategy, counted(point.devices),
                         formatSeconds(point.stepSeconds), point.speedUp->efficiency * 100, point.speedUp->speedup, nameOf(point.verdict))});
    }
    const double base = static_cast<double>(study.baseline);
    ChartSeries ideal{"ideal", {}, true, true};
    for (const double x : {fewest, most}) ideal.points.push_back({x, efficiency ? 1 : x / base, false, {}});
    chart.series.push_back(std::move(ideal));
    return chart;
}

}  // namespace ringside
