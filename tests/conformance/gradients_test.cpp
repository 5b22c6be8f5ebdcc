// Gradients against finite differences of the forward op, both in the fp64 reference, which devices are then held to.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "tests/conformance/cases.h"

namespace ringside::conformance {
namespace {

/// Σ dy · y of the forward op.
double objective(Call call, const Tensor& dy) {
    runReference(call);
    double sum = 0;
    for (std::size_t i = 0; i < dy.values.size(); ++i) sum += dy.values[i] * call.out[0].values[i];
    return sum;
}

/// d objective / d input `operand`, by central differences.
std::vector<double> differences(const Call& forward, const Tensor& dy, std::size_t operand) {
    constexpr double kStep = 1e-5;
    std::vector<double> slopes;
    for (std::size_t i = 0; i < forward.in[operand].values.size(); ++i) {
        Call up = forward, down = forward;
        up.in[operand].values[i] += kStep;
        down.in[operand].values[i] -= kStep;
        slopes.push_back((objective(up, dy) - objective(down, dy)) / (2 * kStep));
    }
    return slopes;
}

struct GradientOf {
    std::size_t operand;                                             ///< of the forward op
    std::function<Call(const Call& forward, const Tensor& dy)> call;  ///< `forward` has run
    std::size_t output = 0;
};

void expectGradients(Call forward, const std::vector<GradientOf>& gradients) {
    SCOPED_TRACE(nameOf(forward.op));
    Call ran = forward;
    for (Tensor& out : ran.out)
        if (out.present()) out = zeros(static_cast<std::int64_t>(out.values.size()), out.kind);
    forward.out = ran.out;
    runReference(ran);
    const Tensor dy = random(static_cast<std::int64_t>(ran.out[0].values.size()), 77);
    for (const GradientOf& gradient : gradients) {
        const std::vector<double> expected = differences(forward, dy, gradient.operand);
        Call call = gradient.call(ran, dy);
        runReference(call);
        const std::vector<double>& found = call.out.at(gradient.output).values;
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << "operand " << gradient.operand << " element " << i;
    }
}

Tensor like(const Tensor& tensor) { return zeros(static_cast<std::int64_t>(tensor.values.size())); }

TEST(FiniteDifferences, GiveTheGradientsOfAMatmulAsMatmuls) {
    // dA = dC·Bᵀ, dB = Aᵀ·dC.
    const Call forward{KernelOp::Matmul, {random(12, 1), random(20, 2), random(5, 3)}, {zeros(15)}, {1, 3, 5, 4, 0, 0}, {1, 0}};
    expectGradients(forward, {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::Matmul, {dy, f.in[1]}, {like(f.in[0])}, {1, 3, 4, 5, 0, 1}, {1, 0}}; }},
                              {1, [](const Call& f, const Tensor& dy) { return Call{KernelOp::Matmul, {f.in[0], dy}, {like(f.in[1])}, {1, 4, 5, 3, 1, 0}, {1, 0}}; }},
                              {2, [](const Call& f, const Tensor& dy) { return Call{KernelOp::ColumnSum, {dy}, {like(f.in[2])}, {3, 5}, {0}}; }}});
}

TEST(FiniteDifferences, GiveTheGradientsOfConvolutions) {
    const Call forward{KernelOp::Convolution, {random(2 * 2 * 5 * 6, 1), random(3 * 2 * 3 * 3, 2)}, {zeros(2 * 3 * 3 * 3)}, {2, 2, 5, 6, 3, 3, 3, 2, 1}, {}};
    expectGradients(forward, {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::ConvolutionInputGradient, {dy, f.in[1]}, {like(f.in[0])}, f.dims, {}}; }},
                              {1, [](const Call& f, const Tensor& dy) { return Call{KernelOp::ConvolutionWeightGradient, {f.in[0], dy}, {like(f.in[1])}, f.dims, {0}}; }}});
}

TEST(FiniteDifferences, GiveTheGradientsOfNorms) {
    const Call layer{KernelOp::LayerNorm, {random(3 * 7, 1), random(7, 2), random(7, 3)}, {zeros(21), zeros(6)}, {3, 7}, {1e-5}};
    const auto layerWeights = [](const Call& f, const Tensor& dy) { return Call{KernelOp::LayerNormWeightGradient, {dy, f.in[0], f.out[1]}, {like(f.in[1]), like(f.in[2])}, f.dims, {0}}; };
    expectGradients(layer, {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::LayerNormInputGradient, {dy, f.in[0], f.in[1], f.out[1]}, {like(f.in[0])}, f.dims, {}}; }},
                            {1, layerWeights, 0},
                            {2, layerWeights, 1}});
    const Call rms{KernelOp::RmsNorm, {random(3 * 7, 1), random(7, 2)}, {zeros(21), zeros(3)}, {3, 7}, {1e-5}};
    expectGradients(rms, {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::RmsNormInputGradient, {dy, f.in[0], f.in[1], f.out[1]}, {like(f.in[0])}, f.dims, {}}; }},
                          {1, [](const Call& f, const Tensor& dy) { return Call{KernelOp::RmsNormWeightGradient, {dy, f.in[0], f.out[1]}, {like(f.in[1])}, f.dims, {0}}; }}});
    const Call batch{KernelOp::BatchNorm, {random(2 * 3 * 4, 1), random(3, 2), random(3, 3)}, {zeros(24), zeros(6), absent(), absent()}, {2, 3, 4}, {1e-5, 0.1}};
    const auto batchGradient = [](const Call& f, const Tensor& dy) { return Call{KernelOp::BatchNormGradient, {dy, f.in[0], f.in[1], f.out[1]}, {like(f.in[0]), like(f.in[1]), like(f.in[2])}, f.dims, {}}; };
    expectGradients(batch, {{0, batchGradient, 0}, {1, batchGradient, 1}, {2, batchGradient, 2}});
}

TEST(FiniteDifferences, GiveTheGradientsOfActivations) {
    for (std::int64_t kind = 0; kind <= static_cast<std::int64_t>(ActivationKind::Tanh); ++kind) {
        const bool keepsResult = kind == static_cast<std::int64_t>(ActivationKind::Relu) || kind == static_cast<std::int64_t>(ActivationKind::Tanh);
        const Call forward{KernelOp::Activation, {random(30, 1, -4, 4)}, {zeros(30)}, {30, kind}, {}};
        expectGradients(forward, {{0, [&](const Call& f, const Tensor& dy) { return Call{KernelOp::ActivationGradient, {dy, keepsResult ? f.out[0] : f.in[0]}, {like(f.in[0])}, f.dims, {}}; }}});
    }
}

TEST(FiniteDifferences, GiveTheGradientsOfSoftmaxAndItsLogarithm) {
    expectGradients({KernelOp::Softmax, {random(20, 1, -2, 2)}, {zeros(20)}, {4, 5}, {}},
                    {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::SoftmaxGradient, {dy, f.out[0]}, {like(f.in[0])}, f.dims, {}}; }}});
    expectGradients({KernelOp::LogSoftmax, {random(20, 1, -2, 2)}, {zeros(20)}, {4, 5}, {}},
                    {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::LogSoftmaxGradient, {dy, f.out[0]}, {like(f.in[0])}, f.dims, {}}; }}});
}

TEST(FiniteDifferences, GiveTheGradientOfTheLossWithDyAsItsScale) {
    const Call forward{KernelOp::NllLoss, {random(20, 1, -5, 0), randomTokens(4, 2, 5)}, {zeros(1)}, {4, 5}, {}};
    expectGradients(forward, {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::NllLossGradient, {f.in[1]}, {like(f.in[0])}, f.dims, {dy[0]}}; }}});
}

TEST(FiniteDifferences, GiveTheGradientsOfAttention) {
    for (const std::int64_t causal : {0, 1}) {
        const std::int64_t b = 2, s = 5, heads = 4, kvHeads = 2, d = 3;
        const Call forward{KernelOp::Attention, {random(b * s * heads * d, 1), random(b * s * kvHeads * d, 2), random(b * s * kvHeads * d, 3)}, {zeros(b * s * heads * d), zeros(b * heads * s)},
                           {b, s, heads, kvHeads, d, causal, heads * d, kvHeads * d, heads * d}, {0.6}};
        const auto gradient = [&](const Call& f, const Tensor& dy) {
            Call call{KernelOp::AttentionGradient, {dy, f.in[0], f.in[1], f.in[2], f.out[0], f.out[1]}, {like(f.in[0]), like(f.in[1]), like(f.in[2])}, f.dims, f.scalars};
            call.dims.insert(call.dims.end(), {heads * d, kvHeads * d});
            return call;
        };
        expectGradients(forward, {{0, gradient, 0}, {1, gradient, 1}, {2, gradient, 2}});
    }
}

TEST(FiniteDifferences, GiveTheGradientsOfPoolingRotaryEmbeddingAndHeads) {
    expectGradients({KernelOp::MaxPool, {random(2 * 6 * 7, 1)}, {zeros(2 * 3 * 4), zeros(2 * 3 * 4)}, {1, 2, 6, 7, 3, 2, 1}, {}},
                    {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::MaxPoolGradient, {dy, f.out[1]}, {like(f.in[0])}, f.dims, {}}; }}});
    expectGradients({KernelOp::AveragePool, {random(2 * 5 * 7, 1)}, {zeros(2 * 3 * 3)}, {1, 2, 5, 7, 3}, {}},
                    {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::AveragePoolGradient, {dy}, {like(f.in[0])}, f.dims, {}}; }}});
    // A rotation's gradient is the rotation back.
    expectGradients({KernelOp::Rotary, {random(2 * 3 * 2 * 4, 1)}, {zeros(48)}, {2, 3, 2, 4, 8, 8, 0}, {100}}, {{0, [](const Call& f, const Tensor& dy) {
                         Call call{KernelOp::Rotary, {dy}, {like(f.in[0])}, f.dims, f.scalars};
                         call.dims[6] = 1;
                         return call;
                     }}});
    expectGradients({KernelOp::Embedding, {randomTokens(6, 1, 4), random(4 * 3, 2)}, {zeros(18)}, {6, 3, 4}, {}},
                    {{1, [](const Call& f, const Tensor& dy) { return Call{KernelOp::EmbeddingGradient, {f.in[0], dy}, {like(f.in[1])}, f.dims, {}}; }}});
    expectGradients({KernelOp::RepeatHeads, {random(2 * 3 * 2 * 4, 1)}, {zeros(2 * 6 * 3 * 4)}, {2, 3, 2, 6, 4, 8}, {}},
                    {{0, [](const Call& f, const Tensor& dy) { return Call{KernelOp::SumRepeatedHeads, {dy}, {like(f.in[0])}, f.dims, {}}; }}});
    expectGradients({KernelOp::AddRows, {random(2 * 3 * 4, 1), random(12, 2)}, {zeros(24)}, {2, 3, 4}, {}},
                    {{1, [](const Call& f, const Tensor& dy) { return Call{KernelOp::SumOverSamples, {dy}, {like(f.in[1])}, f.dims, {}}; }}});
    expectGradients({KernelOp::AddBias, {random(2 * 3 * 4, 1), random(3, 2)}, {zeros(24)}, {2, 3, 4}, {}},
                    {{1, [](const Call& f, const Tensor& dy) { return Call{KernelOp::ChannelSum, {dy}, {like(f.in[1])}, f.dims, {0}}; }}});
}

}  // namespace
}  // namespace ringside::conformance
