// What a scenario document leaves open, when it is to be run here: the ranks of this machine as its cluster.
#pragma once

#include <optional>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "sim/scenario.h"

namespace ringside {

/// Adds the cluster (CPU ranks of one host, or one per node behind links of `linkBitsPerSecond`) where the document names no hardware,
/// and fp32 where it names no precision. Fails (usage) where it names another number of devices.
Result<Json> localScenario(Json document, int ranks, std::optional<double> linkBitsPerSecond);

/// As ranks play it whose kernels sleep: collectives take nothing from those, and the host does nothing between steps.
Scenario pacedScenario(Scenario scenario);

/// "200mbit", "1gbit", "1e9": bits per second.
Result<double> linkRate(const std::string& text);

}  // namespace ringside
