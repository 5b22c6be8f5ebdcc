// Zero3Gatherer: parameters of ZeRO stage 3 come and go: all-gathers on a stream of their own before a submodule runs, freed
// after it (deepspeed/runtime/zero/partitioned_param_coordinator.py, partition_parameters.py), with ZeRO++ (qwZ, hpZ) and
// shards on the host or on NVMe. docs/models/zero.md tells the rules.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "sim/strategy/step_writer.h"
#include "sim/strategy/zero3_trace.h"

namespace ringside {

/// Where the shards of stage 3 are.
struct Zero3Shards {
    std::vector<std::int64_t> elements;  ///< per parameter: ceil(n / N)
    std::vector<std::uint32_t> group;    ///< per parameter: its sub-group
    std::vector<BufferId> buffers;       ///< per sub-group
    std::vector<std::int32_t> layouts;   ///< per sub-group
    std::int64_t ranks = 1;
    bool onHost = false, onStorage = false;
};

/// A layout of 1/N of each parameter, or of all ranks' parts one after another (`gathered`).
std::int32_t addCutLayout(StepWriter& step, std::span<const std::uint32_t> parameters, std::uint32_t axis, bool gathered);

class Zero3Gatherer {
public:
    /// `persistent` parameters have their buffer already. `visits` number the units: a parameter's is the first visit that uses
    /// it. `nodeAxis`: the ranks that share a secondary copy (hpZ), or kNoAxis.
    Zero3Gatherer(StepWriter& step, const StrategyInput& input, const Zero3Shards& shards, const std::vector<bool>& persistent, std::span<const Zero3Visit> visits,
                  std::uint32_t nodeAxis);

    /// Before a submodule: gather what is missing, wait for the gather stream, then prefetch.
    void fetch(StepWriter& step, const Zero3Visit& visit, const Zero3VisitPlan& plan, Phase phase);
    /// After it. Frees with the task written last.
    void release(StepWriter& step, const Zero3VisitPlan& plan);
    /// After the optimizer: updated shards go back to NVMe, where they live there.
    void storeShards(StepWriter& step);
    /// And persistent parameters are gathered again, all together.
    void regatherPersistent(StepWriter& step);

private:
    struct Gather {  // a coalesced all-gather under way
        std::vector<std::uint32_t> parameters;
        BufferId flat = kNoBuffer;
        std::uint16_t number = 0;
    };

    std::int32_t gatheredLayout(StepWriter& step, const std::vector<std::uint32_t>& parameters, std::uint32_t axis);
    void gather(StepWriter& step, std::span<const std::uint32_t> parameters);
    void makeRoom(StepWriter& step, std::uint32_t p);
    void gatherTogether(StepWriter& step, std::vector<std::uint32_t> parameters, bool fromSecondary);
    TaskId bringShards(StepWriter& step, std::span<const std::uint32_t> parameters, std::int64_t elements, BufferId target, std::uint16_t number);
    /// qwZ: int8 and a scale per block travel instead; `readShards` says what the quantiser reads.
    void gatherQuantised(StepWriter& step, std::span<const std::uint32_t> parameters, std::int64_t elements, std::int64_t ranks, std::uint32_t axis, std::uint16_t number,
                         const std::function<void()>& readShards);
    void copyOut(StepWriter& step, Gather& gather);
    void readShards(StepWriter& step, std::span<const std::uint32_t> parameters, BufferId local);
    void limit(StepWriter& step, std::uint16_t number);

    const ParallelConfig& config_;
    const Zero3Shards& shards_;
    const std::vector<bool>& persistent_;
    DType dtype_;
    Phase phase_ = Phase::Forward;
    std::uint32_t nodeAxis_;
    std::int64_t nodeRanks_;
    int sharing_;
    StreamId stream_, copies_ = 0, storage_ = 0;
    std::vector<std::uint16_t> unit_;      // per parameter
    std::vector<BufferId> gathered_;       // per parameter: where it is or was gathered last
    std::vector<bool> hasSecondary_;       // per parameter
    std::vector<std::int32_t> gatherOf_;   // per parameter: index into gathers_ while under way, or −1
    std::vector<Gather> gathers_;
    std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::int32_t> layouts_;  // by axis and parameters: each micro-step has the same
    BufferId secondary_ = kNoBuffer;
    TaskId secondaryWritten_ = kNoTask;
    TaskId last_ = kNoTask, waited_ = kNoTask;  // on the gather stream; what compute has waited for
    std::deque<TaskId> outstanding_;       // fetches that the host has not seen finished
};

}  // namespace ringside
