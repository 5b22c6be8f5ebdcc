// Same inputs, same outputs: every op on every device against the reference.
#include <bit>
#include <cmath>

#include "tests/conformance/cases.h"
#include "tests/conformance/devices.h"

namespace ringside::conformance {
namespace {

class KernelValues : public OnEveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, KernelValues, testing::ValuesIn(deviceFactories()), factoryName);

TEST_P(KernelValues, OfEveryOpAreTheReferences) {
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(KernelOp::Count); ++i) {
        const auto op = static_cast<KernelOp>(i);
        if (op == KernelOp::Dropout) continue;
        const std::vector<Case> cases = casesOf(op);
        EXPECT_FALSE(cases.empty()) << nameOf(op);
        for (const Case& one : cases) expectSame(device(), one.call, one.tolerance);
    }
}

TEST_P(KernelValues, OfAnOpRunTwiceAreTheSameToTheLastBit) {
    const StreamIndex stream = device().createStream("twice").value();
    for (const KernelOp op : {KernelOp::Matmul, KernelOp::Attention, KernelOp::AttentionGradient, KernelOp::LayerNormWeightGradient, KernelOp::ConvolutionWeightGradient}) {
        Call first = casesOf(op).back().call, second = first;
        ASSERT_TRUE(runOnDevice(device(), stream, first).has_value());
        ASSERT_TRUE(runOnDevice(device(), stream, second).has_value());
        for (std::size_t t = 0; t < first.out.size(); ++t)
            for (std::size_t e = 0; e < first.out[t].values.size(); ++e)
                EXPECT_EQ(std::bit_cast<std::uint64_t>(first.out[t].values[e]), std::bit_cast<std::uint64_t>(second.out[t].values[e])) << nameOf(op);
    }
}

TEST_P(KernelValues, OfDropoutAreKeptAndScaledOrZeroAsTheMaskSays) {
    constexpr std::int64_t kElements = 40000;
    const StreamIndex stream = device().createStream("dropout").value();
    Call call{KernelOp::Dropout, {random(kElements, 1, 0.5, 1)}, {undefined(kElements), undefined(kElements, Tensor::Kind::Bool)}, {kElements, 42}, {0.25}};
    Call again = call, other = call;
    other.dims[1] = 43;
    ASSERT_TRUE(runOnDevice(device(), stream, call).has_value());
    ASSERT_TRUE(runOnDevice(device(), stream, again).has_value());
    ASSERT_TRUE(runOnDevice(device(), stream, other).has_value());
    double kept = 0, sameInBoth = 0;
    for (std::int64_t i = 0; i < kElements; ++i) {
        const bool keeps = call.out[1][i] != 0;
        kept += keeps ? 1 : 0;
        sameInBoth += (other.out[1][i] != 0) == keeps ? 1 : 0;
        ASSERT_NEAR(call.out[0][i], keeps ? call.in[0][i] / 0.75 : 0, 1e-6);
    }
    EXPECT_EQ(call.out[1].values, again.out[1].values) << "a seed names one mask";
    // 40,000 draws with p = 0.75: σ = √(0.75·0.25/40,000) = 0.0022. Two masks agree by chance with 0.75² + 0.25² = 0.625, σ = 0.0024.
    EXPECT_NEAR(kept / kElements, 0.75, 0.011);
    EXPECT_NEAR(sameInBoth / kElements, 0.625, 0.012);
}

TEST_P(KernelValues, OfDropoutAtTheEndsOfItsRange) {
    const StreamIndex stream = device().createStream("dropout").value();
    for (const double p : {0.0, 1.0}) {
        Call call{KernelOp::Dropout, {random(100, 1, 0.5, 1)}, {undefined(100), undefined(100, Tensor::Kind::Bool)}, {100, 7}, {p}};
        ASSERT_TRUE(runOnDevice(device(), stream, call).has_value());
        for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(call.out[0][i], p == 0 ? call.in[0][i] : 0.0);
    }
}

TEST_P(KernelValues, OfActivationsAreRightInTheirTailsToo) {
    // A tail is small beside the largest value, so it is compared by itself: relative to what it should be.
    const StreamIndex stream = device().createStream("tails").value();
    Call call{KernelOp::Activation, {zeros(0)}, {zeros(0)}, {0, 0}, {}};
    for (double x = -6; x <= 6; x += 0.03125) call.in[0].values.push_back(x);
    call.dims[0] = static_cast<std::int64_t>(call.in[0].values.size());
    call.out[0] = undefined(call.dims[0]);
    for (const ActivationKind kind : {ActivationKind::Gelu, ActivationKind::GeluTanh, ActivationKind::Silu, ActivationKind::Tanh}) {
        call.dims[1] = static_cast<std::int64_t>(kind);
        Call expected = call, found = call;
        runReference(expected);
        ASSERT_TRUE(runOnDevice(device(), stream, found).has_value());
        for (std::int64_t i = 0; i < call.dims[0]; ++i)
            // ½·x·(1 + tanh) of the reference itself cancels in the far tail.
            EXPECT_NEAR(found.out[0][i], expected.out[0][i], 4e-6 * std::abs(expected.out[0][i]) + 1e-15) << "kind " << call.dims[1] << " at " << call.in[0][i];
    }
}

TEST_P(KernelValues, KeepInfinitiesAndNaNsWhereTheyBelong) {
    const StreamIndex stream = device().createStream("edges").value();
    const double inf = INFINITY, nan = NAN;
    for (std::int64_t kind = 0; kind <= static_cast<std::int64_t>(ActivationKind::Tanh); ++kind) {
        Call call{KernelOp::Activation, {{{nan, 200, -200, inf}, Tensor::Kind::Real}}, {undefined(4)}, {4, kind}, {}};
        ASSERT_TRUE(runOnDevice(device(), stream, call).has_value());
        const bool bounded = kind == static_cast<std::int64_t>(ActivationKind::Tanh);
        EXPECT_TRUE(std::isnan(call.out[0][0])) << kind;
        EXPECT_EQ(call.out[0][1], bounded ? 1 : 200) << kind;
        EXPECT_EQ(call.out[0][2], bounded ? -1 : 0) << kind;
        EXPECT_EQ(call.out[0][3], bounded ? 1 : inf) << kind;
    }
}

TEST_P(KernelValues, OfCastsRoundToTheNearestEven) {
    // 1 + 2^-8 lies between the bf16 numbers 1 and 1 + 2^-7: to the even one, 1. 1 + 3·2^-8 goes up to 1 + 2^-6.
    const std::vector<float> values = {1.0F + 0x1p-8F, 1.0F + 3 * 0x1p-8F, 1.0F + 0x1p-8F + 0x1p-20F, -3.0F, INFINITY, NAN};
    const std::vector<float> expected = {1.0F, 1.0F + 0x1p-6F, 1.0F + 0x1p-7F, -3.0F, INFINITY, NAN};
    const StreamIndex stream = device().createStream("cast").value();
    void* wide = device().allocate(64).value();
    void* narrow = device().allocate(64).value();
    std::vector<float> back(values.size());
    const auto elements = static_cast<std::int64_t>(values.size());
    device().issue(stream, [&](const StreamContext& context) -> Result<void> {
        TRY_VOID(device().copyIn(context, wide, values.data(), elements * 4));
        TRY_VOID(device().run(context, {KernelOp::Cast, DType::Bf16, {wide}, {narrow}, {elements, static_cast<std::int64_t>(DType::Fp32)}, {}}));
        TRY_VOID(device().run(context, {KernelOp::Cast, DType::Fp32, {narrow}, {wide}, {elements, static_cast<std::int64_t>(DType::Bf16)}, {}}));
        return device().copyOut(context, back.data(), wide, elements * 4);
    });
    ASSERT_TRUE(device().synchronize().has_value());
    for (std::size_t i = 0; i + 1 < values.size(); ++i) EXPECT_EQ(back[i], expected[i]) << i;
    EXPECT_TRUE(std::isnan(back.back()));
    device().free(wide);
    device().free(narrow);
}

}  // namespace
}  // namespace ringside::conformance
