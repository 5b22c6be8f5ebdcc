// Which collectives a shard runs in each layer, how large, and what may run beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/model/workload/shard_test_models.h"

namespace ringside {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using Elements = std::vector<std::int64_t>;

// Llama-3-8B, b = 2, s = 2048: h = 4096, 32 heads and 8 key/value heads of 128, V = 128256.
constexpr std::int64_t kB = 2, kS = 2048, kH = 4096, kActivation = kB * kS * kH, kVocab = 128256, kPadded = 128512;  // Megatron: a multiple of 128·4

Workload llama(const ModelShard& shard, const char* precision = "bf16") {
    return buildWorkload(catalogModel("llama-3-8b"), shardTraining(precision, kB, kS), shard).value();
}
Workload mixtral(const ModelShard& shard) {
    return buildWorkload(catalogModel("mixtral-8x7b"), shardTraining("bf16", kB, kS), shard).value();
}

TEST(MegatronBlock, HasTwoAllReducesOfTheActivationsForwardAndTwoBackward) {
    const LayerType block = llama(tensorShard(4)).typeOf(1);
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllReduce), ElementsAre(kActivation, kActivation));
    EXPECT_THAT(elementsOf(block, true, CollectiveOp::AllReduce), ElementsAre(kActivation, kActivation));
    EXPECT_EQ(collectivesOf(block, false).size() + collectivesOf(block, true).size(), 4u);
    for (const OpCollective& collective : collectivesOf(block, true)) {
        EXPECT_EQ(collective.axis, MeshAxis::Tensor);
        EXPECT_EQ(collective.bytes(), 2 * kActivation);  // b·s·h·2 bytes
    }
}

TEST(MegatronBlock, AllReducesTheInputGradientBesideTheWeightGradient) {
    const LayerType block = llama(tensorShard(4)).typeOf(1);
    const Op& qkv = shardOp(block, "self_attn.linear_qkv");
    EXPECT_EQ(qkv.inputGradientKernels, 1);
    EXPECT_EQ(qkv.backward[0].name, "linear input gradient");
    EXPECT_EQ(qkv.backward[1].name, "linear weight gradient");
    EXPECT_EQ(qkv.inputs[0], shardOp(block, "self_attn.linear_qkv.tensor_copy").outputs[0]);
    // The whole model's projections share their input, whose gradient is complete with the last sum only.
    EXPECT_EQ(shardOp(llama({}).typeOf(1), "self_attn.q_proj").inputGradientKernels, 0);
}

TEST(MegatronBlock, UnderAutocastMovesTheSixteenBitCopy) {
    for (const bool sequence : {false, true})
        for (const bool backward : {false, true})
            for (const OpCollective& collective : collectivesOf(llama(tensorShard(4, sequence), "bf16-autocast").typeOf(1), backward))
                EXPECT_EQ(collective.dtype, DType::Bf16);
}

TEST(MegatronBlock, CutsProductsIntoPiecesBesideTheirCollectivesWithoutChangingTheWork) {
    ModelShard shard = tensorShard(4, true);
    const Workload whole = llama(shard);
    shard.overlapsTensor = true;
    const Workload cut = llama(shard);
    const LayerType block = cut.typeOf(1);
    // The gather before it sends 4 pieces; backward already gathers the input again and reduces its gradient beside other products.
    const Op& qkv = shardOp(block, "self_attn.linear_qkv");
    EXPECT_EQ(qkv.forwardPieces, 4);
    EXPECT_EQ(qkv.backwardPieces, 1);
    EXPECT_EQ(qkv.forward.size(), 4U);
    EXPECT_EQ(qkv.forward[3].shape.m, kB * kS / 4);
    EXPECT_EQ(shardOp(block, "self_attn.linear_qkv.sequence_gather").forwardPieces, 4);
    // Four pieces are reduced, and the gradient comes in one from each rank, before the input's product.
    const Op &down = shardOp(block, "mlp.down_proj"), &scatter = shardOp(block, "mlp.down_proj.sequence_scatter");
    EXPECT_EQ(down.forwardPieces, 4);
    EXPECT_EQ(down.backwardPieces, 4);
    EXPECT_EQ(down.inputGradientKernels, 4);
    EXPECT_EQ(down.backward[3].name, "linear input gradient");
    EXPECT_EQ(down.backward[4].name, "linear weight gradient");
    EXPECT_EQ(scatter.forwardPieces, 4);
    EXPECT_EQ(scatter.backwardPieces, 4);
    EXPECT_DOUBLE_EQ(forwardFlops(cut), forwardFlops(whole));
    EXPECT_DOUBLE_EQ(backwardFlops(cut), backwardFlops(whole));
    for (const bool backward : {false, true}) EXPECT_EQ(collectivesOf(block, backward), collectivesOf(whole.typeOf(1), backward));
    EXPECT_EQ(qkv.forward[0].beside, 3);
    // A piece reads its share of the rows and all of the weight.
    EXPECT_DOUBLE_EQ(qkv.forward[0].bytes, 2.0 * (kB * kS / 4 * kH + kH * 1536 + kB * kS / 4 * 1536));
}

TEST(PicotronBlock, HasTwoAllReducesForwardAndFiveBackward) {
    const LayerType block = llama(tensorShard(4, false, TensorStyle::Picotron)).typeOf(1);
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllReduce), ElementsAre(kActivation, kActivation));
    // q, k, v, gate, up: one each.
    EXPECT_EQ(elementsOf(block, true, CollectiveOp::AllReduce), Elements(5, kActivation));
    EXPECT_EQ(collectivesOf(block, true).size(), 5u);
}

TEST(PicotronBlock, SavesTheInputOfItsProjectionsOnceAlthoughEachHasItsCopy) {
    // As whole, in bytes per token: norm inputs 2·2h and inputs of qkv and of gate/up 2·2h; a quarter of the rest: rotated q 2h, rotated k and
    // v 2·2·1024, context 2h, four of 2·14336 in the MLP, log-sum-exp 32·4; whole again: rstd 2·4.
    const LayerType block = llama(tensorShard(4, false, TensorStyle::Picotron)).typeOf(1);
    EXPECT_EQ(savedBytes(block), kB * kS * (8 * kH + (4 * kH + 4 * 1024 + 8 * 14336 + 128) / 4 + 8));
}

TEST(SequenceParallelBlock, TurnsEachAllReduceIntoReduceScatterAndAllGatherAndGathersInputsAgain) {
    const LayerType block = llama(tensorShard(4, true)).typeOf(1);
    // Forward: gather, scatter for attention and for the MLP. Backward: the scatters gather, the gathers reduce-scatter, and the two
    // column-parallel products gather their saved pieces again. All of b·s·h.
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllGather), ElementsAre(kActivation, kActivation));
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::ReduceScatter), ElementsAre(kActivation, kActivation));
    EXPECT_EQ(elementsOf(block, true, CollectiveOp::AllGather), Elements(4, kActivation));
    EXPECT_THAT(elementsOf(block, true, CollectiveOp::ReduceScatter), ElementsAre(kActivation, kActivation));
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllReduce), IsEmpty());
    EXPECT_THAT(elementsOf(block, true, CollectiveOp::AllReduce), IsEmpty());
}

TEST(SequenceParallelBlock, NormsATpthOfTheTokensAndGathersBesideTheInputGradient) {
    const LayerType block = llama(tensorShard(4, true)).typeOf(1);
    EXPECT_EQ(block.values[0].shape, (Shape{kB, kS / 4, kH}));
    // RMSNorm reads and writes b·s/4·h in bf16; beside it one fp32 statistic per row, and the weight.
    EXPECT_DOUBLE_EQ(shardOp(block, "input_layernorm").forward[0].bytes, 2.0 * 2 * kActivation / 4 + 4.0 * kB * kS / 4 + 2.0 * kH);
    const Op& qkv = shardOp(block, "self_attn.linear_qkv");
    EXPECT_THAT(qkv.backwardCollectives, ElementsAre(OpCollective{CollectiveOp::AllGather, MeshAxis::Tensor, kActivation, DType::Bf16}));
    EXPECT_EQ(qkv.inputGradientKernels, 1);  // the input gradient needs the weight only, the weight gradient the gathered input
    EXPECT_THAT(qkv.saves, IsEmpty());
    const Op& gather = shardOp(block, "self_attn.linear_qkv.sequence_gather");
    EXPECT_EQ(gather.saves, gather.inputs);
}

TEST(Embedding, OverASplitVocabularyAllReducesOrReduceScattersItsRows) {
    const LayerType plain = llama(tensorShard(4)).typeOf(0), sequence = llama(tensorShard(4, true)).typeOf(0);
    EXPECT_EQ(plain.parameters[0].shape, (Shape{kPadded / 4, kH}));
    EXPECT_THAT(elementsOf(plain, false, CollectiveOp::AllReduce), ElementsAre(kActivation));
    EXPECT_THAT(collectivesOf(plain, true), IsEmpty());
    EXPECT_THAT(elementsOf(sequence, false, CollectiveOp::ReduceScatter), ElementsAre(kActivation));
    EXPECT_THAT(elementsOf(sequence, true, CollectiveOp::AllGather), ElementsAre(kActivation));
}

TEST(MegatronHead, AllReducesThreeNumbersPerTokenForTheLoss) {
    const LayerType head = llama(tensorShard(4)).types.back();
    // Maximum, target logit and sum of exponentials of b·s rows, fp32.
    EXPECT_EQ(elementsOf(head, false, CollectiveOp::AllReduce), Elements(3, kB * kS));
    for (const OpCollective& collective : collectivesOf(head, false)) EXPECT_EQ(collective.dtype, DType::Fp32);
    // Backward: the input gradient of the split projection.
    EXPECT_THAT(elementsOf(head, true, CollectiveOp::AllReduce), ElementsAre(kActivation));
    // One fp32 copy of b·s·V/4 logits is kept, and the inputs of norm and projection.
    EXPECT_EQ(savedBytes(head), kB * kS * (4 * kPadded / 4 + 2 * 2 * kH + 4));
}

TEST(MegatronHead, WithSequenceParallelismGathersItsInputForwardAndAgainInBackward) {
    const LayerType head = llama(tensorShard(4, true)).types.back();
    EXPECT_THAT(elementsOf(head, false, CollectiveOp::AllGather), ElementsAre(kActivation));
    EXPECT_EQ(elementsOf(head, false, CollectiveOp::AllReduce), Elements(3, kB * kS));
    EXPECT_THAT(elementsOf(head, true, CollectiveOp::AllGather), ElementsAre(kActivation));
    EXPECT_THAT(elementsOf(head, true, CollectiveOp::ReduceScatter), ElementsAre(kActivation));
}

TEST(MegatronModel, AllReducesTheActivationsFourTimesPerBlockAndOnceAtEachEnd) {
    const Workload model = llama(tensorShard(4));
    int large = 0, small = 0;
    for (std::size_t l = 0; l < model.layers.size(); ++l)
        for (const bool backward : {false, true})
            for (const OpCollective& collective : collectivesOf(model.typeOf(l), backward))
                ++(collective.bytes() == 33'554'432 ? large : small);  // 2·2048·4096·2 bytes
    EXPECT_EQ(large, 32 * 4 + 2);
    EXPECT_EQ(small, 3);
}

TEST(PicotronHead, GathersTheWholeLogits) {
    const LayerType head = llama(tensorShard(4, false, TensorStyle::Picotron)).types.back();
    EXPECT_THAT(elementsOf(head, false, CollectiveOp::AllGather), ElementsAre(kB * kS * kVocab));
    EXPECT_THAT(elementsOf(head, true, CollectiveOp::AllReduce), ElementsAre(kActivation));
    EXPECT_EQ(shardOp(head, "loss").attributes[0], kVocab);
}

TEST(BertHead, WithSequenceParallelismGathersForThePoolerWithoutReducingBack) {
    const Workload shard = buildWorkload(catalogModel("bert-base"), shardTraining("bf16", 2, 512), tensorShard(4, true)).value();
    // Every rank computes the same pooled output from the gathered 2·512·768, so backward keeps its part of the gradient.
    EXPECT_THAT(elementsOf(shard.types.back(), false, CollectiveOp::AllGather), ElementsAre(2 * 512 * 768));
    EXPECT_THAT(collectivesOf(shard.types.back(), true), IsEmpty());
    // Its blocks are those of every transformer.
    EXPECT_EQ(collectivesOf(shard.typeOf(1), false).size(), 4u);
    EXPECT_EQ(collectivesOf(shard.typeOf(1), true).size(), 6u);
}

TEST(RingAttention, SendsKeysAndValuesOfABlockCpMinusOneTimes) {
    const LayerType block = llama(contextShard(4)).typeOf(1);
    // Per exchange 2·b·(s/4)·8·128 elements; forward 3, backward 3 of K, V and 3 of dK, dV.
    const std::int64_t keysAndValues = 2 * kB * (kS / 4) * 8 * 128;
    EXPECT_EQ(elementsOf(block, false, CollectiveOp::SendRecv), Elements(3, keysAndValues));
    EXPECT_EQ(elementsOf(block, true, CollectiveOp::SendRecv), Elements(6, keysAndValues));
    for (const OpCollective& collective : collectivesOf(block, true)) {
        EXPECT_EQ(collective.axis, MeshAxis::Context);
        EXPECT_EQ(collective.dtype, DType::Bf16);
    }
}

TEST(RingAttention, OfPicotronSendsGradientsInFp32AndOnceMoreToBringThemHome) {
    ModelShard shard = contextShard(4, ContextKind::Ring, false, 3);
    shard.style = TensorStyle::Picotron;
    const LayerType block = llama(shard).typeOf(1);
    const RingSteps& ring = shardOp(block, "attention").ring;
    EXPECT_EQ(ring.gradientExchanges, 4);
    EXPECT_EQ(ring.gradientExchange.dtype, DType::Fp32);
    EXPECT_EQ(ring.exchange.dtype, DType::Bf16);
    // 3 of K, V at 2 bytes and 4 of dK, dV at 4, of 2·b·(s/4)·1024 elements.
    Bytes bytes = 0;
    for (const OpCollective& collective : collectivesOf(block, true)) bytes += collective.bytes();
    EXPECT_EQ(bytes, (3 * 2 + 4 * 4) * 2 * kB * (kS / 4) * 1024);
}

TEST(RingAttention, BalancedDoesHalfABlockInEveryStepButItsOwn) {
    const LayerType block = llama(contextShard(4)).typeOf(1);
    const Op& op = shardOp(block, "attention");
    // Own block: causal over 512 × 512. Others: 512 queries × 256 keys, and a merge of the partial context.
    EXPECT_THAT(op.ring.forwardKernels, ElementsAre(1, 2, 2, 3));  // the last step also casts the fp32 sum
    EXPECT_EQ(op.forward[0].shape, (GemmShape{kB * 32, 512, 512, 128}));
    EXPECT_TRUE(op.forward[0].causal);
    for (const std::size_t kernel : {1, 3, 5}) {
        EXPECT_EQ(op.forward[kernel].shape, (GemmShape{kB * 32, 512, 256, 128}));
        EXPECT_FALSE(op.forward[kernel].causal);
        EXPECT_EQ(op.forward[kernel + 1].name, "merge context");
    }
}

TEST(RingAttention, RunsBackwardFromTheOtherEndInMegatronAndFromItsOwnBlockInPicotron) {
    const Workload megatron = llama(contextShard(4, ContextKind::Ring, false, 1));
    const Op& op = shardOp(megatron.typeOf(1), "attention");
    // Rank 1 of 4 in reverse: two steps idle, one full block, then its own with sums of dq and of dK, dV, and the cast of dq. The full block adds
    // its dK, dV to those that came by.
    EXPECT_THAT(op.ring.backwardKernels, ElementsAre(0, 0, 2, 4));
    EXPECT_FALSE(op.backward[0].causal);
    EXPECT_TRUE(op.backward[2].causal);
    ModelShard shard = contextShard(4, ContextKind::Ring, false, 1);
    shard.style = TensorStyle::Picotron;
    const Workload picotron = llama(shard);
    const Op& forwardAgain = shardOp(picotron.typeOf(1), "attention");
    // Its own, a full block with both sums, idle, idle but for the casts of dq and of dK, dV from fp32.
    EXPECT_THAT(forwardAgain.ring.backwardKernels, ElementsAre(1, 3, 0, 2));
    EXPECT_TRUE(forwardAgain.backward[0].causal);
}

TEST(RingAttention, UnbalancedLeavesEarlyRanksIdleWhileBlocksPass) {
    const Workload second = llama(contextShard(4, ContextKind::Ring, false, 1));
    const Op& op = shardOp(second.typeOf(1), "attention");
    // Rank 1 of 4: its own block, one full block, then two steps of exchanges alone (the last one casts the sum).
    EXPECT_THAT(op.ring.forwardKernels, ElementsAre(1, 2, 0, 1));
    EXPECT_EQ(op.forward[1].shape, (GemmShape{kB * 32, 512, 512, 128}));
    EXPECT_FALSE(op.forward[1].causal);
    EXPECT_EQ(collectivesOf(second.typeOf(1), false).size(), 3u);
}

TEST(RingAttention, WithoutAMaskDoesAFullBlockInEveryStep) {
    ModelSpec model = catalogModel("llama-3-8b");
    std::get<TransformerSpec>(model.architecture).causal = false;
    const Workload part = buildWorkload(model, shardTraining("bf16", kB, kS), contextShard(4)).value();
    const Workload whole = buildWorkload(model, shardTraining("bf16", kB, kS)).value();
    EXPECT_DOUBLE_EQ(4 * forwardFlops(part), forwardFlops(whole));
}

TEST(Ulysses, MovesFourTimesTheActivationsOverPForEveryLayer) {
    // Multi-head attention (Llama-2-7B, h = 4096): q, k, v before and the context after, b·s·h/8 each: 4·b·s·h/8. Backward the same.
    const Workload shard = buildWorkload(catalogModel("llama-2-7b"), shardTraining("bf16", kB, kS), contextShard(8, ContextKind::Ulysses)).value();
    EXPECT_EQ(elementsOf(shard.typeOf(1), false, CollectiveOp::AllToAll), Elements(4, kActivation / 8));
    EXPECT_EQ(elementsOf(shard.typeOf(1), true, CollectiveOp::AllToAll), Elements(4, kActivation / 8));
    // Attention sees the whole sequence with 32/8 heads.
    EXPECT_EQ(shardOp(shard.typeOf(1), "attention").forward[0].shape, (GemmShape{kB * 4, kS, kS, 128}));
}

TEST(Ulysses, WithGroupedQueriesMovesFewerKeysAndRepeatsThemWhereRanksAreMore) {
    const auto moved = [](std::int64_t cp) { return elementsOf(llama(contextShard(cp, ContextKind::Ulysses)).typeOf(1), false, CollectiveOp::AllToAll); };
    // 8 of 32 heads are keys: q and context b·s·h/4, k and v a quarter of that.
    EXPECT_THAT(moved(4), ElementsAre(kActivation / 4, kActivation / 16, kActivation / 16, kActivation / 4));
    // 16 ranks: each needs a key head, so 16 heads are sent, half of the queries' 32.
    EXPECT_THAT(moved(16), ElementsAre(kActivation / 16, kActivation / 32, kActivation / 32, kActivation / 16));
}

TEST(Ulysses, WithTensorParallelismExchangesTheFusedProjectionOfItsHeads) {
    ModelShard shard = contextShard(2, ContextKind::Ulysses);
    shard.tp = 4;
    // 8 heads and 2 + 2 key/value heads of 128 on this rank, half of the tokens: b·(s/2)·12·128; the context b·(s/2)·8·128.
    EXPECT_THAT(elementsOf(llama(shard).typeOf(1), false, CollectiveOp::AllToAll), ElementsAre(kB * kS / 2 * 12 * 128, kB * kS / 2 * 8 * 128));
}

TEST(Experts, AreReachedByTwoAllToAllsForwardAndTwoBackward) {
    const LayerType block = mixtral(expertShard(4)).typeOf(1);
    // Each token goes to two experts: b·s·2·h to dispatch and as many to combine.
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllToAll), ElementsAre(2 * kActivation, 2 * kActivation));
    EXPECT_THAT(elementsOf(block, true, CollectiveOp::AllToAll), ElementsAre(2 * kActivation, 2 * kActivation));
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllReduce), IsEmpty());
    for (const OpCollective& collective : collectivesOf(block, false)) EXPECT_EQ(collective.axis, MeshAxis::Expert);
    EXPECT_THAT(collectivesOf(mixtral({}).typeOf(1), false), IsEmpty());
}

TEST(Experts, SplitOverTheTensorAxisReduceTheCombinedOutput) {
    const LayerType block = mixtral(expertShard(4, 2)).typeOf(1);
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllReduce), ElementsAre(kActivation, kActivation));
    // Backward: qkv, the tokens that go to experts, and the b·s·2 routing weights that multiply partial sums.
    EXPECT_THAT(elementsOf(block, true, CollectiveOp::AllReduce), testing::UnorderedElementsAre(kActivation, kActivation, kB * kS * 2));
}

TEST(Experts, WithSequenceParallelismExchangeTheirPartOfTheTokensAndGatherItOverTheTensorAxis) {
    const LayerType block = mixtral(expertShard(4, 2, true)).typeOf(1);
    // Half of the tokens: b·s/2·2·h through each all-to-all; gathered to b·s·2·h for the experts.
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllToAll), Each(kActivation));
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllGather), ElementsAre(kActivation, 2 * kActivation));
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::ReduceScatter), ElementsAre(kActivation, 2 * kActivation));
}

TEST(ContextAndTensorShards, CombineToACpthOfTheActivations) {
    ModelShard shard = contextShard(4);
    shard.tp = 8;
    shard.sequenceParallel = true;
    const LayerType block = llama(shard).typeOf(1);
    EXPECT_EQ(block.values[0].shape, (Shape{kB, kS / 32, kH}));
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::AllGather), Each(kActivation / 4));
    // One key/value head of 128 on this rank: 2·b·(s/4)·128 per exchange.
    EXPECT_THAT(elementsOf(block, false, CollectiveOp::SendRecv), Each(2 * kB * (kS / 4) * 128));
}

}  // namespace
}  // namespace ringside
