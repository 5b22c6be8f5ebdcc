// ShardedUnits: what FSDP2 does around the forward and backward of each unit (torch/distributed/fsdp/_fully_shard:
// _fsdp_param_group.py, _fsdp_collectives.py). docs/models/fsdp.md tells the rules.
//
//   unshard   copy-in (its own stream) → all-gather (its own stream) → copy-out (compute stream)
//   reduce    copy-in (compute stream) → reduce-scatter (its own stream) [→ all-reduce between replicas (its own stream)]
//
// CPU tensors have no streams there: the rank waits in every collective (overlap false), and all of it is one queue.
#pragma once

#include "sim/strategy/fsdp_hooks.h"
#include "sim/strategy/fsdp_setup.h"

namespace ringside {

struct Fsdp2Options {
    /// Whether a unit is resharded after forward; the root has its own default.
    bool reshard = true, reshardRoot = false;
    std::int64_t reshardRanks = 0;       ///< > 0: resharded over so many ranks only, on `reshardAxis`
    std::uint32_t reshardAxis = kNoAxis;
    std::int64_t forwardPrefetch = 0;    ///< units gathered ahead
    bool noSync = true;                  ///< reduce only in the last micro-step
    bool keepInPipeline = false;         ///< a pipeline's stage reshards only after its last backward
    bool offload = false;
    bool overlap = true;                 ///< false: no streams but the compute stream
};

class ShardedUnits final : public FsdpHooks {
public:
    /// Declares the shards. REQUIRES: StepWriter::declareState was called, without parameters.
    ShardedUnits(StepWriter& step, FsdpUnits units, const FsdpTypes& types, const ShardGroups& groups, const Fsdp2Options& options);

    /// A tensor of whole rows for each parameter.
    std::vector<OptimizerTarget> targets(StepWriter& step) const;
    /// zero_grad(set_to_none=True), with the task written last.
    void dropGradients(StepWriter& step);

private:
    struct State {
        std::int64_t ranks = 1, padded = 0, shard = 0;  // elements
        std::uint32_t axis = 0;
        std::int32_t part = -1, gatheredParts = -1, whole = -1;     // layouts: a rank's rows, all ranks' after each other, tensors
        std::int32_t postForwardPart = -1, gatheredPostForward = -1;  // likewise, of what forward leaves
        BufferId kept = kNoBuffer, staged = kNoBuffer, low = kNoBuffer, output = kNoBuffer, gathered = kNoBuffer, postForward = kNoBuffer;
        BufferId input = kNoBuffer, reduced = kNoBuffer, cast = kNoBuffer, gradient = kNoBuffer, hostGradient = kNoBuffer;
        bool isGathered = false, inFlight = false, hasPostForward = false, hasGradient = false, hostAccumulates = false;
        TaskId arrives = kNoTask, resharded = kNoTask;
    };

    void beginForward(StepWriter& step, const Pass& pass) override;
    void preForward(StepWriter& step, std::uint32_t u) override;
    void postForward(StepWriter& step, std::uint32_t u) override;
    void endForward(StepWriter& step, const Pass& pass) override;
    void beginBackward(StepWriter& step, const Pass& pass) override;
    void preBackward(StepWriter& step, std::uint32_t u) override;
    void postBackward(StepWriter& step, std::uint32_t u) override;
    void endBackward(StepWriter& step, const Pass& pass) override;

    void declare(StepWriter& step, std::uint32_t u, const ShardGroups& groups);
    void describe(StepWriter& step, std::uint32_t u);
    /// Makes the buffer where there is none yet.
    void need(StepWriter& step, BufferId& buffer, std::uint32_t u, std::int64_t elements, std::int32_t layout, DType dtype, MemoryCategory category, BufferRole role, StreamId stream) const;
    void unshard(StepWriter& step, std::uint32_t u, Phase phase);
    void copyIn(StepWriter& step, std::uint32_t u, Phase phase);
    void awaitUnshard(StepWriter& step, std::uint32_t u, Phase phase);
    void orderOnCopyIn(StepWriter& step);
    void reduce(StepWriter& step, std::uint32_t u);
    CollectiveWork reduction(CollectiveOp op, std::int64_t elements, std::uint32_t axis) const;
    TaskId scatter(StepWriter& step, std::uint32_t u);
    void accumulate(StepWriter& step, std::uint32_t u, StreamId stream);
    void release(StepWriter& step, std::uint32_t u, BufferId piece);
    void freeAllReduced(StepWriter& step);
    void offloadGradient(StepWriter& step, std::uint32_t u, StreamId stream);
    TaskId tail(StreamId stream, TaskId task) { return (stream == allReduce_ ? lastAllReduce_ : lastScatter_) = task; }

    FsdpTypes types_;
    ShardGroups groups_;
    Fsdp2Options options_;
    std::optional<DivideFactors> divide_;  // fp16 only: other types are averaged by NCCL
    std::vector<State> states_;
    struct ParameterLayouts {
        std::int32_t alone = -1, inUnit = -1;  // of this rank's rows: in a buffer of their own, and in the unit's shard
    };
    std::vector<ParameterLayouts> layouts_;  // per parameter
    StreamId copyIn_ = 0, allGather_ = 0, reduceScatter_ = 0, allReduce_ = 0;
    std::vector<TaskId> copyInWaits_;      // what the next copy-in waits for
    std::uint32_t held_ = kNoUnit;         // whose all-gather output forward still holds
    TaskId heldUntil_ = kNoTask;           // its copy-out
    std::uint32_t scattering_ = kNoUnit;   // whose reduce-scatter input is still held
    TaskId scattered_ = kNoTask;           // its reduce-scatter
    std::vector<BufferId> allReduced_;     // what replicas have reduced, held until backward ends
    TaskId lastScatter_ = kNoTask, lastAllReduce_ = kNoTask;
    bool sync_ = true, reshardsAfterBackward_ = true;
};

}  // namespace ringside
