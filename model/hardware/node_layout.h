// NodeLayout: the vertices and links inside one node of a kind, and the ways through them. Private to topology.cpp.
//
// Vertices are numbered: devices, NICs, PCIe switches, CPUs, then the NVSwitch. Of n NICs beside d devices, min(n, d)
// vertices are drawn that share the NICs' joint rate evenly.
#pragma once

#include <cstdint>
#include <vector>

#include "model/hardware/topology.h"

namespace ringside {

class NodeLayout {
public:
    struct Link {
        std::uint32_t from = 0, to = 0;
        LinkKind kind = LinkKind::Pcie;
        double bytesPerS = 0;
    };
    using Path = std::vector<std::uint32_t>;  ///< local vertices, both ends included

    /// Fails where the fabric's rate is not known.
    static Result<NodeLayout> create(const NodeKind& kind);

    const std::vector<VertexKind>& vertices() const { return vertices_; }
    const std::vector<Link>& links() const { return links_; }
    std::int64_t nics() const { return nics_; }
    double nicBytesPerS() const { return nicBytesPerS_; }   ///< of one NIC vertex
    double nicLatencyS() const { return nicLatencyS_; }     ///< NIC to NIC through one switch
    std::uint32_t nicVertex(std::int64_t nic) const { return static_cast<std::uint32_t>(devices_ + nic); }
    std::int64_t indexOf(std::uint32_t vertex) const;       ///< counted within its kind
    /// The NIC vertex nearest to a device. REQUIRES: nics() > 0.
    std::int64_t nicOf(std::int64_t device) const { return device * nics_ / devices_; }

    Path devicePath(std::int64_t from, std::int64_t to) const;
    /// Device to NIC: over PCIe, or over NVLink to a device beside the NIC where that is shorter.
    Path nicPath(std::int64_t device, std::int64_t nic) const;
    /// The link between two neighbouring vertices. O(log links).
    std::uint32_t linkBetween(std::uint32_t from, std::uint32_t to) const;

private:
    void connect(std::uint32_t a, std::uint32_t b, LinkKind kind, double bytesPerS);
    void addHostTree(const NodeKind& kind, double pcieBytesPerS);
    Result<void> addDeviceLinks(const NodeKind& kind);
    void indexLinks();
    /// PCIe parent of a device, NIC or switch.
    std::uint32_t parentOf(std::uint32_t vertex) const { return parent_[vertex]; }
    Path hostPath(std::uint32_t from, std::uint32_t to) const;
    bool linked(std::uint32_t a, std::uint32_t b) const;

    std::int64_t devices_ = 0, nics_ = 0, switches_ = 0, cpus_ = 0;
    IntraNodeFabric fabric_ = IntraNodeFabric::NvSwitch;
    double nicBytesPerS_ = 0, nicLatencyS_ = 0;
    std::vector<VertexKind> vertices_;
    std::vector<std::uint32_t> parent_;
    std::vector<Link> links_;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> byEnds_;  ///< (from << 32 | to) → link, sorted
};

}  // namespace ringside
