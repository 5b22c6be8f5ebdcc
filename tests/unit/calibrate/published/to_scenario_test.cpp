// Representative records of each family, and what they become.
#include "calibrate/published/to_scenario.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/published/published_cluster.h"

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Catalogs& catalogs() {
    static const Catalogs all = Catalogs::builtin().value();
    return all;
}

PublishedRecord record(const char* hardware, const char* model, const char* strategy, const char* measured = R"j({"step_time_s": 1})j", const char* notes = "", const char* repo = "a/b") {
    Json json = {{"id", "r"}, {"source", {{"repo", repo}, {"path", "p"}}}, {"hardware", Json::parse(hardware)}, {"model", Json::parse(model)}, {"strategy", Json::parse(strategy)},
                 {"measured", Json::parse(measured)}, {"notes", notes}};
    return recordsFromJson(Json::array({json}), "f").value().front();
}

MappedRecord mapped(const PublishedRecord& one) {
    auto result = toScenario(one, catalogs());
    EXPECT_TRUE(result) << result.error().toString();
    return std::move(*result);
}

std::string reason(const PublishedRecord& one) {
    const auto result = toScenario(one, catalogs());
    return result ? "none" : result.error().message;
}

constexpr const char* kA100x8 = R"j({"gpu": "A100-80GB-SXM", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8, "interconnect": "NVSwitch"})j";
constexpr const char* kGpt = R"j({"name": "gpt", "layers": 24, "hidden": 1024, "heads": 16, "kv_heads": 16, "ffn": 4096, "seq_len": 1024})j";

TEST(PublishedDevices, AreFoundByTheWordsOfEachSource) {
    const std::pair<const char*, const char*> names[] = {
        {"A100-80GB-SXM", "a100-80gb-sxm"}, {"A100 40GB PCIe", "a100-40gb-pcie"}, {"A100-SXM4-40GB", "a100-40gb-sxm"}, {"A100", "a100-80gb-sxm"}, {"H100 80GB SXM5", "h100-sxm"},
        {"H100-80GB-SXM (DGX H100)", "h100-sxm"}, {"H100 (NVLink)", "h100-sxm"}, {"H100 NVL", "h100-nvl"}, {"H100 (sm_90)", "h100-sxm"}, {"V100-16GB-SXM2", "v100-sxm-16gb"}, {"V100-SXM2-16GB", "v100-sxm-16gb"}, {"V100-32GB", "v100-sxm"}, {"B200-SXM", "b200"},
        {"GB200", "gb200"}, {"RTX 4090", "rtx-4090"}, {"4090", "rtx-4090"}, {"A10", "a10"}, {"MI300X", "mi300x"}, {"H200", "h200"}};
    for (const auto& [words, name] : names) EXPECT_EQ(deviceNameOf(words), name) << words;
    EXPECT_EQ(deviceNameOf("not stated (see context)"), "");
}

TEST(PublishedNics, AreReadFromTheirRates) {
    EXPECT_EQ(nicsOf("8x200Gb/s HDR InfiniBand per node", 8)->count, 8);
    EXPECT_EQ(nicsOf("1 x 100Gb/s EDR InfiniBand per node", 8)->count, 1);
    EXPECT_DOUBLE_EQ(nicsOf("1600 Gbps node-node RoCE", 8)->gbitPerS, 200);
    EXPECT_EQ(nicsOf("1600 Gbps node-node RoCE", 8)->count, 8);
    EXPECT_FALSE(nicsOf("NVLink/NVSwitch", 8));
}

TEST(ToScenario, MapsMegatronWithWhatTheWholeSourceLeavesOpen) {
    const MappedRecord m = mapped(record(kA100x8, kGpt, R"j({"kind": "megatron", "tp": 2, "pp": 2, "dp": 2, "cp": 1, "micro_batch": 4, "grad_accum": 4, "global_batch": 32, "precision": "fp16", "act_ckpt": "not stated in the file"})j"));
    EXPECT_EQ(m.strategy, "megatron");
    EXPECT_EQ(m.scenario.parallel.tp, 2);
    EXPECT_EQ(m.scenario.parallel.pp, 2);
    EXPECT_EQ(m.scenario.mesh.dp, 2);
    EXPECT_FALSE(m.scenario.parallel.distributedOptimizer);
    EXPECT_EQ(m.scenario.globalBatch(), 32);
    EXPECT_EQ(m.scenario.training.precision.name, "fp16-master");
    EXPECT_TRUE(m.recomputeOpen);
    EXPECT_THAT(m.assumed, ElementsAre("vocabulary not stated: 50257, GPT-2's", "recompute not stated: none"));
}

// vTrain's file for one node is its predictor's output (tests/data/published/README.md); that for several nodes is measured.
TEST(ToScenario, MapsWhatVtrainsPredictorReplays) {
    PublishedRecord one = record(kA100x8, kGpt, R"j({"kind": "megatron", "dp": 8, "micro_batch": 4, "grad_accum": 4, "global_batch": 128, "precision": "fp16"})j", R"j({"step_time_s": 1})j", "Megatron-DeepSpeed runs");
    const auto withPath = [&](const char* path) {
        one.source = std::string("VIA-Research/vTrain ") + path;
        return mapped(one).scenario.training;
    };
    const TrainingConfig replayed = withPath("data/ground_truth_single.csv"), measured = withPath("data/ground_truth_multi.csv");
    EXPECT_EQ(replayed.framework, Framework::Profiled);
    EXPECT_EQ(replayed.precision.name, "fp16-pure");
    EXPECT_FALSE(replayed.gradientClipping);
    EXPECT_EQ(measured.framework, Framework::PyTorch);
    EXPECT_EQ(measured.precision.name, "fp16-master");
    EXPECT_TRUE(measured.gradientClipping);
}

TEST(ToScenario, MapsComposersFsdp) {
    const MappedRecord m = mapped(record(R"j({"gpu": "A100-40GB-SXM", "gpus_per_node": 8, "nodes": 2, "n_gpus": 16, "interconnect": "1600 Gbps node-node RoCE (section title)"})j",
                                         R"j({"name": "MPT-125m", "layers": 12, "hidden": 768, "heads": 12, "kv_heads": 12, "ffn": 3072, "vocab": 50368, "seq_len": 512})j",
                                         R"j({"kind": "fsdp-full", "micro_batch": 128, "grad_accum": 2, "global_batch": 4096, "precision": "bf16/MP PURE", "act_ckpt": "full", "optimizer": "decoupled AdamW", "grad_clip": 1.0})j"));
    EXPECT_EQ(m.strategy, "fsdp1");
    EXPECT_EQ(m.scenario.parallel.paramDtype, DType::Bf16);
    EXPECT_EQ(m.scenario.training.recompute, Recompute::Full);
    EXPECT_EQ(m.scenario.training.optimizer.implementation, OptimizerImplementation::ForLoop);
    EXPECT_TRUE(m.scenario.training.gradientClipping);
    EXPECT_EQ(m.scenario.training.gradAccum, 2);
    EXPECT_EQ(m.scenario.cluster.nodeCount(), 2);
    EXPECT_DOUBLE_EQ(m.scenario.cluster.nodes[0].kind.nics.gbitPerS, 200);
    EXPECT_THAT(m.assumed, IsEmpty());
    // Composer computes two metrics of the logits; checkpoints end early since PyTorch 2.1.
    EXPECT_EQ(m.scenario.training.lossMetrics, 2);
    EXPECT_TRUE(m.scenario.training.recomputeEarlyStop);
}

TEST(ToScenario, LetsCheckpointsOfOldPyTorchRunWholeBlocksAgain) {
    const char* model = R"j({"name": "MPT-125m", "layers": 12, "hidden": 768, "heads": 12, "kv_heads": 12, "ffn": 3072, "vocab": 50368, "seq_len": 512})j";
    const char* strategy = R"j({"kind": "fsdp-full", "micro_batch": 128, "grad_accum": 1, "global_batch": 1024, "precision": "bf16/MP PURE", "act_ckpt": "full"})j";
    EXPECT_FALSE(mapped(record(kA100x8, model, strategy, R"j({"step_time_s": 1})j", "Old table, torch 1.13.1 image default.")).scenario.training.recomputeEarlyStop);
    EXPECT_TRUE(mapped(record(kA100x8, model, strategy, R"j({"step_time_s": 1})j", "torch 2.1 image")).scenario.training.recomputeEarlyStop);
}

TEST(ToScenario, TakesASourceAtItsWordAboutClipping) {
    const char* bert = R"j({"name": "BERT-base", "layers": 12, "hidden": 768, "heads": 12, "ffn": 3072, "vocab": 30522, "seq_len": 128})j";
    const char* strategy = R"j({"kind": "ddp", "micro_batch": 32, "global_batch": 256, "precision": "fp32", "act_ckpt": "none"})j";
    EXPECT_TRUE(mapped(record(kA100x8, bert, strategy)).scenario.training.gradientClipping);
    EXPECT_FALSE(mapped(record(kA100x8, bert, strategy, R"j({"step_time_s": 1})j", "framework MXNet W/O clip bsz=64")).scenario.training.gradientClipping);
}

TEST(ToScenario, MapsConvNetsAndTheirThroughput) {
    const PublishedRecord one = record(R"j({"gpu": "V100-16GB-SXM2", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8, "interconnect": "DGX-1V NVLink2 hybrid mesh"})j",
                                       R"j({"name": "Classification/ConvNets/resnet50v1.5", "layers": null, "seq_len": null})j",
                                       R"j({"kind": "ddp", "micro_batch": 256, "grad_accum": null, "global_batch": 2048, "precision": "fp16/bf16 amp", "act_ckpt": "none"})j", R"j({"samples_per_s": 8192})j");
    const MappedRecord m = mapped(one);
    EXPECT_EQ(m.strategy, "ddp");
    EXPECT_EQ(m.scenario.training.precision.name, "fp16-autocast");
    EXPECT_EQ(m.scenario.training.optimizer.kind, OptimizerKind::Momentum);
    EXPECT_DOUBLE_EQ(measuredStepSeconds(one, m.scenario).value(), 0.25);  // 2048 / 8192
}

TEST(ToScenario, MapsOneDeviceAsSingleWhateverTheTableIsCalled) {
    const char* alone = R"j({"gpu": "A100-80GB-SXM", "gpus_per_node": 1, "nodes": 1, "n_gpus": 1})j";
    const char* bert = R"j({"name": "BERT-large SQuAD", "layers": 24, "hidden": 1024, "heads": 16, "ffn": 4096, "vocab": 30522, "seq_len": 384})j";
    const MappedRecord m = mapped(record(alone, bert, R"j({"kind": "ddp", "micro_batch": 32, "global_batch": 32, "precision": "fp32 (TF32 on Ampere+)", "act_ckpt": "none"})j"));
    EXPECT_EQ(m.strategy, "single");
    EXPECT_EQ(m.scenario.training.precision.name, "tf32");
    EXPECT_EQ(m.scenario.training.attention, AttentionKernel::Math);
    EXPECT_TRUE(m.scenario.training.dropout);
}

TEST(ToScenario, MapsTheDistributedOptimizerWithOverlapAndSequenceParallelism) {
    const MappedRecord m = mapped(record(R"j({"gpu": "B200-SXM", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8, "interconnect": "NVLink5"})j",
                                         R"j({"name": "llama3_70b truncated to 12 layers", "layers": 12, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672, "vocab": 128256, "seq_len": 4096})j",
                                         R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 4, "micro_batch": 1, "grad_accum": 4, "global_batch": 8, "precision": "bf16", "act_ckpt": "none", "dp": 2, "ep": 1})j"));
    EXPECT_EQ(m.strategy, "megatron");
    EXPECT_TRUE(m.scenario.parallel.distributedOptimizer && m.scenario.parallel.overlapGradReduce && m.scenario.parallel.sequenceParallel);
    EXPECT_EQ(m.scenario.training.precision.name, "bf16-master");
    EXPECT_FALSE(m.recomputeOpen);
}

TEST(ToScenario, MapsDeepSpeedStagesWithOffload) {
    const char* llama = R"j({"name": "Llama-3.1-8B", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq_len": 8192})j";
    const char* h200 = R"j({"gpu": "H200", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8, "interconnect": "NVLink4"})j";
    const PublishedRecord one = record(h200, llama, R"j({"kind": "zero3", "micro_batch": 1, "grad_accum": 1, "global_batch": 8, "precision": "bf16", "act_ckpt": "full", "offload": "cpu AdamW + activation-checkpoint offload"})j",
                                       R"j({"tflops_per_gpu": 100})j", "model FLOPs with causal attention");
    const MappedRecord m = mapped(one);
    EXPECT_EQ(m.strategy, "zero3");
    EXPECT_EQ(m.scenario.parallel.offloadOptimizer, "cpu");
    // 8192 tokens × (6·8,030,261,248 + 6·32·4096·8192) FLOPs on each of eight devices at 100 TFLOPS.
    EXPECT_NEAR(measuredStepSeconds(one, m.scenario).value(), 8192 * (6 * 8030261248.0 + 6.0 * 32 * 4096 * 8192) / 100e12, 1e-6);
}

TEST(ToScenario, LigersKernelsNeverHoldAllLogits) {
    const char* llama = R"j({"name": "Llama-3.1-8B", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq_len": 8192})j";
    const MappedRecord m = mapped(record(kA100x8, llama, R"j({"kind": "zero3", "micro_batch": 1, "global_batch": 8, "precision": "bf16", "act_ckpt": "full"})j", R"j({"step_time_s": 1})j", "torch 2.13, Liger"));
    EXPECT_EQ(m.scenario.training.loss, LossKernel::FusedLinear);
    EXPECT_EQ(m.scenario.training.gatedActivation, GatedKernel::FusedInPlace);
    EXPECT_FALSE(m.scenario.parallel.zeroInit);  // 16 GB fit on a device of 80, so nobody builds it in pieces
}

TEST(ToScenario, TakesWhatHuggingFacesModulesRun) {
    const char* llama = R"j({"name": "Llama-3.1-8B", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq_len": 8192})j";
    const char* b200 = R"j({"gpu": "B200", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8, "interconnect": "NVLink5"})j";
    const char* zero2 = R"j({"kind": "zero2", "micro_batch": 1, "global_batch": 8, "precision": "bf16", "act_ckpt": "full, use_reentrant=False", "overlap": "overlap_comm"})j";
    const PublishedRecord liger = record(b200, llama, zero2, R"j({"tflops_per_gpu": 100})j", "transformers 5.14.1, Liger; model FLOPs with causal attention, without the embedding's lookup");
    const Scenario with = mapped(liger).scenario;
    EXPECT_EQ(nameOf(with.training.attention), "flash4");
    EXPECT_EQ(with.training.framework, Framework::HuggingFace);
    EXPECT_EQ(with.training.rmsNorm, NormKernel::Fused);
    EXPECT_TRUE(with.parallel.overlapComm.value_or(false));
    // The head's 128,256 · 4,096 weights are multiplied, the embedding's looked up.
    EXPECT_NEAR(measuredStepSeconds(liger, with).value(), 8192 * (6 * (8030261248.0 - 128256.0 * 4096) + 6.0 * 32 * 4096 * 8192) / 100e12, 1e-6);
    const Scenario without = mapped(record(b200, llama, zero2, R"j({"tflops_per_gpu": 100})j", "no Liger; transformers 5.14.1")).scenario;
    EXPECT_EQ(without.training.rmsNorm, NormKernel::Eager);
    EXPECT_EQ(without.training.loss, LossKernel::Eager);
}

TEST(ToScenario, OverlapsTensorParallelCollectivesWhereTheSourceSaysSo) {
    const auto overlaps = [](const char* overlap) {
        return mapped(record(kA100x8, kGpt, (std::string(R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 2, "micro_batch": 1, "global_batch": 8, "precision": "bf16", "act_ckpt": "none", "overlap": ")j") + overlap + R"j("})j").c_str()))
            .scenario.parallel.tpCommOverlap;
    };
    EXPECT_TRUE(overlaps("--overlap-grad-reduce --tp-comm-overlap"));
    EXPECT_FALSE(overlaps("--overlap-grad-reduce"));
}

TEST(ToScenario, MegatronReducesBf16GradientsInFp32UnlessARecipeTurnsItOff) {
    const char* strategy = R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 2, "micro_batch": 1, "global_batch": 8, "precision": "bf16", "act_ckpt": "none"})j";
    EXPECT_TRUE(mapped(record(kA100x8, kGpt, strategy)).scenario.parallel.gradReduceInFp32);
    EXPECT_FALSE(mapped(record(kA100x8, kGpt, strategy, R"j({"step_time_s": 1})j", "", "NVIDIA-NeMo/Megatron-Bridge")).scenario.parallel.gradReduceInFp32);
}

TEST(ToScenario, DerivesTheStepFromTokensOrUtilisation) {
    const char* strategy = R"j({"kind": "ddp", "micro_batch": 2, "grad_accum": 1, "precision": "bf16", "act_ckpt": "none"})j";
    const char* gpt = R"j({"name": "gpt", "layers": 12, "hidden": 768, "heads": 12, "vocab": 50304, "seq_len": 1024})j";
    const PublishedRecord perGpu = record(kA100x8, gpt, strategy, R"j({"tokens_per_s_per_gpu": 1024})j");
    EXPECT_DOUBLE_EQ(measuredStepSeconds(perGpu, mapped(perGpu).scenario).value(), 2);  // 2 × 1024 tokens per device
    const PublishedRecord total = record(kA100x8, gpt, strategy, R"j({"tokens_per_s": 16384})j");
    EXPECT_DOUBLE_EQ(measuredStepSeconds(total, mapped(total).scenario).value(), 1);
    const PublishedRecord used = record(kA100x8, gpt, strategy, R"j({"mfu": 0.5})j"), rate = record(kA100x8, gpt, strategy, R"j({"tflops_per_gpu": 156})j");
    EXPECT_DOUBLE_EQ(measuredStepSeconds(used, mapped(used).scenario).value(), measuredStepSeconds(rate, mapped(rate).scenario).value());  // half of 312
}

TEST(ToScenario, ChoosesAMicroBatchWhereOnlyTheGlobalOneIsStated) {
    const char* strategy = R"j({"kind": "ddp", "micro_batch": null, "global_batch": null, "precision": "bf16", "act_ckpt": "none", "global_batch_tokens": "0.5M"})j";
    const MappedRecord m = mapped(record(kA100x8, kGpt, strategy));
    EXPECT_EQ(m.scenario.training.microBatch, 8);   // 8,192 tokens
    EXPECT_EQ(m.scenario.training.gradAccum, 8);    // 524,288 / (8 ranks × 1,024 × 8)
    EXPECT_THAT(m.assumed, testing::Contains(HasSubstr("micro_batch not stated: 8")));
}

TEST(ToScenario, MapsEightBitRecipesWhereTheDeviceHasThem) {
    const char* llama = R"j({"name": "LLAMA3_8B", "layers": null, "seq_len": 8192})j";
    const char* strategy = R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 1, "pp": 1, "cp": 1, "micro_batch": 2, "global_batch": 128, "precision": "FP8-MX", "act_ckpt": null})j";
    const MappedRecord m = mapped(record(R"j({"gpu": "B200", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8, "interconnect": "DGX NVLink + IB"})j", llama, strategy));
    EXPECT_EQ(m.scenario.training.precision.name, "fp8");
    EXPECT_EQ(m.scenario.training.gradAccum, 8);
    EXPECT_FALSE(m.recomputeOpen);
    EXPECT_THAT(reason(record(kA100x8, llama, strategy)), HasSubstr("has no fp8 arithmetic"));
}

TEST(ToScenario, SaysWhyARecordCannotBePredicted) {
    const char* ddp = R"j({"kind": "ddp", "micro_batch": 4, "global_batch": 32, "precision": "bf16", "act_ckpt": "none"})j";
    EXPECT_THAT(reason(record(kA100x8, R"j({"name": "Segmentation/MaskRCNN"})j", ddp)), HasSubstr("a detector"));
    EXPECT_THAT(reason(record(kA100x8, R"j({"name": "MysteryNet"})j", ddp)), HasSubstr("'MysteryNet'"));
    EXPECT_THAT(reason(record(R"j({"gpu": "TPU v4", "n_gpus": 8})j", kGpt, ddp)), HasSubstr("'TPU v4' is not in the catalogue"));
    EXPECT_THAT(reason(record(R"j({"gpu": "A100", "n_gpus": 12, "nodes": 2, "gpus_per_node": 8})j", kGpt, ddp)), HasSubstr("n_gpus is 12"));
    EXPECT_THAT(reason(record(R"j({"gpu": "not stated"})j", kGpt, ddp)), HasSubstr("the device is not stated"));
    EXPECT_THAT(reason(record(kA100x8, kGpt, R"j({"kind": "gossip", "micro_batch": 4, "precision": "bf16"})j")), HasSubstr("'gossip' is not known"));
    EXPECT_THAT(reason(record(kA100x8, kGpt, R"j({"kind": "ddp", "precision": "bf16"})j")), HasSubstr("micro_batch"));
    EXPECT_THAT(reason(record(kA100x8, kGpt, R"j({"kind": "ddp", "micro_batch": 4, "global_batch": 33, "precision": "bf16"})j")), HasSubstr("33"));
    EXPECT_THAT(reason(record(kA100x8, kGpt, R"j({"kind": "ddp", "micro_batch": 4, "precision": "NVFP4"})j")), HasSubstr("'NVFP4' is not supported"));
    EXPECT_THAT(reason(record(kA100x8, R"j({"name": "llama-3-8b"})j", ddp)), HasSubstr("the sequence length is not stated"));
    EXPECT_THAT(reason(record(kA100x8, kGpt, R"j({"kind": "ddp", "method": "LoRA", "micro_batch": 4, "precision": "bf16"})j")), HasSubstr("adapters"));
}

TEST(ToScenario, TakesNvidiasConvNetsAsChannelsLastWithSixteenBitsOnly) {
    const char* resnet = R"j({"name": "Classification/ConvNets/resnet50v1.5"})j";
    const char* amp = R"j({"kind": "ddp", "micro_batch": 256, "global_batch": 2048, "precision": "fp16/bf16 amp"})j";
    const char* tf32 = R"j({"kind": "ddp", "micro_batch": 256, "global_batch": 2048, "precision": "tf32"})j";
    constexpr const char* kStep = R"j({"step_time_s": 1})j";
    EXPECT_EQ(mapped(record(kA100x8, resnet, amp, kStep, "", "NVIDIA/DeepLearningExamples")).scenario.training.memoryFormat, MemoryFormat::ChannelsLast);
    EXPECT_EQ(mapped(record(kA100x8, resnet, tf32, kStep, "", "NVIDIA/DeepLearningExamples")).scenario.training.memoryFormat, MemoryFormat::Contiguous);
    EXPECT_EQ(mapped(record(kA100x8, resnet, amp, kStep, "", "lambdal/deeplearning-benchmark")).scenario.training.memoryFormat, MemoryFormat::Contiguous) << "they run its scripts at their defaults";
    const char* stated = R"j({"kind": "ddp", "micro_batch": 256, "global_batch": 2048, "precision": "fp16 amp", "memory_format": "channels_last"})j";
    EXPECT_EQ(mapped(record(kA100x8, resnet, stated)).scenario.training.memoryFormat, MemoryFormat::ChannelsLast);
}

TEST(ToScenario, GivesBertFineTunedInFp32AnOptimizerThatGoesTensorByTensor) {
    const char* squad = R"j({"name": "BERT-large SQuAD", "layers": 24, "hidden": 1024, "heads": 16, "ffn": 4096, "vocab": 30522, "seq_len": 384})j";
    const auto implementation = [&](const char* precision) {
        const std::string strategy = R"j({"kind": "ddp", "micro_batch": 4, "global_batch": 32, "act_ckpt": "none", "precision": ")j" + std::string(precision) + "\"}";
        return mapped(record(kA100x8, squad, strategy.c_str())).scenario.training.optimizer.implementation;
    };
    EXPECT_EQ(implementation("fp32 (TF32 on Ampere+)"), OptimizerImplementation::ForLoop);
    EXPECT_EQ(implementation("fp16 amp"), OptimizerImplementation::Fused);
}

TEST(ToScenario, KnowsWhatNvidiasBertPredictsAndWhatItsBinsHide) {
    const auto bert = [](int length) { return R"j({"name": "BERT-large pretraining", "layers": 24, "hidden": 1024, "heads": 16, "ffn": 4096, "vocab": 30522, "seq_len": )j" + std::to_string(length) + "}"; };
    const char* amp = R"j({"kind": "ddp", "micro_batch": 8, "grad_accum": 4, "global_batch": 256, "precision": "fp16 amp", "act_ckpt": "none"})j";
    const MappedRecord m = mapped(record(kA100x8, bert(128).c_str(), amp, R"j({"step_time_s": 1})j", "", "NVIDIA/DeepLearningExamples"));
    EXPECT_EQ(std::get<TransformerSpec>(m.scenario.model.architecture).maskedPredictions, 20);
    EXPECT_THAT(reason(record(kA100x8, bert(512).c_str(), amp, R"j({"step_time_s": 1})j", "", "NVIDIA/DeepLearningExamples")), HasSubstr("bins of 64 tokens"));
    EXPECT_EQ(reason(record(kA100x8, bert(512).c_str(), amp)), "none");
}

TEST(ToScenario, ComposerReducesGradientsOfFsdpInEveryMicroStep) {
    PublishedRecord one = record(kA100x8, R"j({"name": "MPT-125m", "layers": 12, "hidden": 768, "heads": 12, "kv_heads": 12, "ffn": 3072, "vocab": 50368, "seq_len": 512})j",
                                 R"j({"kind": "fsdp-full", "micro_batch": 8, "grad_accum": 2, "global_batch": 128, "precision": "bf16/MP PURE", "act_ckpt": "full"})j");
    EXPECT_TRUE(mapped(one).scenario.parallel.noSync);
    one.family = "llm-foundry";
    EXPECT_FALSE(mapped(one).scenario.parallel.noSync);
}

TEST(ToScenario, KnowsTorchtunesTechniquesEachOnTopOfThoseBefore) {
    const auto with = [](const char* technique) {
        Json how = {{"kind", "single"}, {"micro_batch", 2}, {"precision", "bf16"}, {"technique", technique}};
        return mapped(record(R"j({"gpu": "A100", "n_gpus": 1})j", R"j({"name": "Llama-3.2-3B", "seq_len": 4096})j", how.dump().c_str(), R"j({"step_time_s": 1})j", "", "pytorch/torchtune")).scenario.training;
    };
    const TrainingConfig packed = with("+ Packed Dataset"), compiled = with("+ Compile"), fused = with("+ Fuse optimizer step into backward"), last = with("+ 8-bit AdamW");
    EXPECT_EQ(packed.rmsNorm, NormKernel::Eager);
    EXPECT_EQ(compiled.rmsNorm, NormKernel::Fused);
    EXPECT_EQ(compiled.gatedActivation, GatedKernel::Fused);
    EXPECT_EQ(compiled.loss, LossKernel::Eager);
    EXPECT_EQ(fused.loss, LossKernel::Fused);
    EXPECT_EQ(fused.recompute, Recompute::Full);
    EXPECT_TRUE(fused.optimizerInBackward);
    EXPECT_FALSE(fused.offloadActivations);
    EXPECT_TRUE(last.optimizerInBackward);
    EXPECT_TRUE(last.offloadActivations);
    EXPECT_EQ(last.optimizer.kind, OptimizerKind::Adam8bit);
}

TEST(ToScenario, TorchtuneShardsEveryLayerApart) {
    const MappedRecord m = mapped(record(kA100x8, R"j({"name": "Llama 3.1 70B", "seq_len": 2048})j",
                                         R"j({"kind": "fsdp-full", "method": "Full finetune", "micro_batch": 2, "grad_accum": 1, "compile": true, "precision": "bf16", "offload": "cpu offload with fused optimizer"})j",
                                         R"j({"step_time_s": 1})j", "", "pytorch/torchtune"));
    EXPECT_EQ(m.scenario.parallel.wrapLayers.size(), 82U);  // the embedding, 80 blocks and the head
    EXPECT_TRUE(m.scenario.parallel.cpuOffload);
    EXPECT_EQ(m.scenario.training.loss, LossKernel::Fused);
    EXPECT_EQ(m.scenario.training.rmsNorm, NormKernel::Fused);
}

PublishedRecord bridge(const char* hardware, const char* model, const char* strategy, const char* release) {
    PublishedRecord one = record(hardware, model, strategy, R"j({"tokens_per_s_per_gpu": 1000})j", "", "NVIDIA-NeMo/Megatron-Bridge");
    one.family = "megatron-bridge";
    one.json["source"]["release"] = release;
    return one;
}

constexpr const char* kGb200x256 = R"j({"gpu": "GB200", "gpus_per_node": 4, "nodes": 64, "n_gpus": 256, "interconnect": "NVL72 NVLink5 + IB"})j";
constexpr const char* kDeepSeekOnGb200 = R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 1, "pp": 4, "cp": 1, "vp": 4, "ep": 64, "micro_batch": 1, "global_batch": 4096, "precision": "MXFP8"})j";

TEST(ToScenario, MapsDeepSeekV3WithItsPredictionModuleLayoutAndDispatcher) {
    const MappedRecord m = mapped(bridge(kGb200x256, R"j({"name": "DeepSeekV3", "seq_len": 4096})j", kDeepSeekOnGb200, "26.04 NeMo Container"));
    const auto& spec = std::get<TransformerSpec>(m.scenario.model.architecture);
    EXPECT_EQ(spec.layers, 61);
    EXPECT_EQ(spec.predictionModules, 1);
    EXPECT_EQ(m.scenario.parallel.ep, 64);
    EXPECT_EQ(m.scenario.parallel.tokenDispatcher, "flex");
    // Sixteen chunks: fifteen of four blocks, one and the module in the last.
    std::vector<std::int64_t> layout(15, 4);
    layout.push_back(2);
    EXPECT_EQ(m.scenario.parallel.pipelineLayout, layout);
    EXPECT_FALSE(m.scenario.parallel.overlapExpertExchange);
    EXPECT_EQ(std::get<TransformerSpec>(mapped(bridge(kGb200x256, R"j({"name": "DeepSeekV3 (w/o MTP)", "seq_len": 4096})j", kDeepSeekOnGb200, "26.04")).scenario.model.architecture).predictionModules, 0);
    // From 26.06 on the recipe overlaps the experts' communication.
    EXPECT_TRUE(mapped(bridge(kGb200x256, R"j({"name": "DeepSeekV3", "seq_len": 4096})j", kDeepSeekOnGb200, "26.06 NeMo Container")).scenario.parallel.overlapExpertExchange);
}

TEST(ToScenario, RunsAgainWhatTheRecipeNames) {
    const auto with = [](const char* modules) {
        std::string strategy = kDeepSeekOnGb200;
        strategy.insert(strategy.size() - 1, modules);
        return mapped(bridge(kGb200x256, R"j({"name": "DeepSeekV3", "seq_len": 4096})j", strategy.c_str(), "26.04")).scenario.training;
    };
    EXPECT_EQ(with(R"j(, "recompute_modules": ["mla_up_proj", "mlp"])j").recompute, Recompute::Selective);
    EXPECT_THAT(with(R"j(, "recompute_modules": ["mla_up_proj", "mlp"])j").recomputeModules, ElementsAre(RecomputeModule::LatentUp, RecomputeModule::Mlp));
    EXPECT_EQ(with(R"j(, "recompute_modules": [])j").recompute, Recompute::None);
    EXPECT_EQ(with("").recompute, Recompute::None);
}

TEST(ToScenario, SendsTokensAsTheRecipeOfTheReleaseSays) {
    const auto with = [](const char* more) {
        std::string strategy = kDeepSeekOnGb200;
        strategy.insert(strategy.size() - 1, more);
        return mapped(bridge(kGb200x256, R"j({"name": "DeepSeekV3", "seq_len": 4096})j", strategy.c_str(), "26.06")).scenario.parallel;
    };
    EXPECT_EQ(with(R"j(, "moe_flex_dispatcher_backend": "hybridep")j").tokenDispatcher, "flex");
    EXPECT_EQ(with(R"j(, "moe_flex_dispatcher_backend": null)j").tokenDispatcher, "alltoall");
    EXPECT_FALSE(with(R"j(, "moe_a2a_overlap": false)j").overlapExpertExchange);
    EXPECT_TRUE(with(R"j(, "moe_a2a_overlap": true)j").overlapExpertExchange);
    EXPECT_THAT(with(R"j(, "cuda_graph_scope": ["attn", "moe_router"])j").cudaGraphScope, ElementsAre("attn", "moe_router"));
}

TEST(ToScenario, DropsTokensWhereTheSourceDidAndThenTheHostDoesNotWait) {
    const auto of = [](const char* model) { return mapped(bridge(kGb200x256, model, kDeepSeekOnGb200, "25.09")).scenario; };
    const Scenario dropped = of(R"j({"name": "DeepSeekV3 (tokendrop)", "seq_len": 4096})j"), all = of(R"j({"name": "DeepSeekV3", "seq_len": 4096})j");
    EXPECT_TRUE(dropped.parallel.padExpertInputToCapacity);
    EXPECT_FALSE(all.parallel.padExpertInputToCapacity);
    EXPECT_EQ(all.training.framework, Framework::TransformerEngine);
}

TEST(ToScenario, MapsQwen3OnH100WithWholeExpertsAndAnAccountOfEmbeddingAndLoss) {
    const MappedRecord m = mapped(bridge(R"j({"gpu": "H100", "gpus_per_node": 8, "nodes": 32, "n_gpus": 256, "interconnect": "NVLink4 + IB"})j", R"j({"name": "Qwen3_235B_a22B", "seq_len": 4096})j",
                                         R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 2, "pp": 8, "cp": 1, "vp": 4, "ep": 32, "micro_batch": 1, "global_batch": 8192, "precision": "FP8"})j", "26.02"));
    EXPECT_EQ(m.scenario.model.name, "qwen3-235b-a22b");
    EXPECT_EQ(m.scenario.parallel.etp, 1);
    EXPECT_EQ(m.scenario.parallel.tokenDispatcher, "alltoall");
    EXPECT_TRUE(m.scenario.parallel.overlapExpertExchange);
    // 94 blocks, embedding and loss: 96 over 32 chunks.
    std::vector<std::int64_t> layout(32, 3);
    layout.front() = layout.back() = 2;
    EXPECT_EQ(m.scenario.parallel.pipelineLayout, layout);
}

TEST(ToScenario, OverlapsTensorCollectivesWhereMegatronBridgesRecipesDo) {
    const auto overlaps = [](const char* model, const char* strategy) {
        const MappedRecord m = mapped(bridge(kGb200x256, model, strategy, "26.04 NeMo Container"));
        const bool assumed = std::count_if(m.assumed.begin(), m.assumed.end(), [](const std::string& one) { return one.starts_with("tensor-parallel overlap"); }) > 0;
        EXPECT_EQ(assumed, m.scenario.parallel.tpCommOverlap);
        return m.scenario.parallel.tpCommOverlap;
    };
    EXPECT_TRUE(overlaps(R"j({"name": "LLAMA3_70B", "seq_len": 8192})j", R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 2, "pp": 4, "vp": 5, "micro_batch": 1, "global_batch": 256, "precision": "FP8"})j"));
    EXPECT_FALSE(overlaps(R"j({"name": "LLAMA3_70B", "seq_len": 8192})j", R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 1, "pp": 4, "vp": 5, "micro_batch": 1, "global_batch": 256, "precision": "FP8"})j"));
    EXPECT_FALSE(overlaps(R"j({"name": "DeepSeekV3", "seq_len": 4096})j",
                          R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 2, "pp": 4, "vp": 4, "ep": 64, "micro_batch": 1, "global_batch": 4096, "precision": "MXFP8"})j"));
}

TEST(ToScenario, TakesTruncatedDeepSeekModelsAsTheSourceTrainedThem) {
    const MappedRecord m = mapped(record(R"j({"gpu": "B200-SXM", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8, "interconnect": "NVLink5"})j",
                                         R"j({"name": "deepseek_v3 truncated to 4 layers", "layers": 4, "hidden": 7168, "heads": 128, "kv_heads": 128, "ffn": 18432, "vocab": 129280, "seq_len": 4096})j",
                                         R"j({"kind": "zero1 (Megatron distributed optimizer)", "tp": 1, "pp": 1, "ep": 8, "micro_batch": 1, "grad_accum": 4, "global_batch": 32, "precision": "bf16", "act_ckpt": "none"})j"));
    const auto& spec = std::get<TransformerSpec>(m.scenario.model.architecture);
    EXPECT_EQ(spec.layers, 4);
    EXPECT_THAT(spec.denseLayers, ElementsAre(0));
    EXPECT_EQ(spec.predictionModules, 0);
    EXPECT_EQ(m.scenario.parallel.tokenDispatcher, "alltoall");
}

TEST(PublishedDevices, TakeMemoryBandwidthAndPowerFromTheirText) {
    const auto device = [](const char* gpu) {
        const PublishedRecord one = record((R"j({"gpu": ")j" + std::string(gpu) + R"j(", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8})j").c_str(), kGpt, R"j({"kind": "ddp"})j");
        return clusterOf(one.hardware, catalogs().hardware).value().nodes.front().kind.device;
    };
    const Device slow = device("H100-96GB-SXM (HBM2e, 2.4 TB/s, 500 W)"), usual = device("H100-80GB-SXM (700W)");
    EXPECT_EQ(slow.memoryGb, 96);
    EXPECT_EQ(slow.memoryBandwidthGbPerS, 2400);
    EXPECT_EQ(slow.powerLimitW, 500);
    EXPECT_EQ(usual, device("H100"));
    for (const char* other : {"H100 (NVL72 rack)", "H100 w/ NVLink 0.9 TB/s", "8 H100, 400 Gb IB", "8x400GbE, H100", "H100 in a node of 10200 W"}) EXPECT_EQ(device(other), usual) << other;
}

constexpr const char* kLlama8b = R"j({"name": "Llama 3.1 8B", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq_len": 8192})j";
constexpr const char* kH100x8 = R"j({"gpu": "H100-80GB-SXM", "gpus_per_node": 8, "nodes": 1, "n_gpus": 8, "interconnect": "NVLink"})j";

TEST(ToScenario, TakesEightBitsCompilationAndCheckpointsByOperatorsOfFsdp) {
    const MappedRecord m = mapped(record(kH100x8, kLlama8b, R"j({"kind": "fsdp2", "micro_batch": 2, "precision": "bf16 + float8", "act_ckpt": "selective (op)", "compile": true})j"));
    const TrainingConfig& training = m.scenario.training;
    EXPECT_EQ(training.precision.name, "fp8");
    EXPECT_TRUE(training.compiled);
    EXPECT_EQ(training.loss, LossKernel::Fused);
    EXPECT_EQ(training.recompute, Recompute::Operators);
    EXPECT_TRUE(training.recomputeEarlyStop);
    const MappedRecord plain = mapped(record(kH100x8, kLlama8b, R"j({"kind": "fsdp2", "micro_batch": 2, "precision": "bf16", "act_ckpt": "full", "compile": false})j"));
    EXPECT_FALSE(plain.scenario.parallel.sequenceParallel);
    EXPECT_TRUE(mapped(record(kH100x8, kLlama8b, R"j({"kind": "fsdp2", "tp": 8, "micro_batch": 2, "precision": "bf16", "act_ckpt": "full"})j")).scenario.parallel.sequenceParallel);
    EXPECT_FALSE(plain.scenario.training.compiled);
    EXPECT_EQ(plain.scenario.training.recompute, Recompute::Full);
}

TEST(ToScenario, InterleavesAPipelineWhoseMessagesOverlap) {
    const auto of = [](const char* overlap, int layers) {
        const std::string model = R"j({"name": "gpt", "layers": )j" + std::to_string(layers) + R"j(, "hidden": 1024, "heads": 16, "kv_heads": 16, "ffn": 4096, "vocab": 51200, "seq_len": 1024})j";
        const std::string strategy = R"j({"kind": "zero1 (distributed optimizer)", "tp": 1, "pp": 4, "global_batch": 16, "precision": "bf16", "overlap": ")j" + std::string(overlap) + "\"}";
        return mapped(record(kA100x8, model.c_str(), strategy.c_str()));
    };
    const MappedRecord m = of("--overlap-grad-reduce --overlap-param-gather, pipeline-parallel communication", 24);
    EXPECT_EQ(m.scenario.parallel.pipelineSchedule, "interleaved");
    EXPECT_EQ(m.scenario.parallel.virtualStages, 6);
    EXPECT_THAT(m.assumed, testing::Contains(HasSubstr("virtual stages not stated: 6")));
    EXPECT_NE(of("--overlap-grad-reduce --overlap-param-gather", 24).scenario.parallel.pipelineSchedule, "interleaved");
    EXPECT_NE(of("pipeline-parallel communication", 22).scenario.parallel.pipelineSchedule, "interleaved") << "blocks that do not divide over the stages";
}

}  // namespace
}  // namespace ringside
