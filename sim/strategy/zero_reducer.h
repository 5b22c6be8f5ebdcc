// ZeroReducer: how DeepSpeed's stages 1 and 2 reduce gradients (deepspeed/runtime/zero/stage_1_and_2.py): gradients are copied
// into one contiguous bucket; when the next would not fit, the bucket is all-reduced and each rank keeps its own slice.
// docs/models/zero.md tells the rules and their surprises.
#pragma once

#include <optional>
#include <vector>

#include "sim/strategy/step_writer.h"
#include "sim/strategy/zero_offload.h"
#include "sim/strategy/zero_partition.h"

namespace ringside {

class ZeroReducer final : public StepHooks {
public:
    /// `host`: where slices go instead of staying on the device, or null. Stage 1 reduces once, at the accumulation boundary;
    /// stage 2 in every micro-step.
    /// `shardLayout`: of this rank's slice.
    ZeroReducer(StepWriter& step, const StrategyInput& input, int stage, const FlatPartition& partition, std::int32_t shardLayout, HostOptimizer* host);

    void beforeBackwardPass(StepWriter& step, const Pass& pass) override;
    void onGradientReady(StepWriter& step, std::uint32_t p) override;
    void afterBackwardPass(StepWriter& step, const Pass& pass) override;
    /// Stage 1 without overlap_comm, or in a pipeline: everything after the last backward. Does nothing otherwise.
    void reduceAfterBackward(StepWriter& step);

    /// This rank's slice of the gradients, once everything is reduced. REQUIRES: no HostOptimizer.
    BufferId gradientShard() const { return accumulated_; }

private:
    /// Of the open bucket. Every micro-step fills the same ones.
    std::int32_t bucketLayout() const { return layouts_[number_]; }
    void addToLayout(StepWriter& step, std::uint32_t p);
    bool contiguous() const { return config_.contiguousGradients && partition_.ranks() > 1; }
    void add(StepWriter& step, std::uint32_t p);
    void flush(StepWriter& step);
    void epilogue(StepWriter& step);
    /// Sums the open bucket over ranks. `source`: the contiguous buffer, or kNoBuffer where gradients lie by themselves; then what
    /// holds the sum.
    TaskId reduce(StepWriter& step, BufferId& source);
    TaskId reduceToOwners(StepWriter& step, BufferId source, TaskId ready);
    TaskId flatten(StepWriter& step, BufferId from, TaskId ready, BufferId& flattened);
    void useSources(StepWriter& step, BufferId source, UseKind kind);
    void keepSlice(StepWriter& step, BufferId source, TaskId reduced);
    void dropGradients(StepWriter& step);

    const ParallelConfig& config_;
    int stage_;
    const FlatPartition& partition_;
    HostOptimizer* host_;
    bool overlap_, inHooks_, boundary_ = false, firstPass_ = true, active_ = false;
    DType dtype_;
    std::int64_t bucketLimit_;
    StreamId work_ = kComputeStream, communication_ = kComputeStream;  // of the reduction's kernels and its collectives
    std::vector<BufferId> buffers_;    // contiguous: one, or two that alternate with overlap_comm
    std::size_t current_ = 0;
    bool allocated_ = false;
    std::vector<std::uint32_t> bucket_, reduced_;  // parameters in the open bucket; those whose gradients the next flush drops
    std::int64_t elements_ = 0;
    std::uint16_t number_ = 0;
    std::vector<std::int32_t> layouts_;  // per bucket
    std::size_t finished_ = 0;           // layouts that are complete
    std::optional<TaskId> lastReduction_;
    BufferId accumulated_ = kNoBuffer, incoming_ = kNoBuffer;
    bool shardAllocated_ = false;
};

}  // namespace ringside
