// Energy: what a training step draws from the wall (docs/models/energy.md).
#pragma once

#include <optional>

#include "model/base/result.h"
#include "model/hardware/cluster.h"
#include "traces/analysis/breakdown.h"

namespace ringside {

/// Shares of the step, each in [0, 1]; the rest is waiting.
struct Activity {
    double compute = 0;        ///< kernels run (optimizer included), communication beside them or not
    double communication = 0;  ///< only communication runs
};
Activity activityOf(const Breakdown& breakdown);

/// Defaults and their sources: docs/models/energy.md.
struct EnergyModel {
    double idleFraction = 0.10;           ///< of the TDP, drawn by a device that waits
    double communicationFraction = 0.40;  ///< of the span from idle to TDP, while only communication runs
    double nodeOverheadFraction = 0.50;   ///< of the devices' TDP: processors, memory, NICs, fans, power supplies
    double pue = 1.2;                     ///< power usage effectiveness: facility over machines, ≥ 1
    std::optional<double> gramsCo2PerKwh; ///< of the grid; empty: CO₂ is not stated
};

/// idle + (TDP − idle) · (compute + communicationFraction · communication), watts.
double devicePowerW(double tdpW, const Activity& activity, const EnergyModel& model);

/// All devices, their nodes and the facility, watts. Error: a device whose power draw is not known.
Result<double> clusterPowerW(const Cluster& cluster, const Activity& activity, const EnergyModel& model);

constexpr double kilowattHours(double watts, double seconds) { return watts * seconds / 3.6e6; }

}  // namespace ringside
