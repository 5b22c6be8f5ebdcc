// Collective kinds: which operations, algorithms and protocols there are, and how they are spelled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/collective_op.h"
#include "model/base/result.h"

namespace ringside {

Result<CollectiveOp> collectiveOpByName(std::string_view name);

enum class CollectiveAlgorithm : std::uint8_t {
    None, Ring, Tree, CollNetDirect, CollNetChain, Nvls, NvlsTree, Pat, Direct, Bcube, HalvingDoubling, Binomial, Hierarchical
};
enum class CollectiveProtocol : std::uint8_t { None, LL, LL128, Simple, Tcp };
std::string_view nameOf(CollectiveAlgorithm algorithm);  ///< "ring", "tree", "nvls", …
std::string_view nameOf(CollectiveProtocol protocol);    ///< "LL", "LL128", "Simple", "tcp"
/// Case and `-`/`_` do not matter: "NVLSTree", "nvls_tree" and "nvls-tree" are one name.
Result<CollectiveAlgorithm> collectiveAlgorithmByName(std::string_view name);
std::vector<std::string> collectiveAlgorithmNames();  ///< without "none"
Result<CollectiveProtocol> collectiveProtocolByName(std::string_view name);
std::vector<std::string> collectiveProtocolNames();  ///< without "none"

enum class CollectiveBackend : std::uint8_t { Nccl, Gloo };
std::string_view nameOf(CollectiveBackend backend);  ///< "nccl", "gloo"
Result<CollectiveBackend> collectiveBackendByName(std::string_view name);

}  // namespace ringside
