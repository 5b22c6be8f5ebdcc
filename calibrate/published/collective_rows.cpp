#include "calibrate/published/collective_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "calibrate/published/published_cluster.h"
#include "model/base/check.h"
#include "model/catalog/hardware_catalog.h"
#include "model/cost/profile.h"
#include "model/cost/published_collectives.h"

namespace ringside {
namespace {

std::string textOf(const Json& record, const char* key) {
    const auto found = record.find(key);
    return found != record.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t countOf(const Json& record, const char* key, std::int64_t otherwise) {
    const auto found = record.find(key);
    return found != record.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

/// Notes say "algo Ring", "algo NVLS off (Ring)", "algo default(NVLS)": only what was asked for is forced.
std::optional<CollectiveAlgorithm> forcedAlgorithm(std::string_view notes) {
    const auto at = notes.find("algo ");
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view stated = notes.substr(at + 5);
    if (stated.starts_with("default")) return std::nullopt;
    if (stated.starts_with("NVLS off") || stated.starts_with("Ring")) return CollectiveAlgorithm::Ring;
    if (stated.starts_with("NVLS")) return CollectiveAlgorithm::Nvls;
    if (stated.starts_with("Tree")) return CollectiveAlgorithm::Tree;
    return std::nullopt;
}

/// A group that takes some devices of a node still has the links of the whole node: a mesh of two devices is not a node of two.
std::int64_t nodeSize(const HardwareCatalog& catalog, const std::string& gpu) {
    const auto device = catalog.findDevice(deviceNameOf(gpu));
    if (!device || device->defaultNodeKind.empty()) return 1;
    const auto kind = catalog.findNodeKind(device->defaultNodeKind);
    return kind ? kind->kind.devices : 1;
}

}  // namespace

Result<CollectiveCase> collectiveCase(const Json& record, const PublishedFigures& figures) {
    TRY(const HardwareCatalog catalog, HardwareCatalog::builtin());
    const std::int64_t ranks = countOf(record, "n_ranks", 0);
    if (ranks < 2) return badInput("", fmt::format("{} rank: a copy, not a collective", ranks));

    PublishedHardware hardware;
    hardware.gpu = textOf(record, "gpu");
    hardware.interconnect = textOf(record, "fabric");
    // Groups that ran at the same time share the machine; the record gives the ranks of one.
    const std::int64_t groups = countOf(record, "concurrent_groups", 1);
    hardware.nodes = countOf(record, "nodes", 1);
    const std::int64_t perNode = countOf(record, "gpus_per_node", 1);
    constexpr std::int64_t kMost = 1'000'000;
    for (const std::int64_t count : {ranks, groups, *hardware.nodes, perNode})
        if (count < 1 || count > kMost) return badInput("", fmt::format("{} ranks, {} groups at a time, {} nodes of {} devices: expected 1 to {} of each", ranks, groups, *hardware.nodes, perNode, kMost));
    const std::int64_t stated = *hardware.nodes * perNode;
    hardware.gpus = std::max({ranks * groups, stated, *hardware.nodes == 1 ? nodeSize(catalog, hardware.gpu) : 1});
    hardware.gpusPerNode = hardware.gpus / *hardware.nodes;

    TRY(const CollectiveOp op, collectiveOpByName(textOf(record, "op")));
    TRY(Cluster cluster, clusterOf(hardware, catalog));
    const GroupShape shape = groupShape(cluster, {0, 1, ranks});
    CollectiveOptions options;
    // 2.30 is of 2026; what was published before ran an older release.
    options.nccl.version = textOf(record, "nccl_version").starts_with("2.3") ? NcclVersion::V2_30 : NcclVersion::V2_27;
    options.nccl.algorithm = forcedAlgorithm(textOf(record, "notes"));
    const Profile profile = datasheetProfile(cluster.nodes[shape.nodeKind].kind.device, figures);
    options.nccl.bandwidthScale *= profile.collectiveBandwidth.value;
    options.nccl.latencyScale *= profile.collectiveLatency.value;
    options.nccl.achieved = ncclAchieved(profile);
    TRY(CollectiveModel model, CollectiveModel::create(cluster, shape, CollectiveBackend::Nccl, options));
    TRY_VOID(model.checkedCost(op, kMiB));
    std::string device = cluster.nodes[shape.nodeKind].kind.device.name;
    return CollectiveCase{std::move(device), std::move(cluster), shape, op, options, 0, std::move(model)};
}

double predictCollectiveSeconds(const CollectiveCase& one, Bytes bytes) {
    CHECK(bytes > 0);
    return one.callSeconds + one.model.cost(one.op, bytes).seconds;
}

}  // namespace ringside
