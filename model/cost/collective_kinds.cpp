#include "model/cost/collective_kinds.h"

#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "model/base/names.h"

namespace ringside {
namespace {

template <class E, std::size_t N>
using NameTable = std::array<std::pair<E, std::string_view>, N>;

constexpr NameTable<CollectiveOp, kCollectiveOps> kOps{{
    {CollectiveOp::AllReduce, nameOf(CollectiveOp::AllReduce)},
    {CollectiveOp::AllGather, nameOf(CollectiveOp::AllGather)},
    {CollectiveOp::ReduceScatter, nameOf(CollectiveOp::ReduceScatter)},
    {CollectiveOp::Broadcast, nameOf(CollectiveOp::Broadcast)},
    {CollectiveOp::Reduce, nameOf(CollectiveOp::Reduce)},
    {CollectiveOp::AllToAll, nameOf(CollectiveOp::AllToAll)},
    {CollectiveOp::SendRecv, nameOf(CollectiveOp::SendRecv)},
    {CollectiveOp::Gather, nameOf(CollectiveOp::Gather)},
    {CollectiveOp::Scatter, nameOf(CollectiveOp::Scatter)},
}};

constexpr NameTable<CollectiveAlgorithm, 13> kAlgorithms{{
    {CollectiveAlgorithm::None, "none"},
    {CollectiveAlgorithm::Ring, "ring"},
    {CollectiveAlgorithm::Tree, "tree"},
    {CollectiveAlgorithm::CollNetDirect, "collnet_direct"},
    {CollectiveAlgorithm::CollNetChain, "collnet_chain"},
    {CollectiveAlgorithm::Nvls, "nvls"},
    {CollectiveAlgorithm::NvlsTree, "nvls_tree"},
    {CollectiveAlgorithm::Pat, "pat"},
    {CollectiveAlgorithm::Direct, "direct"},
    {CollectiveAlgorithm::Bcube, "bcube"},
    {CollectiveAlgorithm::HalvingDoubling, "halving_doubling"},
    {CollectiveAlgorithm::Binomial, "binomial"},
    {CollectiveAlgorithm::Hierarchical, "hierarchical"},
}};

constexpr NameTable<CollectiveProtocol, 5> kProtocols{{
    {CollectiveProtocol::None, "none"},
    {CollectiveProtocol::LL, "LL"},
    {CollectiveProtocol::LL128, "LL128"},
    {CollectiveProtocol::Simple, "Simple"},
    {CollectiveProtocol::Tcp, "tcp"},
}};

constexpr NameTable<CollectiveBackend, 2> kBackends{{
    {CollectiveBackend::Nccl, "nccl"},
    {CollectiveBackend::Gloo, "gloo"},
}};

template <class E, std::size_t N>
std::string_view nameIn(const NameTable<E, N>& table, E value) {
    for (const auto& [key, name] : table) {
        if (key == value) return name;
    }
    return "?";
}

// nccl-tests writes alltoall, NCCL_ALGO writes NVLSTree, PyTorch writes all_to_all: one name each once folded.
std::string folded(std::string_view name) {
    std::string out;
    for (const char c : name) {
        if (c != '_' && c != '-') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out;
}

template <class E, std::size_t N>
std::vector<std::string> namesIn(const NameTable<E, N>& table) {
    std::vector<std::string> names;
    for (const auto& [key, name] : table)
        if (name != "none") names.emplace_back(name);
    return names;
}

template <class E, std::size_t N>
Result<E> findIn(const NameTable<E, N>& table, std::string_view what, std::string_view name) {
    const std::string wanted = folded(name);
    for (const auto& [key, spelling] : table)
        if (folded(spelling) == wanted) return key;
    return badInput({}, unknownName(what, name, namesIn(table)));
}

}  // namespace

std::string_view nameOf(CollectiveAlgorithm algorithm) { return nameIn(kAlgorithms, algorithm); }
std::string_view nameOf(CollectiveProtocol protocol) { return nameIn(kProtocols, protocol); }
std::string_view nameOf(CollectiveBackend backend) { return nameIn(kBackends, backend); }

std::vector<std::string> collectiveAlgorithmNames() { return namesIn(kAlgorithms); }
std::vector<std::string> collectiveProtocolNames() { return namesIn(kProtocols); }

Result<CollectiveOp> collectiveOpByName(std::string_view name) { return findIn(kOps, "collective", name); }
Result<CollectiveAlgorithm> collectiveAlgorithmByName(std::string_view name) { return findIn(kAlgorithms, "algorithm", name); }
Result<CollectiveProtocol> collectiveProtocolByName(std::string_view name) { return findIn(kProtocols, "protocol", name); }
Result<CollectiveBackend> collectiveBackendByName(std::string_view name) { return findIn(kBackends, "backend", name); }

}  // namespace ringside
