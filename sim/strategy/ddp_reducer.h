// DdpReducer: PyTorch's gradient reducer (c10d/reducer.cpp) as hooks of a step: buckets filled in gradient-ready order and
// launched strictly in order on the communicator's own stream while backward goes on. DDP and what stands on it use it.
// docs/models/ddp.md tells the rules and their surprises.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/strategy/powersgd.h"
#include "sim/strategy/step_writer.h"

namespace ringside {

enum class CommHook : std::uint8_t { None, Fp16, Bf16, PowerSgd };

/// One bucket of the reducer: its gradients and what has happened to it in this backward.
struct ReducerBucket {
    std::vector<std::uint32_t> parameters;
    std::int64_t elements = 0;
    std::uint32_t axis = 0;  ///< who reduces it: all, or those who hold the same experts
    BufferId buffer = 0, compressed = 0;
    std::size_t pending = 0;
    TaskId lastCopyIn = 0;
    TaskId done = 0;  ///< the task after which the reduced bucket is there
};

/// REQUIRES: there is somebody to reduce with (syncRanks() > 1); the step's state is declared.
class DdpReducer final : public StepHooks {
public:
    DdpReducer(StepWriter& step, const StrategyInput& input);

    void beforeForwardPass(StepWriter& step, const Pass& pass) override;
    void beforeBackwardPass(StepWriter& step, const Pass& pass) override;
    void afterBackwardPass(StepWriter& step, const Pass& pass) override;
    void onGradientReady(StepWriter& step, std::uint32_t p) override;

private:
    bool isSync(const Pass& pass) const { return pass.last || !input_.parallel.noSync; }
    DType wireDtype() const { return hook_ == CommHook::Fp16 ? DType::Fp16 : DType::Bf16; }
    void finish(StepWriter& step);
    void fillBuckets(StepWriter& step);
    void launch(StepWriter& step, std::size_t b);

    const StrategyInput& input_;
    CommHook hook_;
    std::optional<PowerSgd> powerSgd_;
    std::size_t chunks_;
    bool sync_ = false;
    StreamId communication_ = 0, hookStream_ = 0;
    std::vector<ReducerBucket> buckets_;
    std::vector<std::uint32_t> bucketOf_;
    std::vector<TaskId> waitedFor_;
    std::size_t next_ = 0;
    BufferId bitmap_ = 0;
    TaskId bitmapDone_ = 0;
    bool viewsAreSet_ = false;
    bool waitForAll_;
};

/// Fails where the reducer cannot follow: an interleaved pipeline runs backwards of one chunk before those of another, so that
/// reducing in every micro-step has no order of buckets.
Result<void> checkReducer(const StrategyInput& input);

/// The knobs of the reducer, as strategies that stand on it list them.
std::vector<Knob> ddpReducerKnobs();

}  // namespace ringside
