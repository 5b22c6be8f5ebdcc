// What a shard holds and computes: parameters and FLOPs add up to the whole model, saved bytes follow Korthikanti et al., and
// shards that cannot be cut are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

#include "tests/unit/model/workload/shard_test_models.h"

namespace ringside {
namespace {

using testing::HasSubstr;

Workload build(const std::string& name, const TrainingConfig& training, const ModelShard& shard = {}) {
    return buildWorkload(catalogModel(name), training, shard).value();
}

struct Held {
    std::int64_t sharded = 0, replicated = 0;
};
Held heldBy(const Workload& workload) {
    Held held;
    for (std::size_t l = 0; l < workload.layers.size(); ++l)
        for (std::size_t p = 0; p < workload.typeOf(l).parameters.size(); ++p) {
            const Parameter& parameter = workload.typeOf(l).parameters[p];
            if (workload.isTied(static_cast<int>(l), static_cast<int>(p))) continue;
            (parameter.tensorSharded ? held.sharded : held.replicated) += parameter.elements();
        }
    return held;
}

TEST(WholeShard, IsTheWorkloadWithoutAShard) {
    for (const char* name : {"gpt2", "llama-3-8b", "mixtral-8x7b", "bert-base", "vit-b-16", "resnet-50"}) {
        const Workload plain = buildWorkload(catalogModel(name), shardTraining("bf16-autocast", 2, 256)).value();
        // Flags that act only with several ranks change nothing.
        ModelShard flags;
        flags.sequenceParallel = true;
        flags.style = TensorStyle::Picotron;
        flags.context = ContextKind::Ulysses;
        ASSERT_TRUE(flags.isWhole());
        const Workload whole = build(name, shardTraining("bf16-autocast", 2, 256), flags);
        EXPECT_EQ(parameterCount(whole), parameterCount(plain)) << name;
        EXPECT_EQ(partialGradientElements(whole), 0) << name;
        ASSERT_EQ(whole.types.size(), plain.types.size());
        for (std::size_t t = 0; t < plain.types.size(); ++t) {
            ASSERT_EQ(whole.types[t].ops.size(), plain.types[t].ops.size()) << name;
            EXPECT_EQ(savedBytes(whole.types[t]), savedBytes(plain.types[t])) << name;
            for (std::size_t o = 0; o < plain.types[t].ops.size(); ++o) {
                EXPECT_EQ(whole.types[t].ops[o].forward, plain.types[t].ops[o].forward) << name;
                EXPECT_EQ(whole.types[t].ops[o].backward, plain.types[t].ops[o].backward) << name;
            }
            EXPECT_TRUE(collectivesOf(whole.types[t], false).empty()) << name;
            EXPECT_TRUE(collectivesOf(whole.types[t], true).empty()) << name;
        }
    }
}

TEST(TensorShard, HoldsATpthOfEveryMatrixAndAllOfTheNorms) {
    const Workload whole = build("llama-3-8b", shardTraining("bf16", 1, 1024));
    // Norms: 32 blocks of 2·4096, and the last one: 65·4096 = 266,240. The rest of 8,030,261,248 is split.
    const std::int64_t norms = 65 * 4096, matrices = 8'030'261'248 - norms;
    ASSERT_EQ(parameterCount(whole), norms + matrices);
    for (const TensorStyle style : {TensorStyle::Megatron, TensorStyle::Picotron})
        for (const std::int64_t tp : {2, 4, 8}) {
            const Held held = heldBy(build("llama-3-8b", shardTraining("bf16", 1, 1024), tensorShard(tp, false, style)));
            EXPECT_EQ(held.replicated, norms);
            // Megatron pads embedding and head, 128,256 rows each, to a multiple of 128·tp.
            const std::int64_t unit = style == TensorStyle::Megatron ? 128 * tp : tp;
            const std::int64_t padding = (128256 + unit - 1) / unit * unit - 128256;
            EXPECT_EQ(held.sharded * tp, matrices + 2 * padding * 4096);
        }
}

TEST(TensorShard, OfGpt2KeepsRowBiasesAndPositionsWholeAndPadsTheVocabulary) {
    const Workload shard = build("gpt2", shardTraining("bf16", 1, 1024), tensorShard(4));
    // Split per block: c_attn 768·2304 + 2304, c_proj 768·768, c_fc 768·3072 + 3072, c_proj 3072·768: 7,083,264 / 4 = 1,770,816.
    // Whole per block: two norms 4·768, two row biases 2·768: 4608. Positions 1024·768 and the last norm 2·768 are whole too.
    // 50257 rows are padded to a multiple of 4·128: 99·128 = 12672 rows each.
    const Held held = heldBy(shard);
    EXPECT_EQ(held.sharded, 12 * 1'770'816 + 12672 * 768);
    EXPECT_EQ(held.replicated, 12 * 4608 + 1024 * 768 + 2 * 768);
    EXPECT_EQ(parameterCount(shard), held.sharded + held.replicated);
    EXPECT_EQ(shard.typeOf(1).parameters[2].shape, (Shape{768, 576}));  // Conv1D keeps [in, out]; 2304/4
}

TEST(TensorShard, WithFewerKeyValueHeadsThanRanksHoldsOneHeadOnSeveralRanks) {
    // 8 key/value heads on 16 ranks: q has 32/16 = 2 heads, k and v one each: (2 + 2·1)·128 = 512 rows.
    const Workload shard = build("llama-3-8b", shardTraining("bf16", 1, 1024), tensorShard(16));
    const Op& qkv = shardOp(shard.typeOf(1), "self_attn.linear_qkv");
    EXPECT_EQ(shard.typeOf(1).parameters[static_cast<std::size_t>(qkv.parameters[0])].shape, (Shape{512, 4096}));
    EXPECT_EQ(shardOp(shard.typeOf(1), "attention").attributes[1], 1);
}

TEST(ExpertShard, HoldsAnEpthOfTheExpertsAndMarksThem) {
    const Workload whole = build("mixtral-8x7b", shardTraining("bf16", 1, 1024));
    const Workload shard = build("mixtral-8x7b", shardTraining("bf16", 1, 1024), expertShard(4));
    // 8 experts of 3·4096·14336 in 32 blocks; a rank of 4 holds 2 of them.
    const std::int64_t experts = std::int64_t{32} * 8 * 3 * 4096 * 14336;
    EXPECT_EQ(parameterCount(shard), parameterCount(whole) - experts * 3 / 4);
    std::int64_t marked = 0;
    for (const Parameter& parameter : shard.typeOf(1).parameters)
        if (parameter.expert) marked += parameter.elements();
    EXPECT_EQ(32 * marked, experts / 4);
}

TEST(PartialGradients, AreThoseOfNormsAndRowBiasesWithSequenceParallelismOnly) {
    const TrainingConfig training = shardTraining("bf16", 1, 1024);
    EXPECT_EQ(partialGradientElements(build("gpt2", training, tensorShard(4))), 0);
    // Per block two norms 4·768 and two row biases 2·768; positions 1024·768; the last norm 2·768.
    EXPECT_EQ(partialGradientElements(build("gpt2", training, tensorShard(4, true))), 12 * 6 * 768 + 1024 * 768 + 2 * 768);
    // Llama: norms only, 65·4096.
    EXPECT_EQ(partialGradientElements(build("llama-3-8b", training, tensorShard(4, true))), 65 * 4096);
}

TEST(PartialGradients, OfHeadNormsAppearAsSoonAsHeadsAreSplit) {
    ModelSpec model = catalogModel("llama-3-8b");
    std::get<TransformerSpec>(model.architecture).queryKeyNorm = true;
    for (const TensorStyle style : {TensorStyle::Megatron, TensorStyle::Picotron}) {
        const Workload shard = buildWorkload(model, shardTraining("bf16", 1, 1024), tensorShard(4, false, style)).value();
        // q_norm and k_norm of 128 in each of 32 blocks.
        EXPECT_EQ(partialGradientElements(shard), 32 * 2 * 128);
    }
}

TEST(Flops, OfTensorShardsAddUpToTheWhole) {
    const TrainingConfig training = shardTraining("bf16", 2, 2048);
    for (const char* name : {"llama-3-8b", "mixtral-8x7b", "gpt3-1.3b"}) {
        ModelSpec model = catalogModel(name);
        std::get<TransformerSpec>(model.architecture).vocab = 32768;  // divides by 128·tp, so that no row is padding
        const Workload whole = buildWorkload(model, training).value();
        for (const ModelShard& shard : {tensorShard(4), tensorShard(4, true), tensorShard(8, false, TensorStyle::Picotron)}) {
            const Workload part = buildWorkload(model, training, shard).value();
            // A router is not split: without sequence parallelism every rank computes all of it, 2·T·8·4096 FLOPs per block.
            double repeated = 0;
            if (std::string(name) == "mixtral-8x7b" && !shard.splitsSequence())
                repeated = 32 * 2.0 * 2 * 2048 * 8 * 4096 * static_cast<double>(shard.tp - 1);
            const double tp = static_cast<double>(shard.tp);
            EXPECT_DOUBLE_EQ(tp * forwardFlops(part), forwardFlops(whole) + repeated) << name;
            EXPECT_DOUBLE_EQ(tp * backwardFlops(part), backwardFlops(whole) + 2 * repeated) << name;
        }
    }
}

TEST(Flops, OfABalancedRingAndOfUlyssesAreACpthOfTheWholeOnEveryRank) {
    const Workload whole = build("llama-3-8b", shardTraining("bf16", 1, 8192));
    for (const std::int64_t cp : {2, 4, 8}) {
        // Ring: own block half of (s/cp)², each of cp − 1 others half a block: cp·½·(s/cp)² = ½·s²/cp.
        for (const ContextKind kind : {ContextKind::Ring, ContextKind::Ulysses}) {
            const Workload part = build("llama-3-8b", shardTraining("bf16", 1, 8192), contextShard(cp, kind));
            EXPECT_DOUBLE_EQ(static_cast<double>(cp) * flopsDone(part, false), flopsDone(whole, false));
            EXPECT_DOUBLE_EQ(static_cast<double>(cp) * flopsDone(part, true), flopsDone(whole, true));
        }
    }
}

TEST(Flops, OfAnUnbalancedRingGrowWithTheRankAndAddUpToTheWhole) {
    const TrainingConfig training = shardTraining("bf16", 1, 8192);
    const Workload whole = build("llama-3-8b", training);
    double forward = 0, backward = 0;
    std::vector<double> ranks;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
        const Workload part = build("llama-3-8b", training, contextShard(4, ContextKind::Ring, false, rank));
        ranks.push_back(flopsDone(part, false));
        forward += ranks.back();
        backward += flopsDone(part, true);
    }
    EXPECT_DOUBLE_EQ(forward, flopsDone(whole, false));
    EXPECT_DOUBLE_EQ(backward, flopsDone(whole, true));
    // Each rank has one full block more than the one before: 4·b·a·(s/4)²·d = 4·32·2048²·128 in 32 blocks.
    const double block = 32 * 4.0 * 32 * 2048 * 2048 * 128;
    for (std::size_t r = 1; r < 4; ++r) EXPECT_DOUBLE_EQ(ranks[r] - ranks[r - 1], block);
}

TEST(Flops, OfExpertsStayWhenTheyAreSplit) {
    // Every rank sends its tokens away and gets as many: the rows stay, the experts they are for are fewer.
    const TrainingConfig training = shardTraining("bf16", 1, 4096);
    const Workload whole = build("mixtral-8x7b", training), part = build("mixtral-8x7b", training, expertShard(4));
    EXPECT_DOUBLE_EQ(forwardFlops(part), forwardFlops(whole));
    const KernelWork& product = shardOp(part.typeOf(1), "mlp.experts.gate_up_proj").forward.front();
    // 4096 tokens × 2 choices over 2 local experts: 4096 rows each.
    EXPECT_EQ(product.shape, (GemmShape{2, 4096, 2 * 14336, 4096}));
}

TEST(SavedBytes, OfATensorShardAreTenPlusTwentyFourOverTTimesTheHiddenSize) {
    TrainingConfig training = shardTraining("bf16", 2, 512);
    training.dropout = true;
    // Korthikanti et al. (2022) with fused attention: s·b·h·(10 + 24/t). Whole: two norm inputs 4, inputs of qkv and of the MLP 4, two
    // masks 2. Split: q, k, v 6, context 2, GELU's input 8 and output 8. Beside it two norms' mean and rstd, 16 bytes per token, and
    // log-sum-exp, 4 bytes per token and head. GPT-2: h = 768, 12 heads.
    for (const std::int64_t t : {2, 4, 6}) {
        const Workload shard = build("gpt2", training, tensorShard(t));
        EXPECT_EQ(savedBytes(shard.typeOf(1)), 1024 * (10 * 768 + 24 * 768 / t + 16 + 4 * 12 / t));
    }
}

TEST(SavedBytes, OfATensorAndSequenceShardAreATthOfTheWhole) {
    TrainingConfig training = shardTraining("bf16", 2, 512);
    training.dropout = true;
    // Korthikanti et al.: s·b·h/t·34, with the statistics of norms and attention split as well.
    for (const std::int64_t t : {2, 4}) {
        const Workload shard = build("gpt2", training, tensorShard(t, true));
        EXPECT_EQ(savedBytes(shard.typeOf(1)), 1024 * (34 * 768 + 16 + 4 * 12) / t);
    }
}

TEST(SavedBytes, OfPlainAttentionInAShardHaveFiveBytesPerScoreOfItsHeads) {
    TrainingConfig training = shardTraining("bf16", 2, 512);
    training.dropout = true;
    training.attention = AttentionKernel::Math;
    // s·b·h/t·(34 + 5·a·s/h): 5·b·a·s²/t more, no log-sum-exp.
    EXPECT_EQ(savedBytes(build("gpt2", training, tensorShard(4, true)).typeOf(1)), (1024 * (34 * 768 + 16) + 5 * 2 * 12 * 512 * 512) / 4);
}

TEST(SavedBytes, OfAContextShardAreACpthOfTheWholeAndUlyssesKeepsTheContextTwice) {
    const TrainingConfig training = shardTraining("bf16", 1, 8192);
    const Bytes whole = savedBytes(build("llama-3-8b", training).typeOf(1));
    EXPECT_EQ(8 * savedBytes(build("llama-3-8b", training, contextShard(8)).typeOf(1)), whole);
    // Attention keeps its output by heads, the output projection the same by tokens: s·h·2 bytes more over all ranks.
    EXPECT_EQ(8 * savedBytes(build("llama-3-8b", training, contextShard(8, ContextKind::Ulysses)).typeOf(1)), whole + 8192 * 4096 * 2);
}

TEST(Input, OfAContextShardIsItsPartOfTheSequence) {
    const Workload part = build("llama-3-8b", shardTraining("bf16", 2, 8192), contextShard(4));
    EXPECT_EQ(part.tokensPerSample, 8192);
    EXPECT_EQ(part.inputBytes, 2 * 2048 * 16);
}

// Every shard that the checks let through hangs together.
TEST(EveryShard, IsConsistent) {
    const std::vector<std::string> names{"gpt2", "llama-3.2-1b", "mixtral-8x7b", "bert-base", "vit-b-16", "qwen2.5-0.5b", "mpt-125m"};
    const std::vector<std::string> precisions = precisionNames();
    int built = 0;
    EXPECT_TRUE(rc::check("indices in range, layers chain, parts of rings add up, gathered inputs are not saved", [&] {
        const std::string precision = *rc::gen::elementOf(precisions);
        TrainingConfig training = shardTraining(precision.c_str(), *rc::gen::inRange(1, 4), 64 * *rc::gen::inRange(1, 5));
        training.dropout = *rc::gen::arbitrary<bool>();
        training.attention = *rc::gen::element(AttentionKernel::Flash, AttentionKernel::Math);
        ModelShard shard;
        shard.tp = *rc::gen::element(1, 2, 4, 7, 8);
        shard.cp = *rc::gen::element(1, 2, 4);
        shard.ep = *rc::gen::element(1, 2, 8);
        shard.sequenceParallel = *rc::gen::arbitrary<bool>();
        shard.style = *rc::gen::element(TensorStyle::Megatron, TensorStyle::Picotron);
        shard.context = *rc::gen::element(ContextKind::Ring, ContextKind::Ulysses);
        shard.balanced = *rc::gen::arbitrary<bool>();
        shard.cpRank = *rc::gen::inRange<std::int64_t>(0, shard.cp);
        ModelSpec model = catalogModel(*rc::gen::elementOf(names));
        TransformerSpec& spec = std::get<TransformerSpec>(model.architecture);
        spec.queryKeyNorm = *rc::gen::arbitrary<bool>() && !spec.fusedQkv;
        const auto result = buildWorkload(model, training, shard);
        if (!result) {
            RC_ASSERT(!result.error().message.empty());
            return;
        }
        ++built;
        const Workload& workload = *result;
        for (std::size_t l = 0; l < workload.layers.size(); ++l) {
            const LayerType& type = workload.typeOf(l);
            if (l > 0) {
                const LayerType& before = workload.typeOf(l - 1);
                RC_ASSERT(before.values[static_cast<std::size_t>(before.output)].shape == type.values[0].shape);
                RC_ASSERT(before.values[static_cast<std::size_t>(before.output)].dtype == type.values[0].dtype);
            }
            std::vector<bool> written(type.values.size(), false), used(type.parameters.size(), false);
            written[0] = true;
            for (const Op& op : type.ops) {
                for (const int v : op.inputs) RC_ASSERT(written.at(static_cast<std::size_t>(v)));
                for (const int v : op.outputs) written.at(static_cast<std::size_t>(v)) = true;
                for (const int v : op.saves)
                    RC_ASSERT(std::count(op.inputs.begin(), op.inputs.end(), v) + std::count(op.outputs.begin(), op.outputs.end(), v) > 0);
                for (const int p : op.parameters) used.at(static_cast<std::size_t>(p)) = true;
                for (const auto& kernels : {op.forward, op.backward})
                    for (const KernelWork& kernel : kernels) RC_ASSERT(kernel.bytes > 0 && !kernel.name.empty());
                for (const auto& collectives : {op.forwardCollectives, op.backwardCollectives})
                    for (const OpCollective& collective : collectives) RC_ASSERT(collective.elements > 0);
                RC_ASSERT(op.inputGradientKernels <= static_cast<int>(op.backward.size()));
                if (op.ring.steps > 0) {
                    RC_ASSERT(op.ring.forwardKernels.size() == static_cast<std::size_t>(shard.cp));
                    RC_ASSERT(static_cast<std::size_t>(std::accumulate(op.ring.forwardKernels.begin(), op.ring.forwardKernels.end(), 0)) == op.forward.size());
                    RC_ASSERT(static_cast<std::size_t>(std::accumulate(op.ring.backwardKernels.begin(), op.ring.backwardKernels.end(), 0)) == op.backward.size());
                }
            }
            RC_ASSERT(std::find(written.begin(), written.end(), false) == written.end());
            RC_ASSERT(std::find(used.begin(), used.end(), false) == used.end());
            for (const Parameter& parameter : type.parameters) RC_ASSERT(!(parameter.tensorSharded && parameter.partialOverTensor));
        }
    }));
    EXPECT_GT(built, 10);
}

std::string refusal(const std::string& name, const ModelShard& shard, TrainingConfig training = shardTraining("bf16", 1, 1024)) {
    const auto result = buildWorkload(catalogModel(name), training, shard);
    return result ? "" : result.error().toString();
}

TEST(Refusal, OfATensorShardNamesTheFigureThatDoesNotDivide) {
    EXPECT_THAT(refusal("llama-3-8b", tensorShard(3)), HasSubstr("32 attention heads do not divide by tp 3; use a --tp that divides 32"));
    ModelSpec odd = catalogModel("llama-3-8b");
    std::get<TransformerSpec>(odd.architecture).ffn = 14338;
    const auto result = buildWorkload(odd, shardTraining("bf16", 1, 1024), tensorShard(4));
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().toString(), HasSubstr("14338 features of the feed-forward layer do not divide by tp 4"));
    std::get<TransformerSpec>(odd.architecture).ffn = 14336;
    std::get<TransformerSpec>(odd.architecture).heads = 36;
    std::get<TransformerSpec>(odd.architecture).kvHeads = 6;
    EXPECT_THAT(buildWorkload(odd, shardTraining("bf16", 1, 1024), tensorShard(4)).error().toString(), HasSubstr("6 key/value heads"));
}

TEST(Refusal, OfAModelWithoutSuchAFormSaysSo) {
    EXPECT_EQ(refusal("resnet-50", tensorShard(2)), "resnet-50 has no tensor-parallel form; use --tp 1");
    EXPECT_EQ(refusal("mlp", contextShard(2)), "mlp has no context-parallel form; use --cp 1");
    EXPECT_EQ(refusal("vgg-16", expertShard(2)), "vgg-16 has no experts to split over ep 2; use --ep 1");
    EXPECT_EQ(refusal("llama-3-8b", expertShard(2)), "llama-3-8b has no experts to split over ep 2; use --ep 1");
    EXPECT_THAT(refusal("bert-base", contextShard(2), shardTraining("bf16", 1, 512)), HasSubstr("bert-base has no context-parallel form"));
    EXPECT_THAT(refusal("vit-b-16", tensorShard(2, true)), HasSubstr("197 tokens has no sequence-parallel form"));
    EXPECT_THAT(refusal("llama-3-8b", tensorShard(2, true, TensorStyle::Picotron)), HasSubstr("Picotron"));
}

TEST(Refusal, OfAContextShardNamesTokensOrHeads) {
    EXPECT_THAT(refusal("llama-3-8b", contextShard(3)), HasSubstr("1024 tokens does not divide into 6 pieces"));
    EXPECT_EQ(refusal("llama-3-8b", contextShard(4, ContextKind::Ring, false), shardTraining("bf16", 1, 1020)), "");
    EXPECT_THAT(refusal("llama-3-8b", contextShard(4), shardTraining("bf16", 1, 1020)), HasSubstr("divides by 8"));
    ModelShard both = contextShard(16, ContextKind::Ulysses);
    both.tp = 4;
    EXPECT_THAT(refusal("llama-3-8b", both), HasSubstr("the 8 attention heads of a rank (32 / tp 4) over cp 16"));
    ModelShard sequence = contextShard(2);
    sequence.tp = 4;
    sequence.sequenceParallel = true;
    EXPECT_THAT(refusal("llama-3-8b", sequence, shardTraining("bf16", 1, 1028)), HasSubstr("514 tokens per rank do not divide by tp 4"));
    TrainingConfig math = shardTraining("bf16", 1, 1024);
    math.attention = AttentionKernel::Math;
    EXPECT_THAT(refusal("llama-3-8b", contextShard(2), math), HasSubstr("--attention flash"));
    EXPECT_EQ(refusal("llama-3-8b", contextShard(2, ContextKind::Ulysses), math), "");
    math.attention = AttentionKernel::Flash3;
    EXPECT_EQ(refusal("llama-3-8b", contextShard(2), math), "") << "any generation of fused kernels";
}

TEST(Refusal, OfNumbersThatAreNoRanks) {
    EXPECT_THAT(refusal("llama-3-8b", tensorShard(0)), HasSubstr("tp is 0; expected 1 to"));
    EXPECT_THAT(refusal("mixtral-8x7b", expertShard(3)), HasSubstr("8 experts do not divide by ep 3"));
    EXPECT_THAT(refusal("llama-3-8b", contextShard(4, ContextKind::Ring, false, 4)), HasSubstr("context rank 4 of cp 4; expected 0 to 3"));
}

}  // namespace
}  // namespace ringside
