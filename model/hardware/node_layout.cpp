#include "model/hardware/node_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr double kGb = 1e9;

/// NVLinks between the devices of a DGX-1V, as `nvidia-smi topo -m` prints them there (NV1, NV2): each device has six.
constexpr std::int64_t kCubeMesh[8][8] = {
    {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
    {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
};

/// GB/s between two sockets as NCCL counts it (NCCL 2.30 src/graph/topo.h): Skylake-class Intel, AMD, Arm.
double socketGbPerS(CpuVendor vendor) {
    switch (vendor) {
        case CpuVendor::Intel:
            return 10;
        case CpuVendor::Amd:
            return 16;
        case CpuVendor::Arm:
            return 6;
    }
    return 6;
}

bool hasDeviceLinks(IntraNodeFabric fabric) {
    return fabric == IntraNodeFabric::NvSwitch || fabric == IntraNodeFabric::NvLinkMesh || fabric == IntraNodeFabric::XgmiMesh;
}

bool hasPcieSwitches(IntraNodeFabric fabric) { return hasDeviceLinks(fabric) || fabric == IntraNodeFabric::PcieSwitch; }

std::uint64_t key(std::uint32_t from, std::uint32_t to) { return (std::uint64_t{from} << 32) | to; }

}  // namespace

Result<NodeLayout> NodeLayout::create(const NodeKind& kind) {
    NodeLayout layout;
    layout.fabric_ = kind.fabric;
    layout.devices_ = kind.devices;
    layout.nics_ = std::min(kind.nics.count, kind.devices);
    if (layout.nics_ > 0) {
        layout.nicBytesPerS_ = kind.nics.gbitPerS / 8 * kGb * static_cast<double>(kind.nics.count) / static_cast<double>(layout.nics_);
        layout.nicLatencyS_ = kind.nics.latencyUs * 1e-6;
    }
    layout.switches_ = hasPcieSwitches(kind.fabric) ? (kind.devices + kind.devicesPerPcieSwitch - 1) / kind.devicesPerPcieSwitch : 0;
    const std::int64_t belowCpu = layout.switches_ > 0 ? layout.switches_ : kind.devices;
    layout.cpus_ = kind.fabric == IntraNodeFabric::Loopback ? 1 : std::min(kind.cpuSockets, belowCpu);

    double hostRate = 0;
    if (kind.fabric == IntraNodeFabric::Loopback) {
        TRY(hostRate, require(kind.device.loopbackGbPerS, kind.device, "loopback_gb_per_s"));
    } else if (hasDeviceLinks(kind.fabric)) {
        // Beside NVLink the PCIe tree only leads to the NICs; where its rate is not published it must not limit them.
        hostRate = pcieRateGbPerS(kind.device).value_or(std::max(1.0, layout.nicBytesPerS_ / kGb * static_cast<double>(kind.devicesPerPcieSwitch)));
    } else {
        TRY(hostRate, pcieRateGbPerS(kind.device));
    }
    layout.addHostTree(kind, hostRate * kGb);
    TRY_VOID(layout.addDeviceLinks(kind));
    layout.indexLinks();
    return layout;
}

void NodeLayout::connect(std::uint32_t a, std::uint32_t b, LinkKind kind, double bytesPerS) {
    links_.push_back({a, b, kind, bytesPerS});
    links_.push_back({b, a, kind, bytesPerS});
}

void NodeLayout::addHostTree(const NodeKind& kind, double bytesPerS) {
    const auto add = [&](VertexKind vertex, std::int64_t count) { vertices_.insert(vertices_.end(), static_cast<std::size_t>(count), vertex); };
    add(VertexKind::Device, devices_);
    add(VertexKind::Nic, nics_);
    add(VertexKind::PcieSwitch, switches_);
    add(VertexKind::Cpu, cpus_);
    parent_.assign(vertices_.size(), 0);
    const auto switchVertex = [&](std::int64_t i) { return static_cast<std::uint32_t>(devices_ + nics_ + i); };
    const auto cpuVertex = [&](std::int64_t i) { return static_cast<std::uint32_t>(devices_ + nics_ + switches_ + i); };
    const auto attach = [&](std::uint32_t child, std::uint32_t parent, LinkKind link, double rate) {
        parent_[child] = parent;
        connect(child, parent, link, rate);
    };
    const LinkKind link = kind.fabric == IntraNodeFabric::Loopback ? LinkKind::Loopback : LinkKind::Pcie;

    for (std::int64_t s = 0; s < switches_; ++s) attach(switchVertex(s), cpuVertex(s * cpus_ / switches_), LinkKind::Pcie, bytesPerS);
    for (std::int64_t d = 0; d < devices_; ++d)
        attach(static_cast<std::uint32_t>(d), switches_ > 0 ? switchVertex(d / kind.devicesPerPcieSwitch) : cpuVertex(d * cpus_ / devices_), link,
               bytesPerS);
    for (std::int64_t n = 0; n < nics_; ++n) {
        const std::int64_t device = (n * devices_ + nics_ - 1) / nics_;  // the first device that this NIC serves
        const std::uint32_t above = parent_[static_cast<std::uint32_t>(device)];
        // Without GPUDirect data crosses host memory, so the NIC hangs below the CPU. A NIC's slot never limits the NIC.
        const std::uint32_t parent = switches_ > 0 && !kind.nics.gpuDirect ? parent_[above] : above;
        attach(nicVertex(n), parent, LinkKind::Pcie, std::max(bytesPerS, nicBytesPerS_));
    }
    for (std::int64_t a = 0; a < cpus_; ++a)
        for (std::int64_t b = a + 1; b < cpus_; ++b) connect(cpuVertex(a), cpuVertex(b), LinkKind::Socket, socketGbPerS(kind.cpu) * kGb);
}

Result<void> NodeLayout::addDeviceLinks(const NodeKind& kind) {
    if (!hasDeviceLinks(kind.fabric)) return {};
    if (devices_ == 1 && kind.fabric != IntraNodeFabric::NvSwitch) return {};
    TRY(const double total, linkRateGbPerS(kind.device));
    const double rate = total * kGb;
    if (kind.fabric == IntraNodeFabric::NvSwitch) {
        const auto hub = static_cast<std::uint32_t>(vertices_.size());
        vertices_.push_back(VertexKind::NvSwitch);
        for (std::int64_t d = 0; d < devices_; ++d) connect(static_cast<std::uint32_t>(d), hub, LinkKind::NvLink, rate);
        return {};
    }
    const bool cubeMesh = kind.fabric == IntraNodeFabric::NvLinkMesh && devices_ <= 8 && kind.device.nvlinks == 6;
    const LinkKind link = kind.fabric == IntraNodeFabric::NvLinkMesh ? LinkKind::NvLink : LinkKind::Xgmi;
    // A full mesh has one link per pair: a partly filled node leaves links idle instead of widening the others.
    const double perPair = rate / static_cast<double>(std::max(kind.device.nvlinks.value_or(0), devices_ - 1));
    for (std::int64_t a = 0; a < devices_; ++a)
        for (std::int64_t b = a + 1; b < devices_; ++b) {
            const double pairRate = cubeMesh ? rate / 6 * static_cast<double>(kCubeMesh[a][b]) : perPair;
            if (pairRate > 0) connect(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), link, pairRate);
        }
    return {};
}

void NodeLayout::indexLinks() {
    byEnds_.reserve(links_.size());
    for (std::uint32_t i = 0; i < links_.size(); ++i) byEnds_.emplace_back(key(links_[i].from, links_[i].to), i);
    std::sort(byEnds_.begin(), byEnds_.end());
}

bool NodeLayout::linked(std::uint32_t a, std::uint32_t b) const {
    const auto found = std::lower_bound(byEnds_.begin(), byEnds_.end(), std::pair{key(a, b), std::uint32_t{0}});
    return found != byEnds_.end() && found->first == key(a, b);
}

std::uint32_t NodeLayout::linkBetween(std::uint32_t from, std::uint32_t to) const {
    const auto found = std::lower_bound(byEnds_.begin(), byEnds_.end(), std::pair{key(from, to), std::uint32_t{0}});
    CHECK(found != byEnds_.end() && found->first == key(from, to));
    return found->second;
}

std::int64_t NodeLayout::indexOf(std::uint32_t vertex) const {
    std::int64_t index = vertex;
    for (const std::int64_t count : {devices_, nics_, switches_, cpus_}) {
        if (index < count) return index;
        index -= count;
    }
    return index;
}

NodeLayout::Path NodeLayout::hostPath(std::uint32_t from, std::uint32_t to) const {
    // Both climb to their CPU; the way turns where the two climbs meet, or crosses between the sockets.
    const auto climb = [&](std::uint32_t vertex) {
        Path path{vertex};
        while (vertices_[path.back()] != VertexKind::Cpu) path.push_back(parentOf(path.back()));
        return path;
    };
    Path up = climb(from), down = climb(to);
    while (up.size() > 1 && down.size() > 1 && up[up.size() - 2] == down[down.size() - 2]) up.pop_back(), down.pop_back();
    if (up.back() == down.back()) down.pop_back();
    up.insert(up.end(), down.rbegin(), down.rend());
    return up;
}

NodeLayout::Path NodeLayout::devicePath(std::int64_t from, std::int64_t to) const {
    const auto a = static_cast<std::uint32_t>(from), b = static_cast<std::uint32_t>(to);
    if (a == b) return {a};
    if (fabric_ == IntraNodeFabric::NvSwitch) return {a, static_cast<std::uint32_t>(vertices_.size() - 1), b};
    if (!hasDeviceLinks(fabric_)) return hostPath(a, b);
    if (linked(a, b)) return {a, b};
    // Cube mesh: through the common neighbour whose thinner link is the widest, the lowest number among equals.
    std::uint32_t best = a;
    double bestRate = 0;
    for (std::uint32_t m = 0; m < static_cast<std::uint32_t>(devices_); ++m) {
        if (m == a || m == b || !linked(a, m) || !linked(m, b)) continue;
        const double rate = std::min(links_[linkBetween(a, m)].bytesPerS, links_[linkBetween(m, b)].bytesPerS);
        if (rate > bestRate) best = m, bestRate = rate;
    }
    if (bestRate > 0) return {a, best, b};
    return hostPath(a, b);
}

NodeLayout::Path NodeLayout::nicPath(std::int64_t device, std::int64_t nic) const {
    Path best = hostPath(static_cast<std::uint32_t>(device), nicVertex(nic));
    if (!hasDeviceLinks(fabric_)) return best;
    const std::int64_t first = (nic * devices_ + nics_ - 1) / nics_;  // the devices that the NIC serves are near to it
    for (std::int64_t d = first; d < devices_ && nicOf(d) == nic; ++d) {
        if (d == device) continue;
        Path path = devicePath(device, d);
        const Path tail = hostPath(static_cast<std::uint32_t>(d), nicVertex(nic));
        path.insert(path.end(), tail.begin() + 1, tail.end());
        if (path.size() < best.size()) best = std::move(path);
    }
    return best;
}

}  // namespace ringside
