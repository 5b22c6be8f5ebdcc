// Goldens: predictions with their timestamps, small enough to review. A change of any of them is a change of what users see.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

std::vector<std::string> linesOf(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

/// Lines that differ, with their numbers; enough to see what moved.
std::string differences(const std::string& expected, const std::string& actual) {
    const std::vector<std::string> a = linesOf(expected), b = linesOf(actual);
    std::string out;
    int shown = 0;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()) && shown < 40; ++i) {
        const std::string left = i < a.size() ? a[i] : "(nothing)", right = i < b.size() ? b[i] : "(nothing)";
        if (left == right) continue;
        out += fmt::format("line {}\n  - {}\n  + {}\n", i + 1, left, right);
        ++shown;
    }
    return out;
}

void compareWithGolden(const std::string& name, const std::string& actual) {
    const std::string path = std::string(RINGSIDE_SOURCE_DIR) + "/tests/golden/" + name;
    if (std::getenv("RINGSIDE_UPDATE_GOLDENS")) {
        std::ofstream(path) << actual;
        return;
    }
    std::ifstream in(path);
    ASSERT_TRUE(in) << "tests/golden/" << name << " is missing; run with RINGSIDE_UPDATE_GOLDENS=1";
    std::stringstream expected;
    expected << in.rdbuf();
    EXPECT_TRUE(expected.str() == actual) << "tests/golden/" << name << " differs:\n"
                                          << differences(expected.str(), actual)
                                          << "If the change is meant, run with RINGSIDE_UPDATE_GOLDENS=1 and add a line under \"Predictions changed\" in CHANGELOG.md.";
}

/// Every task of the first rank class. Microseconds with two digits: compilers agree on them.
std::string timelineText(const std::string& title, const Prediction& p) {
    const RankProgram& program = p.schedule->programs.front();
    std::string out = fmt::format("# {}\n# stream | start µs | end µs | task\n", title);
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const TaskTimes& times = p.timeline.classes.front()[t];
        out += fmt::format("{:<8} | {:>8.2f} | {:>8.2f} | {}\n", program.streams[program.tasks[t].stream].name, times.start.microseconds(), times.end.microseconds(),
                           taskName(*p.schedule, program.tasks[t]));
    }
    return out;
}

TEST(Golden, ADdpStepOfAPerceptronOnTwoA100) {
    const Prediction p = predictionOf("{'model':'mlp','device':'a100-80gb-sxm','devices':2,'training':{'micro_batch':256,'optimizer':'sgd'},"
                                      "'strategy':{'name':'ddp','bucket_mb':4}}");
    compareWithGolden("ddp_mlp_2xa100.txt", timelineText("mlp, DDP with 4 MiB buckets, 2 × A100 80 GB SXM, SGD, micro-batch 256", p));
}

// The perceptron's three layers as units; on the wire and in the optimizer fp32, so that no cast stands between.
TEST(Golden, AnFsdp1StepOfAPerceptronOnTwoA100) {
    const Prediction p = predictionOf("{'model':'mlp','device':'a100-80gb-sxm','devices':2,'training':{'micro_batch':256,'optimizer':'sgd'},"
                                      "'strategy':{'name':'fsdp1','wrap_layers':['layers.0','layers.1','layers.2']}}");
    compareWithGolden("fsdp1_mlp_2xa100.txt", timelineText("mlp, FSDP1 with a unit per layer, 2 × A100 80 GB SXM, SGD, micro-batch 256", p));
}

TEST(Golden, AnFsdp2StepOfAPerceptronOnTwoA100) {
    const Prediction p = predictionOf("{'model':'mlp','device':'a100-80gb-sxm','devices':2,'training':{'micro_batch':256,'optimizer':'sgd'},"
                                      "'strategy':{'name':'fsdp2','wrap_layers':['layers.0','layers.1','layers.2']}}");
    compareWithGolden("fsdp2_mlp_2xa100.txt", timelineText("mlp, FSDP2 with a unit per layer, 2 × A100 80 GB SXM, SGD, micro-batch 256", p));
}

TEST(Golden, AnHsdpStepOfAPerceptronOnTwoPairsOfA100) {
    const Prediction p = predictionOf("{'model':'mlp','device':'a100-80gb-sxm','devices':4,'devices_per_node':2,'training':{'micro_batch':256,'optimizer':'sgd'},"
                                      "'strategy':{'name':'hsdp','wrap_layers':['layers.0','layers.1','layers.2'],'reshard_after_forward':false}}");
    compareWithGolden("hsdp_mlp_2x2xa100.txt", timelineText("mlp, HSDP with a unit per layer, kept gathered, 2 × 2 A100 80 GB SXM, SGD, micro-batch 256", p));
}

/// The same perceptron with 16-bit parameters, and buckets small enough that there are several.
void compareShardedStep(const std::string& file, const std::string& title, const std::string& strategy) {
    const Prediction p = predictionOf("{'model':'mlp','device':'a100-80gb-sxm','devices':2,'training':{'micro_batch':256,'precision':'bf16-master','optimizer':'adamw-fused'},"
                                      "'strategy':{'name':" + strategy + "}}");
    compareWithGolden(file, timelineText("mlp, " + title + ", 2 × A100 80 GB SXM, bf16 with fp32 master, fused AdamW, micro-batch 256", p));
}

TEST(Golden, AZero1StepOfAPerceptronOnTwoA100) { compareShardedStep("zero1_mlp_2xa100.txt", "ZeRO stage 1", "'zero1'"); }

TEST(Golden, AZero2StepOfAPerceptronOnTwoA100) {
    compareShardedStep("zero2_mlp_2xa100.txt", "ZeRO stage 2 with overlap and buckets of 5 million", "'zero2','overlap_comm':true,'reduce_bucket_size':5e6");
}

TEST(Golden, AZero3StepOfAPerceptronOnTwoA100) {
    compareShardedStep("zero3_mlp_2xa100.txt", "ZeRO stage 3 that keeps nothing gathered", "'zero3','max_reuse_distance':0,'prefetch_bucket_size':1e6,'reduce_bucket_size':5e6");
}

TEST(Golden, AnOffloadedZero3StepOfAPerceptronOnTwoA100) {
    compareShardedStep("zero3_offload_mlp_2xa100.txt", "ZeRO stage 3 with optimizer and parameters on the host", "'zero3','offload_optimizer':'cpu','offload_param':'cpu','reduce_bucket_size':5e6");
}

TEST(Golden, AZeroRedundancyOptimizerStepOfAPerceptronOnTwoA100) {
    compareShardedStep("zero_redundancy_optimizer_mlp_2xa100.txt", "ZeroRedundancyOptimizer", "'zero-redundancy-optimizer'");
}

TEST(Golden, AMegatronStepOfAPerceptronOnTwoA100) {
    compareShardedStep("megatron_mlp_2xa100.txt", "Megatron with both overlaps and buckets of 5 million",
                       "'megatron','overlap_grad_reduce':true,'overlap_param_gather':true,'bucket_elements':5e6");
}

TEST(Golden, AStepOfAPerceptronOnOneA100) {
    const Prediction p = predictionOf("{'model':'mlp','device':'a100-80gb-sxm','training':{'micro_batch':256,'optimizer':'sgd'},'strategy':'single'}");
    compareWithGolden("single_mlp_1xa100.txt", timelineText("mlp, single, 1 × A100 80 GB SXM, SGD, micro-batch 256", p));
}

/// The same of every strategy that a perceptron on two devices shows in a page.
TEST(Golden, StepsOfAPerceptronOnTwoA100) {
    const std::pair<const char*, const char*> rows[] = {
        {"naive", "'naive'"},
        {"picotron", "{'name':'picotron','bucket_mb':4}"},
        {"dp", "'dp'"},
        {"ps_device0", "'ps-device0'"},
        {"ps_host", "'ps-host'"},
        {"ps_sharded", "'ps-sharded'"},
        {"ps_servers", "'ps-servers'"},
        {"async_ps", "'async-ps'"},
        {"ssp", "{'name':'ssp','staleness':1}"},
        {"local_sgd", "'local-sgd'"},
        {"diloco", "'diloco'"},
        {"easgd", "'easgd'"},
        {"easgd_async", "{'name':'easgd','async_averaging':true}"},
        {"ddp_powersgd", "{'name':'ddp','bucket_mb':4,'comm_hook':'powersgd'}"},
        {"ddp_join", "{'name':'ddp','bucket_mb':4,'join':true,'exhausted_ranks':1}"},
        {"ddp_async_gradients", "{'name':'ddp','bucket_mb':4,'async_gradients':true}"},
    };
    for (const auto& [file, strategy] : rows) {
        const Prediction p = predictionOf(fmt::format("{{'model':'mlp','device':'a100-80gb-sxm','devices':2,'training':{{'micro_batch':256,'optimizer':'sgd'}},'strategy':{}}}", strategy));
        std::string title = fmt::format("mlp, {}, 2 × A100 80 GB SXM, SGD, micro-batch 256: mean step {:.2f} µs", strategy, p.stepSeconds * 1e6);
        std::erase(title, '\'');
        compareWithGolden(fmt::format("{}_mlp_2xa100.txt", file), timelineText(title, p));
    }
}

TEST(Golden, PredictionsOfTheCatalogue) {
    struct Row {
        const char *model, *hardware, *strategy, *training;
    };
    const Row rows[] = {
        {"gpt2", "'device':'a100-80gb-sxm','devices':8", "ddp", "'micro_batch':8"},
        {"gpt2-xl", "'device':'a100-80gb-sxm','devices':16,'devices_per_node':8", "ddp", "'micro_batch':4"},
        {"gpt2-xl", "'device':'a100-80gb-sxm','devices':16,'devices_per_node':8", "naive", "'micro_batch':4"},
        {"gpt2-xl", "'device':'h100-sxm','devices':16,'devices_per_node':8", "picotron", "'micro_batch':4,'precision':'bf16'"},
        {"llama-3-8b", "'device':'h100-sxm','devices':1024,'devices_per_node':8", "ddp", "'micro_batch':1,'seq_len':4096,'precision':'bf16','optimizer':'adam-8bit','recompute':'full'"},
        {"llama-3.2-1b", "'device':'h100-sxm','devices':8", "ddp", "'micro_batch':2,'seq_len':4096,'precision':'bf16','recompute':'selective'"},
        {"bert-large", "'device':'v100-sxm','devices':32,'devices_per_node':8", "ddp", "'micro_batch':8,'seq_len':384"},
        {"resnet-50", "'device':'v100-sxm','devices':8", "ddp", "'micro_batch':64,'optimizer':'momentum'"},
        {"resnet-50", "'cluster':'mixed-a100-h100'", "ddp", "'micro_batch':64,'optimizer':'momentum','precision':'bf16-autocast'"},
        {"vgg-16", "'device':'rtx-4090','devices':4", "ddp", "'micro_batch':32,'optimizer':'momentum'"},
        {"gpt2", "'device':'l4','devices':4", "ddp", "'micro_batch':4,'grad_accum':4"},
        {"mlp", "'device':'b200','devices':1", "single", "'micro_batch':64"},
        {"qwen3-8b", "'device':'h100-sxm','devices':8", "fsdp2", "'micro_batch':1,'seq_len':4096,'precision':'bf16','recompute':'full'"},
        {"qwen3-30b-a3b", "'device':'h100-sxm','devices':16,'devices_per_node':8", "{'name':'megatron','ep':8,'moe_token_dispatcher':'flex','overlap_moe_expert_parallel_comm':true}",
         "'micro_batch':1,'grad_accum':4,'seq_len':4096,'precision':'bf16-master','gated_activation':'fused'"},
        {"deepseek-v2-lite", "'device':'h100-sxm','devices':8", "{'name':'megatron','ep':8}", "'micro_batch':1,'seq_len':4096,'precision':'bf16-master'"},
        {"deepseek-v3", "'device':'h100-sxm','devices':256,'devices_per_node':8", "{'name':'megatron','pp':8,'tp':2,'etp':1,'ep':32,'sequence_parallel':true}",
         "'micro_batch':1,'grad_accum':16,'seq_len':4096,'precision':'bf16-master','recompute':'full'"},
        {"kimi-k2", "'device':'gb200','devices':576", "{'name':'megatron','pp':4,'ep':48}", "'micro_batch':1,'grad_accum':8,'seq_len':4096,'precision':'fp8','recompute':'full','gated_activation':'fused'"},
    };
    std::string out = "# model | hardware | strategy | training: step ms, exposed ms, MFU %, peak allocated GiB, peak device GiB, verdict\n";
    for (const Row& row : rows) {
        std::string hardware = row.hardware, training = row.training, strategy = row.strategy;
        const Prediction p = predictionOf(fmt::format("{{'model':'{}',{},'strategy':{},'training':{{{}}}}}", row.model, row.hardware, strategy.front() == '{' ? strategy : fmt::format("'{}'", strategy),
                                                      row.training));
        std::erase(strategy, '\'');
        std::erase(hardware, '\'');
        std::erase(training, '\'');
        out += fmt::format("{} | {} | {} | {}\n    {:.2f} ms, exposed {:.2f} ms, MFU {:.1f} %, {:.2f} GiB, {:.2f} GiB, {}\n", row.model, hardware, strategy, training,
                           p.stepSeconds * 1e3, p.breakdown.communicationExposed.seconds() * 1e3, p.mfu * 100, static_cast<double>(p.memory.peakAllocated) / static_cast<double>(kGiB),
                           static_cast<double>(p.memory.peakDevice()) / static_cast<double>(kGiB), nameOf(p.verdict));
    }
    compareWithGolden("catalogue_predictions.txt", out);
}

}  // namespace
}  // namespace ringside::testing
