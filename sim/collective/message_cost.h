// Message cost: a collective's time at message level, with the same wires that its closed form assumes.
//
// The closed form's latency and bandwidth are turned into one wire per hop (docs/models/message-level.md); the cluster adds
// the links that hops share: each node's NICs, and the leaf switches' uplinks where they are oversubscribed. Where nothing
// contends both levels agree; where links are shared the message level is slower.
#pragma once

#include "model/base/result.h"
#include "model/cost/collective_cost.h"
#include "model/hardware/cluster.h"

namespace ringside {

struct MessageCost {
    CollectiveCost cost;           ///< `seconds` from the messages; the rest from the closed form
    std::uint64_t messages = 0;    ///< 0: an in-switch algorithm (NVLS, CollNet), which is one flow per port in both levels
};

/// `closed` is the group's model; its choice of algorithm and protocol is played.
Result<MessageCost> messageLevelCost(const Cluster& cluster, const GroupShape& group, const CollectiveModel& closed, CollectiveOp op, Bytes bytes);

}  // namespace ringside
