// Clusters for the collective tests, written out by hand so that the tests do not depend on the catalogue.
#pragma once

#include "model/hardware/cluster.h"

namespace ringside::testing {

inline Device gpu(std::string name, GpuArch arch, double capability, double nvlink, std::int64_t links, double pcie) {
    Device d;
    d.name = std::move(name);
    d.arch = arch;
    d.computeCapability = capability;
    if (nvlink > 0) {
        d.nvlinkNcclGbPerS = nvlink;
        d.nvlinks = links;
    }
    d.pcieNcclGbPerS = pcie;
    return d;
}
inline Device v100() { return gpu("v100", GpuArch::Volta, 7.0, 120, 6, 12); }
inline Device a100() { return gpu("a100", GpuArch::Ampere, 8.0, 240, 12, 24); }
inline Device h100() { return gpu("h100", GpuArch::Hopper, 9.0, 370.8, 18, 48); }
inline Device b200() { return gpu("b200", GpuArch::Blackwell, 10.0, 721.8, 18, 48); }

inline Cluster clusterOf(const Device& device, std::int64_t nodes, std::int64_t perNode, std::int64_t nics = 8, double gbit = 200,
                         CpuVendor cpu = CpuVendor::Amd, IntraNodeFabric fabric = IntraNodeFabric::NvSwitch) {
    NodeKind kind;
    kind.name = "node";
    kind.device = device;
    kind.devices = perNode;
    kind.fabric = fabric;
    kind.cpu = cpu;
    kind.nics.count = nics;
    kind.nics.gbitPerS = gbit;
    Cluster cluster;
    cluster.name = "test";
    cluster.nodes = {NodeGroup{kind, nodes}};
    return cluster;
}

inline GroupShape wholeNodes(std::int64_t nodes, std::int64_t perNode) {
    GroupShape g;
    g.ranks = nodes * perNode;
    g.nodes = nodes;
    g.ranksPerNode = perNode;
    return g;
}

}  // namespace ringside::testing
