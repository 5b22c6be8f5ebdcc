#include "sim/player/prices.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <memory>

#include "model/cost/copy_cost.h"
#include "model/cost/published_collectives.h"
#include "sim/collective/message_cost.h"

namespace ringside {
namespace {

/// What a running collective takes from kernels: multiprocessors on a GPU, a share of the rank's own core on a CPU.
struct Interference {
    int channels = 0;
    double cpuFactor = 1;  ///< of a kernel's time
    bool measured = false; ///< then the factor says it all, memory bandwidth included

    auto operator<=>(const Interference&) const = default;
};

/// Prices of the collectives, and which of them interfere alike.
struct CollectivePrices {
    std::vector<CollectivePrice> prices;
    std::vector<Interference> classes;
    std::uint32_t taken = 0;  ///< of them: the core is taken as a whole
};

constexpr std::size_t kShortRunAhead = 4;  // docs/models/host.md

constexpr double kMostShare = 31.0 / 32;  // of a core; a kernel that stands still would never end

/// Factors are kept in steps, so that collectives of many sizes share a class.
double inSteps(double factor) { return std::round(factor * 128) / 128; }

/// docs/models/cpu-interference.md. Where it was measured how long the collective takes beside kernels, it takes its processor time
/// from them in that time. Else the scheduler is taken to be fair: the collective gets the share it needs up to a half; beyond that
/// it is slowed, and kernels never below half their pace. Kernels that sleep neither give nor take.
Interference cpuInterference(CollectivePrice& price, bool kernelsCompute) {
    CollectiveCost cost = price.cost;
    if (!kernelsCompute) cost.cpuSeconds = 0, cost.computeSlowdown = cost.slowdownByCompute = 1;
    constexpr double kFairShare = 0.5;
    double share = cost.seconds > 0 ? std::min(1.0, cost.cpuSeconds / cost.seconds) : 0.0;
    price.slowdownByCompute = std::max(1.0, cost.slowdownByCompute > 0 ? cost.slowdownByCompute : share / kFairShare);
    share = cost.slowdownByCompute > 0 ? std::min(share / price.slowdownByCompute, kMostShare) : std::min(share, kFairShare);
    // Several at a time share the core, or the wire: each is timed with both to itself.
    price.busyShare = std::max(share, cost.seconds > 0 ? cost.transferSeconds / cost.seconds : 0);
    const double kernels = cost.computeSlowdown > 0 ? cost.computeSlowdown : 1 / (1 - share);
    price.idleWhileWaiting = true;
    return {0, inSteps(std::max(1.0, kernels)), true};
}

/// The shape of an axis' communicators. All of them work at the same time, so those that leave a node share its NICs.
GroupShape axisShape(const Cluster& cluster, const CommAxis& axis) {
    GroupShape shape = groupShape(cluster, axis.groupOf(axis.first * axis.stride));
    if (shape.nodes > 1) {
        const std::int64_t devices = cluster.nodes[shape.nodeKind].kind.devices;
        shape.groupsSharingNics = std::max<std::int64_t>(1, devices / shape.ranksPerNode);
    }
    return shape;
}

/// Tokens that travel once: over the network to each node that has any of their experts, from there on over its own links to each such rank. Both at the
/// same time, piece by piece (docs/models/experts.md). `within`: the axis in one node.
CollectiveCost spreadCost(const CollectiveModel& model, const CollectiveModel& within, const GroupShape& shape, const CollectiveWork& work) {
    const double once = work.spread.holdersPerToken(shape.nodes) / work.spread.holdersPerToken(shape.ranks);
    CollectiveCost cost = model.cost(work.op, static_cast<Bytes>(std::llround(once * static_cast<double>(work.bytes()))));
    const double longer = std::max(0.0, within.cost(work.op, work.bytes()).seconds - cost.seconds);
    cost.seconds += longer;
    cost.transferSeconds += longer;
    return cost;
}

/// Host memory and storage are shared by the devices of a node, which use them at the same time.
Time hostWorkTime(const HostWork& work, const Profile& profile, std::int64_t devices, const PricingOptions& options) {
    const double sharing = static_cast<double>(devices);
    switch (work.kind) {
        case HostWork::Kind::TrainingLoop: return Time::fromMicroseconds(profile.hostStepUs.value / options.hostScale);
        case HostWork::Kind::Fixed: return Time::fromSeconds(work.amount / options.hostScale);
        case HostWork::Kind::Memory: return Time::fromSeconds(work.amount * sharing / (profile.hostMemoryGbPerS.value * 1e9 * options.hostScale));
        case HostWork::Kind::Storage: return Time::fromSeconds(work.amount * sharing / (profile.storageGbPerS.value * 1e9 * options.hostScale));
    }
    return {};
}

Result<CollectivePrices> priceCollectives(const Schedule& schedule, const Cluster& cluster, const std::vector<Profile>& profiles, const PricingOptions& options) {
    CollectivePrices out;
    std::vector<CollectiveModel> models;
    std::vector<GroupShape> shapes;
    const auto modelOf = [&](const GroupShape& shape) {
        CollectiveOptions collectiveOptions = options.collectives;
        const Profile& profile = profiles[shape.nodeKind];
        collectiveOptions.nccl.bandwidthScale *= profile.collectiveBandwidth.value * options.networkScale;
        collectiveOptions.nccl.latencyScale *= profile.collectiveLatency.value;
        collectiveOptions.nccl.achieved = ncclAchieved(profile);
        collectiveOptions.gloo.bandwidthScale *= profile.collectiveBandwidth.value * options.networkScale;
        collectiveOptions.gloo.latencyScale *= profile.collectiveLatency.value;
        collectiveOptions.networkScale = options.networkScale;
        if (!profile.collectives.empty()) collectiveOptions.measured = std::make_shared<const std::vector<CollectiveCurve>>(profile.collectives);
        return CollectiveModel::create(cluster, shape, options.backend, collectiveOptions);
    };
    for (const CommAxis& axis : schedule.axes) {
        shapes.push_back(axisShape(cluster, axis));
        TRY(CollectiveModel model, modelOf(shapes.back()));
        models.push_back(std::move(model));
    }
    std::map<Interference, std::uint32_t> classOf;
    out.prices.reserve(schedule.collectives.size());
    for (const CollectiveWork& work : schedule.collectives) {
        CollectivePrice price;
        if (options.level == CollectiveLevel::Message) {
            TRY(const MessageCost message, messageLevelCost(cluster, shapes[work.axis], models[work.axis], work.op, work.bytes()));
            price.cost = message.cost;
        } else if (work.spread.experts > 0 && shapes[work.axis].nodes > 1) {
            const GroupShape& shape = shapes[work.axis];
            TRY(const CollectiveModel within, modelOf({shape.ranksPerNode, 1, shape.ranksPerNode, 1, shape.nodeKind}));
            price.cost = spreadCost(models[work.axis], within, shape, work);
        } else {
            TRY(price.cost, models[work.axis].checkedCost(work.op, work.bytes()));
        }
        if (schedule.axes[work.axis].size > 1) {
            price.cost.latencySeconds += options.extraLatencyUs * 1e-6;
            price.cost.seconds += options.extraLatencyUs * 1e-6;
        }
        price.duration = Time::fromSeconds(price.cost.seconds);
        if (work.op == CollectiveOp::Broadcast && price.cost.algorithm == CollectiveAlgorithm::Binomial) {
            const BroadcastDepth depth = binomialBroadcastDepth(schedule.axes[work.axis].size);
            price.tree = {price.cost.latencySeconds / depth.latencies, price.cost.transferSeconds / depth.transfers};
        }
        Interference interference{price.cost.channels};
        if (price.cost.hasCpuFigures()) interference = cpuInterference(price, options.cpuInterference);
        const auto [it, isNew] = classOf.try_emplace(interference, static_cast<std::uint32_t>(out.classes.size()));
        if (isNew) out.classes.push_back(interference);
        price.interference = it->second;
        out.prices.push_back(price);
    }
    if (schedule.servers.count > 0) {  // a core that messages or the server's work take as a whole
        out.taken = static_cast<std::uint32_t>(out.classes.size());
        out.classes.push_back({0, 1 / (1 - kMostShare), true});
    }
    return out;
}

/// Share of the peak that the device would give while it computes, on a cool device: what the power limit answers to
/// (docs/models/compute.md). Of all ranks of that kind of node together.
double busyShare(const Schedule& schedule, std::size_t nodeGroup, const ComputeCost& cool) {
    std::vector<double> times(schedule.kernels.size());
    for (const RankClass& rankClass : schedule.classes) {
        if (rankClass.nodeGroup != nodeGroup) continue;
        for (const Task& task : schedule.programs[rankClass.program].tasks)
            if (task.kind == TaskKind::Kernel)
                times[task.work] += static_cast<double>(schedule.timesOf(task) * rankClass.ranks.count) / static_cast<double>(task.periodic ? schedule.period : 1);
    }
    double atPeak = 0, seconds = 0;
    for (std::size_t k = 0; k < times.size(); ++k) {
        if (times[k] <= 0) continue;
        atPeak += times[k] * cool.secondsAtPeak(schedule.kernels[k]);
        seconds += times[k] * cool.seconds(schedule.kernels[k]);
    }
    return seconds > 0 ? atPeak / seconds : 1;
}

/// What the slowest of the ranks that wait for each other takes, over what a usual one does (docs/models/stragglers.md).
double slowestFactor(const Schedule& schedule, const Profile& profile) {
    const bool waits = schedule.servers.count == 0 || schedule.servers.discipline == ServerDiscipline::Sync;
    return waits ? 1 + profile.deviceVariation.value * expectedMaximum(schedule.world) : 1;
}

}  // namespace

// ∫ x·n·φ(x)·Φ(x)ⁿ⁻¹ dx by the trapezoid rule, which is exact to many digits for integrands that vanish at both ends.
double expectedMaximum(std::int64_t n) {
    if (n <= 1) return 0;
    constexpr double kStep = 0.02, kEnd = 9;
    double sum = 0;
    for (double x = -kEnd; x <= kEnd; x += kStep) {
        const double below = 0.5 * std::erfc(-x / std::sqrt(2.0)), density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
        sum += x * static_cast<double>(n) * density * std::pow(below, static_cast<double>(n - 1)) * kStep;
    }
    return sum;
}

Time launchTime(const Schedule& schedule, const NodePrices& node, const Task& task) {
    if (task.replayed) return {};
    if (task.kind == TaskKind::Collective || task.kind == TaskKind::Push || task.kind == TaskKind::Pull) return node.collectiveLaunch;
    const int launches = task.kind == TaskKind::Kernel ? schedule.kernels[task.work].launches : 1;
    return node.launch + Time::fromPicoseconds(node.furtherLaunch.picoseconds() * (launches - 1));
}

Result<Prices> priceSchedule(const Schedule& schedule, const Cluster& cluster, const std::vector<Profile>& profiles, DType math,
                             const PricingOptions& options) {
    Prices prices;
    TRY(CollectivePrices collectives, priceCollectives(schedule, cluster, profiles, options));
    prices.collectives = std::move(collectives.prices);
    for (std::size_t g = 0; g < cluster.nodes.size(); ++g) {
        const Profile& profile = profiles[g];
        const Device& device = cluster.nodes[g].kind.device;
        const bool oneCore = cluster.nodes[g].kind.fabric == IntraNodeFabric::Loopback && options.cpuInterference;
        const double amongRanks = oneCore && schedule.world > 1 ? profile.severalRanks.value : 1;
        const ComputeScales scales{options.computeScale, options.memoryScale};
        TRY(const ComputeCost cool, ComputeCost::create(device, profile, math, scales, 0));
        TRY(const ComputeCost compute, ComputeCost::create(device, profile, math, scales, busyShare(schedule, g, cool)));
        prices.waveQuantised = prices.waveQuantised && compute.waveQuantised();
        NodePrices node;
        const double slowest = slowestFactor(schedule, profile);
        node.kernels.reserve(schedule.kernels.size());
        std::vector<double> alone;
        alone.reserve(schedule.kernels.size());
        for (const KernelWork& kernel : schedule.kernels) {
            alone.push_back(compute.seconds(kernel));
            node.kernels.push_back(Time::fromSeconds(alone.back() * slowest * amongRanks));
        }
        for (const Interference& interference : collectives.classes) {
            std::vector<float>& column = node.slowdown.emplace_back();
            column.reserve(schedule.kernels.size());
            for (std::size_t k = 0; k < schedule.kernels.size(); ++k) {
                if (interference.measured) {
                    column.push_back(static_cast<float>(interference.cpuFactor));
                    continue;
                }
                const double beside = compute.seconds(schedule.kernels[k], interference.channels, profile.interference.value);
                column.push_back(static_cast<float>(std::max(1.0, beside / alone[k])));
            }
        }
        CopyOptions copyOptions;
        copyOptions.efficiency = profile.copyEfficiency.value;
        for (const CopyWork& copy : schedule.copies) {
            copyOptions.devicesSharingLink = copy.sharing;
            TRY(const CopyCost cost, CopyCost::create(device, copyOptions));
            node.copies.push_back(Time::fromSeconds(cost.seconds(copy.bytes)));
        }
        const double python = (cluster.nodes[g].kind.cpu == CpuVendor::Arm ? profile.armHost.value : 1) / options.hostScale;
        const double host = launchFactor(profile, options.framework) * python;
        const bool modulesOnly = options.framework == Framework::TransformerEngine;  // collectives are PyTorch's own
        node.launch = Time::fromMicroseconds(profile.launchUs.value * host);
        node.furtherLaunch = Time::fromMicroseconds(profile.launchUs.value * profile.furtherLaunch.value * python);
        node.collectiveLaunch = Time::fromMicroseconds(profile.collectiveLaunchUs.value * (modulesOnly ? python : host));
        node.runAhead = options.framework == Framework::Profiled ? kShortRunAhead : 0;
        for (const HostWork& work : schedule.hostWorks) node.hostWorks.push_back(hostWorkTime(work, profile, cluster.nodes[g].kind.devices, options));
        node.oneCore = oneCore;
        prices.nodes.push_back(std::move(node));
    }
    if (schedule.servers.count > 0) {
        TRY(prices.servers, priceServers(schedule, cluster, profiles, prices.nodes.front().kernels, {options.networkScale, options.hostScale, options.extraLatencyUs, options.cpuInterference}));
        prices.servers.cores.interference = collectives.taken;
    }
    return prices;
}

}  // namespace ringside
