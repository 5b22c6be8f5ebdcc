// Memory laws of sharding: what each stage of ZeRO takes away can be seen on every model whose state dominates.
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/property/random_scenario.h"

namespace ringside::testing {
namespace {

class ZeroLaws : public ::testing::Test {
protected:
    static void SetUpTestSuite() { setenv("RC_PARAMS", "seed=1609 max_success=60", 0); }
};

/// A Llama of 13 to 800 million parameters and few tokens. Buckets and what stays gathered are small beside the model: with
/// DeepSpeed's default of 5e8 elements they are larger than the model itself (Zero3.DefaultBucketsCanOutweighTheModel).
Json randomStateHeavy() {
    Json document;
    const int heads = *rc::gen::element(8, 16), hidden = heads * 64;
    document["model"] = {{"model_type", "llama"}, {"num_hidden_layers", *rc::gen::inRange(8, 25)}, {"num_attention_heads", heads}, {"num_key_value_heads", heads}, {"hidden_size", hidden},
                         {"intermediate_size", 4 * hidden}, {"vocab_size", 2000}, {"max_position_embeddings", 512}};
    document["device"] = "a100-80gb-sxm";
    document["devices"] = *rc::gen::element(3, 4, 8);  // with 2 ranks stages 2 and 3 tie in the step: 2Ψ + 20Ψ/N = 24Ψ/N
    document["training"] = {{"micro_batch", 1}, {"seq_len", 64}, {"precision", *oneOf({"bf16-master", "fp32", "bf16-autocast"})}, {"optimizer", *oneOf({"adamw", "adamw-fused"})},
                            {"grad_accum", *rc::gen::element(1, 2, 4)}};
    return document;
}

Bytes peakWith(Json document, const Json& strategy) {
    document["strategy"] = strategy;
    return predictionOf(scenarioOfJson(document)).memory.peakAllocated;
}

TEST_F(ZeroLaws, EachStageNeedsNoMoreMemoryThanTheOneBefore) {
    ASSERT_TRUE(rc::check("zero3 ≤ zero2 ≤ zero1 ≤ ddp", [] {
        const Json document = randomStateHeavy();
        RC_LOG() << document.dump() << std::endl;
        const Json bucket = {{"reduce_bucket_size", 5e5}};
        Json one = bucket, two = bucket, three = bucket;
        one["name"] = "zero1";
        two["name"] = "zero2";
        three["name"] = "zero3";
        three["max_reuse_distance"] = 0;
        three["prefetch_bucket_size"] = 1e5;
        const Bytes ddp = peakWith(document, "ddp"), zero1 = peakWith(document, one), zero2 = peakWith(document, two), zero3 = peakWith(document, three);
        RC_LOG() << "ddp " << ddp << ", zero1 " << zero1 << ", zero2 " << zero2 << ", zero3 " << zero3 << std::endl;
        RC_ASSERT(zero1 < ddp);
        RC_ASSERT(zero2 <= zero1);
        RC_ASSERT(zero3 <= zero2);
    }));
}

TEST_F(ZeroLaws, MoreRanksNeverNeedMoreMemoryEach) {
    ASSERT_TRUE(rc::check("peak falls with N", [] {
        Json document = randomStateHeavy();
        RC_LOG() << document.dump() << std::endl;
        for (const char* name : {"zero1", "zero2", "zero3", "zero-redundancy-optimizer", "megatron"}) {
            Bytes before = 0;
            for (const int devices : {2, 4, 8}) {
                document["devices"] = devices;
                const Bytes peak = peakWith(document, name);
                // Padding to N pieces costs a block of the allocator here and there.
                if (before > 0) RC_ASSERT(peak <= before + before / 1000 + kMiB);
                before = peak;
            }
        }
    }));
}

}  // namespace
}  // namespace ringside::testing
