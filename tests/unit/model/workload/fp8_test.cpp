// Linear layers in eight bits: which products are, what is quantised, and what stays in bf16.
#include <gtest/gtest.h>

#include "model/catalog/model_catalog.h"
#include "model/workload/model_spec.h"

namespace ringside {
namespace {

Workload llama(const char* precision) {
    const ModelCatalog catalog = ModelCatalog::builtin().value();
    TrainingConfig training;
    training.microBatch = 1;
    training.seqLen = 128;
    training.precision = precisionByName(precision).value();
    return buildWorkload(catalog.find("llama-3.2-1b").value(), training).value();
}

TEST(Fp8, MultipliesInEightBitsExceptInAttentionAndTheHead) {
    int eight = 0, head = 0, attention = 0, quantised = 0;
    for (const LayerType& type : llama("fp8").types)
        for (const Op& op : type.ops)
            for (const auto* kernels : {&op.forward, &op.backward})
                for (const KernelWork& work : *kernels) {
                    quantised += work.name.starts_with("quantise") ? 1 : 0;
                    if (work.cls == KernelClass::AttentionForward || work.cls == KernelClass::AttentionBackward) {
                        EXPECT_EQ(work.math, DType::Bf16);
                        ++attention;
                    }
                    if (work.cls != KernelClass::Gemm) continue;
                    const bool inHead = op.name.find("lm_head") != std::string::npos || type.name == "head";
                    EXPECT_EQ(work.math, inHead ? DType::Bf16 : DType::Fp8) << type.name << " " << op.name;
                    ++(inHead ? head : eight);
                }
    EXPECT_EQ(attention, 2);
    EXPECT_EQ(head, 3);       // forward, input gradient, weight gradient
    EXPECT_EQ(eight % 3, 0);
    EXPECT_EQ(quantised, eight / 3 * 2);  // each layer's input, and its output's gradient
}

TEST(Fp8, IsOtherwiseLikeBf16WithMasterWeights) {
    const Workload eight = llama("fp8"), two = llama("bf16-master");
    ASSERT_EQ(eight.types.size(), two.types.size());
    for (std::size_t t = 0; t < two.types.size(); ++t) {
        ASSERT_EQ(eight.types[t].ops.size(), two.types[t].ops.size());
        for (std::size_t o = 0; o < two.types[t].ops.size(); ++o) EXPECT_EQ(eight.types[t].ops[o].saves, two.types[t].ops[o].saves);
    }
}

}  // namespace
}  // namespace ringside
