// FlatUnits: what FSDP1 does around the forward and backward of each unit (torch/distributed/fsdp/_runtime_utils.py,
// _flat_param.py, _limiter_utils.py). docs/models/fsdp.md tells the rules.
//
//   unshard   [copy to the device, cast (pre-unshard stream) →] all-gather (unshard stream), into which ops look by views
//   reduce    cat of the gradients (compute stream) → [cast, divide,] reduce-scatter (post-backward stream)
//             [→ all-reduce between replicas (all-reduce stream)] → [divide, cast, add, copy to the host]
#pragma once

#include <deque>

#include "sim/strategy/fsdp_hooks.h"
#include "sim/strategy/fsdp_setup.h"

namespace ringside {

struct Fsdp1Options {
    bool shards = true;            ///< else every rank keeps everything and gradients are all-reduced
    bool hybrid = false;           ///< sharded within groups of ranks
    bool reshards = true;          ///< units but the root are freed after forward
    bool noSync = true;            ///< reduce only in the last micro-step
    bool limit = true;             ///< the host waits, so that at most two units are in flight
    bool offload = false;
    bool prefetchBefore = true;    ///< backward gathers the next unit before the current one's gradients
    bool prefetchBehind = false;   ///< or behind them
    bool forwardPrefetch = false;  ///< forward gathers the next unit before the current one
    std::int64_t alignedTo = 0;    ///< elements; use_orig_params
};
Fsdp1Options fsdp1Options(const StrategyInput& input, DType gathered);

class FlatUnits final : public FsdpHooks {
public:
    /// Declares the shards. REQUIRES: StepWriter::declareState was called, without parameters.
    FlatUnits(StepWriter& step, FsdpUnits units, const FsdpTypes& types, const ShardGroups& groups, const Fsdp1Options& options);

    /// A flat shard for each unit.
    std::vector<OptimizerTarget> targets() const;
    /// zero_grad(set_to_none=True), with the task written last.
    void dropGradients(StepWriter& step);

private:
    /// A flat parameter, its gradient, and what has happened to them in this step.
    struct State {
        FsdpTypes types;
        std::int64_t unpadded = 0, flat = 0, shard = 0;  // elements
        std::int32_t line = -1, part = -1;               // layouts: of the flat parameter, and of this rank's shard of it
        BufferId kept = kNoBuffer;                       // this rank's shard; in host memory if offloaded
        BufferId gathered = kNoBuffer, flatGradient = kNoBuffer, gradient = kNoBuffer, hostGradient = kNoBuffer;
        bool isGathered = false, hasFlatGradient = false, hasGradient = false;
        bool entered = false, passed = false;  // this backward
        TaskId arrives = kNoTask;  // what compute has yet to wait for
    };

    void beginForward(StepWriter& step, const Pass& pass) override;
    void preForward(StepWriter& step, std::uint32_t u) override;
    void postForward(StepWriter& step, std::uint32_t u) override;
    void beginBackward(StepWriter& step, const Pass& pass) override;
    void preBackward(StepWriter& step, std::uint32_t u) override;
    void gradientsReady(StepWriter& step, std::uint32_t u) override;
    void endBackward(StepWriter& step, const Pass& pass) override;

    /// Whether ops read what is kept: nothing is sharded or cast.
    bool readsShard(const State& unit) const { return !options_.shards && !unit.types.mixed(); }
    bool reducesInPlace(const State& unit) const { return !unit.hasGradient && unit.types.reduce == unit.types.gradientShard; }
    TaskId onTail(TaskId task) { return (inAllReduce_ ? lastAllReduce_ : lastPostBackward_) = task; }

    void declare(StepWriter& step, std::uint32_t u, const FsdpTypes& types);
    void limitRate(StepWriter& step, Phase phase);
    void gather(StepWriter& step, std::uint32_t u, Phase phase);
    BufferId stage(StepWriter& step, std::uint32_t u, Phase phase, TaskId& ready);
    BufferId lower(StepWriter& step, std::uint32_t u, Phase phase, BufferId source, TaskId& ready);
    void await(StepWriter& step, std::uint32_t u);
    void free(StepWriter& step, std::uint32_t u);
    void prefetchBackward(StepWriter& step, std::uint32_t u);
    void flatten(StepWriter& step, std::uint32_t u);
    void reduce(StepWriter& step, std::uint32_t u);
    void divide(StepWriter& step, std::uint32_t u, BufferId buffer, std::int64_t elements, double by, TaskId after);
    BufferId scatter(StepWriter& step, std::uint32_t u, BufferId wire, TaskId computed);
    BufferId reduceWhole(StepWriter& step, std::uint32_t u, BufferId wire, TaskId computed);
    void accumulate(StepWriter& step, std::uint32_t u, BufferId piece);

    ShardGroups groups_;
    Fsdp1Options options_;
    DivideFactors divide_;
    std::vector<State> states_;
    StreamId unshard_ = 0, preUnshard_ = 0, postBackward_ = 0, allReduce_ = 0;
    std::deque<std::pair<TaskId, std::uint32_t>> freed_;  // the compute task at which a unit was freed, and the unit
    TaskId passStart_ = kNoTask, lastPostBackward_ = kNoTask, lastAllReduce_ = kNoTask;
    bool sync_ = true, inAllReduce_ = false;
};

}  // namespace ringside
