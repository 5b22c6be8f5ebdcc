#include "calibrate/execute/local_scenario.h"

#include <charconv>

#include <fmt/format.h>

namespace ringside {

Result<Json> localScenario(Json document, int ranks, std::optional<double> linkBitsPerSecond) {
    if (!document.contains("device") && !document.contains("cluster") && !document.contains("node")) document["device"] = "cpu";
    if (document.contains("devices") && document["devices"].is_number_integer() && document["devices"] != ranks)
        return failure(ErrorCode::Usage, "--devices", fmt::format("{} devices, but the run has {} ranks; leave --devices out, or start as many ranks", document["devices"].dump(), ranks));
    if (!document.contains("cluster")) document["devices"] = ranks;
    if (linkBitsPerSecond && document.contains("device") && document["device"] == "cpu") {
        // Each rank is a node of its own, with one network card of the link's rate.
        document.erase("device");
        document.erase("devices");
        document["cluster"] = {{"format", "ringside-cluster"}, {"version", 1}, {"name", "local ranks behind a shaped link"},
                               {"nodes",
                                Json::array({{{"count", ranks},
                                              {"kind", {{"name", "shaped"}, {"device", "cpu"}, {"devices", 1}, {"fabric", "loopback"}, {"nics", {{"count", 1}, {"gbit_per_s", *linkBitsPerSecond / 1e9}, {"latency_us", 0}, {"gpu_direct", false}}}}}}})},
                               {"network", {{"name", "bridge"}, {"rail_optimised", false}, {"nodes_per_leaf", 1024}}}};
    }
    if (!document.contains("training") || !document["training"].contains("precision")) document["training"]["precision"] = "fp32";
    return document;
}

Scenario pacedScenario(Scenario scenario) {
    scenario.pricing.cpuInterference = false;
    for (Profile& profile : scenario.profiles) profile.hostStepUs.value = 0;
    return scenario;
}

Result<double> linkRate(const std::string& text) {
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string unit(rest, text.data() + text.size());
    const double scale = unit.empty() || unit == "bit" ? 1 : unit == "kbit" ? 1e3 : unit == "mbit" ? 1e6 : unit == "gbit" ? 1e9 : 0;
    if (error != std::errc() || scale == 0 || value * scale < 1e5 || value * scale > 1e12)
        return failure(ErrorCode::Usage, "--link", fmt::format("'{}' is no rate; expected one from 100kbit to 1000gbit, such as 200mbit or 1gbit", text));
    return value * scale;
}

}  // namespace ringside
