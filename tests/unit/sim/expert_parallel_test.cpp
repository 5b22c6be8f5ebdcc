// Expert parallelism: experts are shared out, and their gradients are averaged by those who hold the same ones.
#include <gmock/gmock.h>

#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;

const std::string kMixtral = "{'model': {'model_type': 'mixtral', 'num_hidden_layers': 2, 'num_attention_heads': 8, 'num_key_value_heads': 8, 'hidden_size': 256, 'intermediate_size': 512,"
                             "'vocab_size': 1000, 'max_position_embeddings': 512, 'num_local_experts': 8, 'num_experts_per_tok': 2, 'tie_word_embeddings': false},"
                             "'device': 'h100-sxm', 'devices': 8, 'training': {'precision': 'fp32', 'seq_len': 128}, 'strategy': ";

TEST(ExpertParallel, ExpertsAndTheRestTravelInBucketsOfTheirOwn) {
    // 2 layers of 8 experts with 3·256·512 weights each; with ep 4 a rank holds 2 of them and averages them with one other.
    const std::int64_t expertsOfARank = 2LL * 2 * 3 * 256 * 512;
    for (const std::string strategy : {"ddp", "naive", "megatron"}) {
        SCOPED_TRACE(strategy);
        const Schedule schedule = scheduleOf(kMixtral + "{'name': '" + strategy + "', 'ep': 4}}");
        const Result<void> valid = validateSchedule(schedule);
        EXPECT_TRUE(valid) << valid.error().toString();
        std::map<std::string, std::int64_t> reduced;
        for (const Task& task : schedule.programs.front().tasks) {
            if (task.kind != TaskKind::Collective) continue;
            const CollectiveWork& work = schedule.collectives[task.work];
            if (work.op == CollectiveOp::AllReduce || work.op == CollectiveOp::ReduceScatter) reduced[schedule.axes[work.axis].name] += work.elements;
        }
        EXPECT_GE(reduced["expert dp"], expertsOfARank);
        EXPECT_LE(reduced["expert dp"], expertsOfARank + 65536) << "padding at most";
        EXPECT_GT(reduced["dp"], 0);
    }
}

TEST(ExpertParallel, TokensGoToTheirExpertsAndBackInBothPasses) {
    const Schedule schedule = scheduleOf(kMixtral + "{'name': 'ddp', 'ep': 4}}");
    int exchanges = 0;
    for (const Task& task : schedule.programs.front().tasks)
        exchanges += task.kind == TaskKind::Collective && schedule.collectives[task.work].op == CollectiveOp::AllToAll;
    EXPECT_EQ(exchanges, 2 * 4);  // two layers: dispatch and combine, forward and backward
}

TEST(ExpertParallel, SavesTheMemoryOfTheExpertsItDoesNotHold) {
    const auto parameters = [](int ep) { return categoryBytes(predictionOf(kMixtral + fmt::format("{{'name': 'ddp', 'ep': {}}}}}", ep)), MemoryCategory::Parameters); };
    // 16 experts of 3·256·512 weights of 4 B; three quarters of them are elsewhere.
    EXPECT_NEAR(static_cast<double>(parameters(1) - parameters(4)), 0.75 * 16 * 3 * 256 * 512 * 4, 64 * 1024);
}

}  // namespace
}  // namespace ringside
