// HardwareCatalog: the devices, node kinds, networks and clusters that come with the program, by name.
//
// Built from the JSON files below model/catalog/devices and model/catalog/clusters, which carry a source for every figure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/catalog/embedded_catalog.h"
#include "model/hardware/cluster.h"
#include "model/hardware/device.h"

namespace ringside {

/// A node kind with what only the catalogue knows of it.
struct CatalogNodeKind {
    NodeKind kind;
    std::string network;               ///< its usual network, by name
    bool anyDevice = false;            ///< a box of slots: takes any device
    std::vector<std::string> aliases;
    std::string source;
};

class HardwareCatalog {
public:
    /// The catalogue that was compiled in. An error here is a fault of the catalogue's files (a test reads them all).
    static Result<HardwareCatalog> builtin();
    /// The same from given files ("devices/*.json", "clusters/*.json"); others are ignored.
    static Result<HardwareCatalog> fromFiles(const std::vector<EmbeddedFile>& files);

    const std::vector<Device>& devices() const { return devices_; }
    const std::vector<CatalogNodeKind>& nodeKinds() const { return nodeKinds_; }
    const std::vector<NamedNetwork>& networks() const { return networks_; }
    const std::vector<Cluster>& clusters() const { return clusters_; }

    // By name or alias, upper and lower case alike; the error names the nearest name and how to list them.
    Result<Device> findDevice(std::string_view name) const;
    Result<CatalogNodeKind> findNodeKind(std::string_view name) const;
    Result<NamedNetwork> findNetwork(std::string_view name) const;
    Result<Cluster> findCluster(std::string_view name) const;

    /// For clusterFromJson. Copies the catalogue, so that the lookups may outlive it.
    HardwareLookups lookups() const;

    /// What the flags --device, --devices, --devices-per-node, --node and --network describe. Left out, the node kind is the
    /// device's usual one, the devices per node are what the kind holds, and the network is the kind's usual one.
    struct ClusterRequest {
        std::string device = {};                    ///< "" if `nodeKind` is given: its own device
        std::int64_t devices = 1;
        std::int64_t devicesPerNode = 0;            ///< 0: as many as the kind holds
        std::string nodeKind = {};                  ///< "": the device's usual one
        std::string network = {};                   ///< "": the kind's usual one
    };
    Result<Cluster> makeCluster(const ClusterRequest& request) const;

private:
    std::vector<Device> devices_;
    std::vector<CatalogNodeKind> nodeKinds_;
    std::vector<NamedNetwork> networks_;
    std::vector<Cluster> clusters_;
};

/// A cluster by catalogue name, or from a file: a path ending in .json, or "-" for standard input.
Result<Cluster> resolveCluster(const HardwareCatalog& catalog, const std::string& nameOrPath);

}  // namespace ringside
