#include "sim/study/energy.h"

namespace ringside {

Activity activityOf(const Breakdown& breakdown) {
    const double step = breakdown.step.seconds();
    if (step <= 0) return {};
    return {(breakdown.compute + breakdown.optimizer).seconds() / step, breakdown.communicationExposed.seconds() / step};
}

double devicePowerW(double tdpW, const Activity& activity, const EnergyModel& model) {
    const double idle = model.idleFraction * tdpW;
    return idle + (tdpW - idle) * (activity.compute + model.communicationFraction * activity.communication);
}

Result<double> clusterPowerW(const Cluster& cluster, const Activity& activity, const EnergyModel& model) {
    double machines = 0;
    for (const NodeGroup& group : cluster.nodes) {
        const Device& device = group.kind.device;
        TRY(double tdp, require(device.tdpW, device, "tdp_w"));
        if (device.powerLimitW) tdp = std::min(tdp, *device.powerLimitW);
        machines += static_cast<double>(group.count * group.kind.devices) * (devicePowerW(tdp, activity, model) + model.nodeOverheadFraction * tdp);
    }
    return machines * model.pue;
}

}  // namespace ringside
