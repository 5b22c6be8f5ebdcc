// torch.compile: what fused kernels no longer read and write. docs/models/workloads.md.
#include <gtest/gtest.h>

#include "model/catalog/model_catalog.h"
#include "model/workload/model_spec.h"

namespace ringside {
namespace {

constexpr double kTokens = 4096, kHidden = 4096;
constexpr double kStream = kTokens * kHidden * 2;  // the residual stream in bf16

LayerType blockOfLlama(bool compiled) {
    TrainingConfig training;
    training.seqLen = static_cast<std::int64_t>(kTokens);
    training.precision = precisionByName("bf16").value();
    training.compiled = compiled;
    return buildWorkload(ModelCatalog::builtin().value().find("llama-3-8b").value(), training).value().typeOf(1);
}

const Op& opOf(const LayerType& type, const std::string& name) {
    for (const Op& op : type.ops)
        if (op.name == name) return op;
    throw std::runtime_error(name);
}

double backwardBytes(const Op& op, std::string_view kernel) {
    double bytes = 0;
    for (const KernelWork& work : op.backward)
        if (work.name == kernel) bytes += work.bytes;
    return bytes;
}

TEST(Compiled, ANormBehindAResidualAddDoesNotReadTheSumAgain) {
    const LayerType eager = blockOfLlama(false), compiled = blockOfLlama(true);
    // x, y and the weight with a statistic per token; the add has x in registers.
    EXPECT_DOUBLE_EQ(opOf(eager, "post_attention_layernorm").forward.back().bytes - opOf(compiled, "post_attention_layernorm").forward.back().bytes, kStream);
    // The first norm's input comes from another block, which may be a graph of its own.
    EXPECT_DOUBLE_EQ(opOf(eager, "input_layernorm").forward.back().bytes, opOf(compiled, "input_layernorm").forward.back().bytes);
}

TEST(Compiled, GradientsOfANormsWeightComeWithThoseOfItsInput) {
    EXPECT_GT(backwardBytes(opOf(blockOfLlama(false), "input_layernorm"), "norm weight gradient"), 0);
    EXPECT_EQ(backwardBytes(opOf(blockOfLlama(true), "input_layernorm"), "norm weight gradient"), 0);
    EXPECT_DOUBLE_EQ(backwardBytes(opOf(blockOfLlama(true), "input_layernorm"), "norm input gradient"), backwardBytes(opOf(blockOfLlama(false), "input_layernorm"), "norm input gradient"));
}

TEST(Compiled, ASumOfGradientsReadsOneSideOnly) {
    // Queries, keys and values hand back three gradients: two sums, of which each reads two and writes one.
    double eager = 0, compiled = 0;
    for (const Op& op : blockOfLlama(false).ops) eager += backwardBytes(op, "gradient add");
    for (const Op& op : blockOfLlama(true).ops) compiled += backwardBytes(op, "gradient add");
    EXPECT_DOUBLE_EQ(eager, 5 * 3 * kStream);  // two of q, k, v; one of gate and up; one of each residual stream
    EXPECT_DOUBLE_EQ(compiled, eager / 3);
}

TEST(Compiled, KeepsWhatEagerAutogradKeeps) {
    const LayerType eager = blockOfLlama(false), compiled = blockOfLlama(true);
    ASSERT_EQ(eager.ops.size(), compiled.ops.size());
    for (std::size_t o = 0; o < eager.ops.size(); ++o) EXPECT_EQ(eager.ops[o].saves, compiled.ops[o].saves) << eager.ops[o].name;
}

}  // namespace
}  // namespace ringside
