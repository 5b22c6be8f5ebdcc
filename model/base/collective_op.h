// CollectiveOp: the operations in which several ranks take part together. How they are done and what they cost: model/cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringside {

enum class CollectiveOp : std::uint8_t { AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, SendRecv, Gather, Scatter };
constexpr std::size_t kCollectiveOps = 9;

/// "all_reduce", …
constexpr std::string_view nameOf(CollectiveOp op) {
    switch (op) {
        case CollectiveOp::AllReduce: return "all_reduce";
        case CollectiveOp::AllGather: return "all_gather";
        case CollectiveOp::ReduceScatter: return "reduce_scatter";
        case CollectiveOp::Broadcast: return "broadcast";
        case CollectiveOp::Reduce: return "reduce";
        case CollectiveOp::AllToAll: return "all_to_all";
        case CollectiveOp::SendRecv: return "send_recv";
        case CollectiveOp::Gather: return "gather";
        case CollectiveOp::Scatter: return "scatter";
    }
    return "?";
}

}  // namespace ringside
