#include "calibrate/published/collective_rows.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "calibrate/published/published_cluster.h"
#include "model/base/check.h"
#include "model/catalog/hardware_catalog.h"
#include "model/cost/profile.h"

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

Result<CollectiveOp> opOf(std::string name) {
    if (name == "alltoall") name = "all_to_all";
    if (name == "sendrecv") name = "send_recv";
    return collectiveOpByName(name);
}

}  // namespace

Result<CollectiveCase> collectiveCase(const Json& record) {
    TRY(const HardwareCatalog catalog, HardwareCatalog::builtin());
    CollectiveCase out;
    PublishedHardware hardware;
    hardware.gpu = textOf(record, "gpu");
    hardware.interconnect = textOf(record, "fabric");
    const std::int64_t ranks = countOf(record, "n_ranks", 0);
    if (ranks < 2) return badInput("", fmt::format("{} rank: a copy, not a collective", ranks));
    // Groups that ran at the same time share the machine; the record gives the ranks of one.
    const std::int64_t groups = countOf(record, "concurrent_groups", 1);
    hardware.nodes = countOf(record, "nodes", 1);
    hardware.gpus = std::max(ranks * groups, *hardware.nodes * countOf(record, "gpus_per_node", 1));
    hardware.gpusPerNode = hardware.gpus / *hardware.nodes;
    TRY(out.op, opOf(textOf(record, "op")));
    TRY(out.cluster, clusterOf(hardware, catalog));
    out.device = out.cluster.nodes.front().kind.device.name;
    out.shape = groupShape(out.cluster, {0, 1, ranks});
    const Profile profile = datasheetProfile(out.cluster.nodes[out.shape.nodeKind].kind.device);
    CollectiveOptions options;
    options.nccl.bandwidthScale *= profile.collectiveBandwidth.value;
    options.nccl.latencyScale *= profile.collectiveLatency.value;
    TRY(out.model, CollectiveModel::create(out.cluster, out.shape, CollectiveBackend::Nccl, options));
    TRY_VOID(out.model->checkedCost(out.op, 1 << 20));
    return out;
}

double predictCollectiveSeconds(const CollectiveCase& one, Bytes bytes) {
    CHECK(bytes > 0);
    return one.model->cost(one.op, bytes).seconds;
}

}  // namespace ringside
