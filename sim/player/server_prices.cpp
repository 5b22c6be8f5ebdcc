#include "sim/player/server_prices.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/cost/copy_cost.h"
#include "model/cost/measured_collectives.h"
#include "model/hardware/topology.h"

namespace ringside {
namespace {

/// One NIC, as a device sees it: through its PCIe port.
double nicBytesPerS(const NodeKind& kind) {
    const double nic = kind.nics.gbitPerS / 8 * 1e9;
    return kind.device.pcieNcclGbPerS ? std::min(nic, *kind.device.pcieNcclGbPerS * 1e9) : nic;
}
double nodeBytesPerS(const NodeKind& kind) { return static_cast<double>(kind.nics.count) * nicBytesPerS(kind); }

/// Of a server on device 0: what comes in over the links to its neighbours, from the node's own graph.
Result<void> priceNeighbours(ServerPort& port, const NodeKind& kind) {
    Cluster node;
    node.nodes.push_back({kind, 1});
    TRY(const Topology topology, buildTopology(node));
    std::set<LinkId> lastLinks;
    double slowest = 0;
    for (std::int64_t rank = 1; rank < kind.devices; ++rank) {
        const Route way = route(topology, rank, 0);
        lastLinks.insert(way.links.back());
        const double rate = bottleneck(topology, way);
        slowest = slowest > 0 ? std::min(slowest, rate) : rate;
        port.latency = std::max(port.latency, Time::fromSeconds(way.latencyS));
    }
    for (const LinkId link : lastLinks) port.bytesPerS += topology.link(link).bytesPerS;
    port.flowBytesPerS.assign(1, slowest);
    return {};
}

/// Of a server in host memory: the PCIe uplinks of the node, one for the devices below a switch.
Result<void> priceUplinks(ServerPort& port, const NodeKind& kind, const Profile& profile) {
    CopyOptions options;
    options.efficiency = profile.copyEfficiency.value;
    TRY(const CopyCost cost, CopyCost::create(kind.device, options));
    const double fixed = options.fixedUs * 1e-6;
    constexpr Bytes kGigabyte = 1'000'000'000;
    const double rate = 1e9 / (cost.seconds(kGigabyte) - fixed);
    const bool switched = kind.fabric != IntraNodeFabric::PcieHost && kind.fabric != IntraNodeFabric::Loopback;
    const std::int64_t perUplink = switched ? std::max<std::int64_t>(1, kind.devicesPerPcieSwitch) : 1;
    port.bytesPerS = rate * static_cast<double>((kind.devices + perUplink - 1) / perUplink);
    port.flowBytesPerS.assign(1, rate);
    port.latency = Time::fromSeconds(fixed);
    return {};
}

/// Bytes per second of the longest message measured, its fixed part aside.
double rateOfLongest(const CollectiveCurve& curve) {
    const MeasuredTime time = measuredTime(curve, curve.points.back().bytes);
    return time.seconds > time.fixedSeconds ? static_cast<double>(curve.points.back().bytes) / (time.seconds - time.fixedSeconds) : 0;
}

/// Messages between two processes, where calibration has timed them over the port's link: their pace, and what they take from a core.
/// `nominal`: what the link is said to carry; it carries frames and acknowledgements too, for all flows of a port alike. 0: nothing is said.
void useMeasuredMessages(ServerPort& port, ServerCores& cores, const Profile& profile, const std::string& link, std::int64_t ranks, double nominal) {
    const MeasuredCollectives measured(profile.collectives, CollectiveBackend::Gloo, link, 2);
    const CollectiveCurve* curve = measured.curveFor(CollectiveOp::SendRecv);
    if (!curve) return;
    const double rate = rateOfLongest(*curve);
    if (rate <= 0) return;
    const MeasuredCollectives measuredBothWays(profile.collectives, CollectiveBackend::Gloo, bothWaysOf(link), ranks);
    const CollectiveCurve* bothWays = measuredBothWays.curveFor(CollectiveOp::SendRecv);
    if (bothWays && bothWays->link == bothWaysOf(link) && rateOfLongest(*bothWays) > 0) port.bothWaysSlowdown = std::max(1.0, rate / rateOfLongest(*bothWays));
    port.bytesPerS = nominal > 0 ? port.bytesPerS * rate / nominal : rate;
    for (double& flow : port.flowBytesPerS) flow = nominal > 0 ? flow * rate / nominal : rate;
    port.latency = Time::fromSeconds(measuredTime(*curve, curve->points.back().bytes).fixedSeconds);
    cores.shared = true;
    cores.perCall = curve->cpuSecondsPerCall;
    cores.perByte = curve->cpuSecondsPerByte;
    cores.copyPerByte = 2 / (profile.hostMemoryGbPerS.value * 1e9);
}

Result<void> requireNics(const NodeKind& kind) {
    if (nodeBytesPerS(kind) > 0) return {};
    return badInput("cluster", fmt::format("parameter servers are reached over the network, but node kind '{}' has no NICs; choose a network (--network), or a strategy whose "
                                           "server is in the node (ps-device0, ps-host)",
                                           kind.name));
}

}  // namespace

Result<ServerPrices> priceServers(const Schedule& schedule, const Cluster& cluster, const std::vector<Profile>& profiles, const std::vector<Time>& kernels,
                                  const ServerScales& scales) {
    const ParameterServers& servers = schedule.servers;
    const NodeKind& home = cluster.nodes.front().kind;  // of rank 0; dedicated server nodes are like it
    const Profile& profile = profiles.front();
    const double count = static_cast<double>(servers.count);
    ServerPrices prices;
    prices.localRanks = servers.placement == ServerPlacement::Nodes ? 0 : home.devices;

    if (servers.placement == ServerPlacement::Device && home.devices > 1) TRY_VOID(priceNeighbours(prices.local, home));
    if (servers.placement == ServerPlacement::Host) TRY_VOID(priceUplinks(prices.local, home, profile));
    if (prices.localRanks < schedule.world) {
        // Workers of a node share its NICs, and talk to all servers at once.
        TRY_VOID(requireNics(home));
        const double device0 = nicBytesPerS(home);
        prices.remote.bytesPerS = servers.placement == ServerPlacement::Device ? device0 : nodeBytesPerS(home);
        prices.remote.latency = Time::fromMicroseconds((home.nics.latencyUs + cluster.network.switchLatencyUs) * profile.collectiveLatency.value);
        for (const NodeGroup& group : cluster.nodes) {
            TRY_VOID(requireNics(group.kind));
            prices.remote.flowBytesPerS.push_back(nodeBytesPerS(group.kind) / static_cast<double>(group.kind.devices) / count);
        }
    }
    if (home.fabric == IntraNodeFabric::Loopback) {  // processes of a host
        if (!prices.local.flowBytesPerS.empty()) useMeasuredMessages(prices.local, prices.cores, profile, "loopback", schedule.world, 0);
        if (!prices.remote.flowBytesPerS.empty() && cluster.nodeCount() > 1)
            useMeasuredMessages(prices.remote, prices.cores, profile, linkNameOf(cluster, groupShape(cluster, {0, home.devices, 2})), schedule.world, nicBytesPerS(home));
        prices.cores.serverOnRank0 = servers.placement != ServerPlacement::Nodes;
        prices.cores.shared = prices.cores.shared && scales.cores;
    }
    const double network = profile.collectiveBandwidth.value * scales.network;
    for (ServerPort* port : {&prices.local, &prices.remote}) {
        const double scale = port == &prices.local && servers.placement == ServerPlacement::Host ? scales.network : network;
        port->bytesPerS *= scale;
        port->latency += Time::fromMicroseconds(scales.extraLatencyUs);
        for (double& rate : port->flowBytesPerS) rate *= scale;
    }

    const double hostBytesPerS = profile.hostMemoryGbPerS.value * 1e9 * scales.host;
    for (const ServerKey& key : servers.keys) {
        if (servers.placement == ServerPlacement::Device) {
            prices.sum.push_back(kernels[key.sumKernel]);
            Time apply;
            for (std::uint32_t k = 0; k < key.applyKernels; ++k) apply += kernels[key.firstApply + k];
            // Parameters in several tensors travel in one line.
            if (prices.cores.shared) apply += prices.cores.copyTime(static_cast<Bytes>(key.sumBytes / 3));
            prices.apply.push_back(apply);
        } else {
            // Where workers are processors, the server's is one like theirs: it adds at their pace.
            const double bytesPerS = home.fabric == IntraNodeFabric::Loopback ? key.sumBytes / kernels[key.sumKernel].seconds() : hostBytesPerS;
            prices.sum.push_back(Time::fromSeconds(key.sumBytes / count / bytesPerS));
            prices.apply.push_back(Time::fromSeconds(key.applyBytes / count / bytesPerS));
        }
    }
    return prices;
}

}  // namespace ringside
