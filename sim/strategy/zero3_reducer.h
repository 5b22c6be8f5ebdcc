// Zero3Reducer: how ZeRO stage 3 reduces gradients (deepspeed/runtime/zero/stage3.py): copied into one bucket on the reduction
// stream, reduce-scattered when the next would not fit, each rank keeping 1/N of every parameter; with ZeRO++'s quantised
// all-to-all (qgZ). docs/models/zero.md tells the rules.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "sim/strategy/step_writer.h"
#include "sim/strategy/zero3_gather.h"
#include "sim/strategy/zero_offload.h"

namespace ringside {

/// qgZ's two stages: within a node, then between nodes. kNoAxis: not used.
struct QuantisedReduceAxes {
    std::uint32_t node = kNoAxis, between = kNoAxis;
};

class Zero3Reducer {
public:
    /// `shard`: this rank's gradients on the device, or kNoBuffer where `host` takes them.
    Zero3Reducer(StepWriter& step, const StrategyInput& input, const Zero3Shards& shards, BufferId shard, HostOptimizer* host, const QuantisedReduceAxes& quantised);

    void beginPass(const Pass& pass) { first_ = pass.first, boundary_ = pass.last; }
    void add(StepWriter& step, std::uint32_t p);
    /// End of backward: what is left in the bucket, and the host waits for the stream.
    void finishPass(StepWriter& step);

private:
    void addToLayout(StepWriter& step, std::uint32_t p);
    void flush(StepWriter& step);
    TaskId reduceScatter(StepWriter& step, std::span<const std::uint32_t> parameters, BufferId& source);
    TaskId allReduce(StepWriter& step, BufferId source);
    TaskId allToAll(StepWriter& step, std::uint32_t p, BufferId source);
    bool quantises(StepWriter& step, std::uint32_t p) const;
    void keep(StepWriter& step, BufferId source, TaskId reduced, std::int64_t elements);
    void useSources(StepWriter& step, std::span<const std::uint32_t> parameters, BufferId source, UseKind kind);

    const ParallelConfig& config_;
    const Zero3Shards& shards_;
    DType dtype_;
    BufferId shard_;
    HostOptimizer* host_;
    QuantisedReduceAxes quantised_;
    bool overlap_, contiguous_, first_ = true, boundary_ = true;
    std::int64_t limit_;
    StreamId stream_ = kComputeStream;
    BufferId buffer_ = kNoBuffer;  ///< contiguous: the bucket, there from the start
    std::vector<std::uint32_t> bucket_;
    std::int64_t elements_ = 0;
    std::uint16_t number_ = 0;
    struct BucketLayouts {
        std::int32_t packed = -1, byRank = -1;  // as gradients come; as they are reduce-scattered
    };
    std::vector<BucketLayouts> layouts_;  // per bucket: every micro-step fills the same ones
    std::size_t finished_ = 0;            // layouts that are complete
    TaskId last_ = kNoTask;
    std::deque<TaskId> outstanding_;
};

}  // namespace ringside
