// Options of training that change what lives when: kept gradients, the optimizer inside backward, offloaded activations, autocast's cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGpt2Parameters = 124'439'808;

std::string gpt2(const std::string& training, int devices = 1) {
    return "{'model':'gpt2','device':'a100-80gb-sxm','devices':" + std::to_string(devices) + ",'training':{'micro_batch':2," + training + "}}";
}

Bytes at(const Prediction& prediction, MemoryCategory category) { return prediction.memory.atPeak[static_cast<std::size_t>(category)]; }

std::string refusalOf(const std::string& text) {
    const Result<Schedule> schedule = writeSchedule(scenarioOf(text));
    return schedule ? "none" : schedule.error().toString();
}

TEST(KeptGradients, AreThereFromTheStartAndZeroedAtTheEnd) {
    const Schedule schedule = scheduleOf(gpt2("'precision':'fp32','zero_grad_set_to_none':false"));
    EXPECT_TRUE(validateSchedule(schedule).has_value());
    Bytes kept = 0;
    for (const Buffer& buffer : schedule.programs.front().buffers)
        if (buffer.category == MemoryCategory::Gradients && buffer.persistent) kept += buffer.bytes;
    EXPECT_EQ(kept, 4 * kGpt2Parameters);
    EXPECT_EQ(countTasks(schedule, TaskRole::GradientZero), 148);
    // Every contribution is a tensor of its own that is added; a tied table has two.
    EXPECT_EQ(countTasks(schedule, TaskRole::GradientAccumulate), 149);
}

TEST(KeptGradients, RaiseThePeakOfForward) {
    // At the end of forward there are none otherwise.
    const Prediction kept = predictionOf(gpt2("'precision':'fp32','seq_len':1024,'zero_grad_set_to_none':false")), dropped = predictionOf(gpt2("'precision':'fp32','seq_len':1024"));
    EXPECT_GT(kept.memory.peakAllocated, dropped.memory.peakAllocated + 3 * kGpt2Parameters);
    EXPECT_THAT(refusalOf(gpt2("'zero_grad_set_to_none':false", 4)), HasSubstr("zero_grad_set_to_none"));
}

TEST(OptimizerInBackward, HoldsOneGradientAtATime) {
    const Schedule schedule = scheduleOf(gpt2("'precision':'fp32','optimizer':'adamw-fused','optimizer_in_backward':true"));
    EXPECT_TRUE(validateSchedule(schedule).has_value());
    EXPECT_EQ(countTasks(schedule, TaskRole::OptimizerKernel), 2 * 148);  // per tensor its count of steps and its update
    // The tied table is complete last, and holds its 50,257 · 768 · 4 bytes from the head on; beside it is one other tensor at a time.
    const RankProgram& program = schedule.programs.front();
    Bytes live = 0, most = 0;
    for (const Task& task : program.tasks)
        for (const BufferUse& use : program.usesOf(task)) {
            const Buffer& buffer = program.buffers[use.buffer];
            if (buffer.category != MemoryCategory::Gradients) continue;
            if (use.kind == UseKind::Allocate) live += buffer.bytes;
            if (use.kind == UseKind::Free) live -= buffer.bytes;
            most = std::max(most, live);
        }
    EXPECT_EQ(live, 0);
    EXPECT_LE(most, (50257 * 768 + 768 * 3072 + 3072) * 4);
}

TEST(OptimizerInBackward, IsRefusedWhereAllGradientsAreNeededFirst) {
    EXPECT_THAT(refusalOf(gpt2("'optimizer_in_backward':true", 4)), HasSubstr("only 'single' can"));
    EXPECT_THAT(refusalOf(gpt2("'optimizer_in_backward':true,'grad_accum':2")), HasSubstr("grad_accum must be 1, found 2"));
    EXPECT_THAT(refusalOf(gpt2("'optimizer_in_backward':true,'gradient_clipping':true")), HasSubstr("clipping"));
}

TEST(OffloadedActivations, LeaveFiveBlocksOfInputsOnTheDevice) {
    const std::string plain = "'precision':'bf16','seq_len':1024,'recompute':'full'";
    const Schedule schedule = scheduleOf(gpt2(plain + ",'offload_activations':true"));
    EXPECT_TRUE(validateSchedule(schedule).has_value());
    // Twelve blocks go out; the last five are still there when backward wants them.
    EXPECT_EQ(countTasks(schedule, TaskRole::OffloadToHost), 12);
    EXPECT_EQ(countTasks(schedule, TaskRole::OffloadToDevice), 7);
    const Prediction there = predictionOf(gpt2(plain)), out = predictionOf(gpt2(plain + ",'offload_activations':true"));
    // Seven inputs of 2 · 1,024 · 768 bf16 numbers fewer at the loss, where the peak is.
    EXPECT_EQ(at(there, MemoryCategory::Activations) - at(out, MemoryCategory::Activations), 7 * 2 * 1024 * 768 * 2);
    EXPECT_THAT(refusalOf(gpt2("'offload_activations':true")), HasSubstr("set recompute to full"));
}

TEST(OffloadedActivations, ComeBackInEveryMicroStep) {
    const Schedule schedule = scheduleOf(gpt2("'precision':'bf16','recompute':'full','offload_activations':true,'grad_accum':3"));
    EXPECT_TRUE(validateSchedule(schedule).has_value());
    EXPECT_EQ(countTasks(schedule, TaskRole::OffloadToDevice), 3 * 7);
}

TEST(AutocastCache, HoldsCastsOfWeightsUntilForwardEndsThoughBlocksAreRecomputed) {
    const Schedule schedule = scheduleOf(gpt2("'precision':'bf16-autocast','seq_len':128,'recompute':'full'"));
    EXPECT_TRUE(validateSchedule(schedule).has_value());
    const RankProgram& program = schedule.programs.front();
    // What linear layers of the twelve blocks multiply with: 12 · 768² elements each, in two bytes.
    Bytes live = 0, most = 0;
    for (const Task& task : program.tasks) {
        if (task.phase != Phase::Forward) continue;
        for (const BufferUse& use : program.usesOf(task)) {
            const Buffer& buffer = program.buffers[use.buffer];
            if (buffer.role != BufferRole::Value || buffer.layer < 1 || buffer.layer > 12) continue;
            if (!program.workload->typeOf(1).values[static_cast<std::size_t>(buffer.index)].autocastCache) continue;
            if (use.kind == UseKind::Allocate) live += buffer.bytes;
            if (use.kind == UseKind::Free) live -= buffer.bytes;
            most = std::max(most, live);
        }
    }
    EXPECT_EQ(most, 12 * 12 * 768 * 768 * 2);
    EXPECT_EQ(live, 0);
}

}  // namespace
}  // namespace ringside::testing
