#include "traces/analysis/collectives.h"

#include <algorithm>

#include "traces/collective_names.h"

namespace ringside {

double busbwFactor(std::string_view op, std::int64_t n) {
    const double ranks = static_cast<double>(n);
    switch (collectiveKindOf(op)) {
        case CollectiveKind::AllReduce: return 2 * (ranks - 1) / ranks;
        case CollectiveKind::AllGather:
        case CollectiveKind::ReduceScatter:
        case CollectiveKind::AllToAll: return (ranks - 1) / ranks;
        case CollectiveKind::Broadcast:
        case CollectiveKind::Reduce:
        case CollectiveKind::SendRecv:
        case CollectiveKind::Other: return 1;
    }
    return 1;
}

std::vector<CollectiveRow> collectivesOf(const Trace& trace, std::int64_t rank) {
    std::vector<Time> shortest(trace.collectives.size(), Time::max());
    std::vector<CollectiveRow> rows;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        const std::int32_t collective = trace.collective[i];
        if (collective < 0 || trace.category[i] != SliceCategory::Communication) continue;
        Time& transfer = shortest[static_cast<std::size_t>(collective)];
        transfer = std::min(transfer, trace.duration[i]);
        if (trace.tracks[trace.track[i]].rank == rank) rows.push_back({collective, trace.start[i], trace.duration[i], {}, 0, 0});
    }
    for (CollectiveRow& row : rows) {
        const CollectiveDetails& details = trace.collectives[static_cast<std::size_t>(row.collective)];
        row.transfer = shortest[static_cast<std::size_t>(row.collective)];
        if (row.transfer > Time{}) row.algbw = static_cast<double>(details.bytes) / row.transfer.seconds();
        row.busbw = row.algbw * busbwFactor(details.op, std::max<std::int64_t>(details.groupSize, 1));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const CollectiveRow& a, const CollectiveRow& b) { return a.start < b.start; });
    return rows;
}

}  // namespace ringside
