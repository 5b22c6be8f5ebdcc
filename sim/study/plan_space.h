// PlanSpace: what a plan chooses from: hardware and how many devices, strategies, and a few settings of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "sim/scenario.h"
#include "sim/strategy/strategy.h"

namespace ringside {

/// A device kind, a node kind or a cluster, and the device counts to try.
struct HardwareOption {
    enum class Kind : std::uint8_t { Device, Node, Cluster };
    std::string name;                  ///< as the catalogue (or the cluster) spells it
    Kind kind = Kind::Device;
    Cluster cluster;                   ///< Cluster: the whole of it; else one full node
    Json reference;                    ///< Cluster: its name or path, or all of it if it was read from standard input
    std::vector<std::int64_t> counts;  ///< ascending

    std::int64_t devicesPerNode() const { return cluster.nodes.front().kind.devices; }
};

struct CountRequest {
    std::vector<std::int64_t> given;  ///< these; empty: doubling up to `most`
    std::int64_t most = 0;            ///< 0: kDefaultMostDevices for device and node kinds, the whole of a cluster
};
constexpr std::int64_t kDefaultMostDevices = 1024;

/// `name` is looked up among devices, node kinds and clusters, or is the path of a cluster file. `base` may hold
/// "devices_per_node" and "network".
Result<HardwareOption> hardwareOption(const std::string& name, const CountRequest& counts, const Json& base, const Catalogs& catalogs);

/// Powers of two below a node, then whole nodes doubling, up to `most`: 1, 2, 4, 8, 16, … for nodes of 8.
std::vector<std::int64_t> doublingCounts(std::int64_t devicesPerNode, std::int64_t most);

/// Puts `count` devices of the option into a scenario document. Error: a cluster of mixed nodes that should be cut.
Result<void> layHardware(Json& document, const HardwareOption& option, std::int64_t count);

/// Those that production runs use, all of which train the same: a plan considers them unless others are named. Parameter servers
/// on machines of their own, stale and local updates change the bill or the training.
bool isPlannedByDefault(std::string_view strategy);

/// Every combination of planning choices for the knobs that the strategy has, as objects of scenario keys. Knobs in `fixed`
/// (the scenario's own "strategy") stay as they are given. The first is the most usual one.
std::vector<Json> knobSettings(const Strategy& strategy, const Json& fixed, std::int64_t devices, std::int64_t devicesPerNode);

/// Devices that hold one replica of the model under these knobs: tp · pp · cp.
std::int64_t modelParallelDevices(const Json& knobs);

/// Samples per step where none is given: tokens by model size as GPT-3 was trained (Brown et al. 2020, Table 2.1), as a power
/// of two of sequences; 1,024 for models that read no text.
std::int64_t defaultGlobalBatch(std::int64_t parameters, std::int64_t tokensPerSample);

}  // namespace ringside
