// Kernels against the stand-in (no GPU): what cuBLASLt and cuDNN are asked for is computed by its loops and compared; own kernels
// are only seen to be launched.
#include <bit>
#include <numeric>

#include <gmock/gmock.h>

#include "kernels/kernel_signature.h"
#include "tests/gpu/host_logic/stand_in_device.h"

namespace ringside {
namespace {

using testing::HasSubstr;

std::vector<float> numbers(std::size_t count, int seed) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((static_cast<int>(i) * 37 + seed * 11) % 17 - 8) * 0.25F;
    return values;
}

class KernelHostLogic : public StandInTest {
protected:
    KernelCall matmul(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, const void* a, const void* b, void* c) {
        KernelCall call;
        call.op = KernelOp::Matmul;
        call.in = {a, b};
        call.out = {c};
        call.dims = {batch, m, n, k, ta ? 1 : 0, tb ? 1 : 0};
        call.scalars = {1, 0};
        return call;
    }
};

TEST_F(KernelHostLogic, MatmulIsRowMajorWithAnyTransposeBiasAlphaAndBeta) {
    const std::int64_t batch = 2, m = 3, n = 5, k = 4;
    const std::vector<float> a = numbers(batch * m * k, 1), b = numbers(batch * k * n, 2), bias = numbers(n, 3), before = numbers(batch * m * n, 4);
    for (const bool ta : {false, true})
        for (const bool tb : {false, true})
            for (const bool withBias : {false, true}) {
                float* c = put(before);
                KernelCall call = matmul(batch, m, n, k, ta, tb, put(a), put(b), c);
                if (withBias) call.in[2] = put(bias);
                call.scalars = {2, 0.5};
                const Result<void> result = run(call);
                ASSERT_TRUE(result) << result.error().toString();
                for (std::int64_t s = 0; s < batch; ++s)
                    for (std::int64_t i = 0; i < m; ++i)
                        for (std::int64_t j = 0; j < n; ++j) {
                            double sum = 0;
                            for (std::int64_t p = 0; p < k; ++p)
                                sum += static_cast<double>(a[static_cast<std::size_t>(s * m * k + (ta ? p * m + i : i * k + p))]) *
                                       static_cast<double>(b[static_cast<std::size_t>(s * k * n + (tb ? j * k + p : p * n + j))]);
                            const auto at = static_cast<std::size_t>((s * m + i) * n + j);
                            const double expected = 2 * sum + (withBias ? static_cast<double>(bias[static_cast<std::size_t>(j)]) : 0.0) + 0.5 * static_cast<double>(before[at]);
                            ASSERT_NEAR(c[at], expected, 1e-4) << "transposes " << ta << tb << " bias " << withBias;
                        }
            }
}

TEST_F(KernelHostLogic, MatmulInBf16AndItsAlignment) {
    // [1 2]·[3; 4] = 11 in bf16, whose bits are the upper half of fp32's; the operands are 2 bytes off.
    const auto bf16 = [](float x) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16); };
    auto* memory = static_cast<std::uint16_t*>(device_->allocate(256).value());
    std::fill_n(memory, 128, std::uint16_t{0});
    memory[1] = bf16(1), memory[2] = bf16(2), memory[17] = bf16(3), memory[18] = bf16(4);
    KernelCall call = matmul(1, 1, 1, 2, false, false, memory + 1, memory + 17, memory + 32);
    call.dtype = DType::Bf16;
    const Result<void> result = run(call);
    ASSERT_TRUE(result) << result.error().toString();
    EXPECT_EQ(memory[32], bf16(11));
    EXPECT_EQ(standIn().count("alignment 2"), 2);   // A and B
    EXPECT_EQ(standIn().count("alignment 64"), 2);  // C and D
}

TEST_F(KernelHostLogic, APlanIsMadeOncePerShapeAndFp32IsNotTf32) {
    float *a = put(numbers(6, 1)), *b = put(numbers(6, 2)), *c = put(numbers(4, 3));
    KernelCall call = matmul(1, 2, 2, 3, false, false, a, b, c);
    ASSERT_TRUE(run(call));
    ASSERT_TRUE(run(call));
    EXPECT_EQ(standIn().count("cublasLtMatmul stream"), 2);
    EXPECT_EQ(standIn().count("cublasLtMatmulAlgoGetHeuristic"), 1);
    EXPECT_EQ(standIn().count("cublasLtMatmulAlgoGetHeuristic compute 68"), 1);  // CUBLAS_COMPUTE_32F
    call.dtype = DType::Tf32;
    ASSERT_TRUE(run(call));
    EXPECT_EQ(standIn().count("cublasLtMatmulAlgoGetHeuristic compute 77"), 1);  // CUBLAS_COMPUTE_32F_FAST_TF32
}

TEST_F(KernelHostLogic, AMatmulOfNothingAsksNobody) {
    float* c = put({5});
    ASSERT_TRUE(run(matmul(1, 0, 4, 4, false, false, c, c, c)));
    ASSERT_TRUE(run(matmul(1, 1, 1, 0, false, false, c, c, c)));
    EXPECT_EQ(standIn().count("cublasLtMatmul"), 0);
    EXPECT_EQ(standIn().count("cudaMemsetAsync 4 "), 1);  // k = 0: the sum of no products
}

TEST_F(KernelHostLogic, AFailureOfTheLibraryNamesItsFunction) {
    float* a = put(numbers(4, 1));
    standIn().failNext("cublasLtMatmul", 13);
    const Result<void> result = run(matmul(1, 2, 2, 2, false, false, a, a, put(numbers(4, 2))));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(result.error().message, HasSubstr("cublasLtMatmul"));
}

double dot(const float* a, const float* b, std::size_t n) { return std::inner_product(a, a + n, b, 0.0, std::plus<>(), [](float x, float y) { return static_cast<double>(x) * static_cast<double>(y); }); }

TEST_F(KernelHostLogic, ConvolutionAndItsGradientsAreAdjoint) {
    // n = 2, ci = 3, 6 × 5, co = 4, kernel 3 × 2, stride 2, padding 1: oh = (6+2−3)/2+1 = 3, ow = (5+2−2)/2+1 = 3.
    const std::size_t xs = 2 * 3 * 6 * 5, ws = 4 * 3 * 3 * 2, ys = 2 * 4 * 3 * 3;
    float *x = put(numbers(xs, 1)), *w = put(numbers(ws, 2)), *y = put(std::vector<float>(ys, -1)), *dy = put(numbers(ys, 3)), *dx = put(std::vector<float>(xs)),
          *dw = put(std::vector<float>(ws, 1));
    KernelCall call;
    call.dims = {2, 3, 6, 5, 4, 3, 2, 2, 1};
    call.op = KernelOp::Convolution, call.in = {x, w}, call.out = {y};
    Result<void> result = run(call);
    ASSERT_TRUE(result) << result.error().toString();
    // The first output sees rows −1…1 and columns −1…0 of the three planes: two rows and one column of each are inside.
    double first = 0;
    for (int c = 0; c < 3; ++c)
        for (int a = 1; a < 3; ++a) first += static_cast<double>(x[c * 30 + (a - 1) * 5]) * static_cast<double>(w[(c * 3 + a) * 2 + 1]);
    EXPECT_NEAR(y[0], first, 1e-5);
    call.op = KernelOp::ConvolutionInputGradient, call.in = {dy, w}, call.out = {dx};
    ASSERT_TRUE(run(call));
    call.op = KernelOp::ConvolutionWeightGradient, call.in = {x, dy}, call.out = {dw}, call.scalars = {1};
    ASSERT_TRUE(run(call));
    for (std::size_t i = 0; i < ws; ++i) dw[i] -= 1;  // beta = 1 kept the ones that were there
    EXPECT_NEAR(dot(dy, y, ys), dot(dx, x, xs), 1e-3);
    EXPECT_NEAR(dot(dy, y, ys), dot(dw, w, ws), 1e-3);
    EXPECT_EQ(standIn().count("convolution math 3"), 3);  // CUDNN_FMA_MATH: no TF32
}

TEST_F(KernelHostLogic, CopiesAndZerosAreTheDrivers) {
    float *x = put({1, 2, 3, 4, 5, 6}), *y = put(std::vector<float>(6, 9));
    KernelCall call;
    call.in = {x}, call.out = {y};
    call.op = KernelOp::CopyStrided, call.dims = {2, 2, 3, 2};
    ASSERT_TRUE(run(call));
    EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{1, 2, 4, 5, 9, 9}));
    call.op = KernelOp::Fill, call.dims = {5}, call.scalars = {0};
    ASSERT_TRUE(run(call));
    EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{0, 0, 0, 0, 0, 9}));
    call.op = KernelOp::Copy, call.dims = {6};
    ASSERT_TRUE(run(call));
    EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

/// Small dims that every op takes: 2 for sizes, wide strides, no padding.
KernelCall smallCall(KernelOp op, DType dtype, void* memory) {
    KernelCall call;
    call.op = op, call.dtype = dtype;
    call.in.fill(memory);
    call.out.fill(memory);
    call.scalars = {0.5, 0.5, 0.5, 0.5, 0.5};
    std::istringstream dims{std::string(signatureOf(op).dims)};
    std::string name;
    for (std::size_t i = 0; dims >> name; ++i) {
        call.dims[i] = name.back() == '?' || name == "padding" ? 0 : 2;
        if (name.find("tride") != std::string::npos && name != "stride+") call.dims[i] = 8;
        if (name == "from?") call.dims[i] = static_cast<std::int64_t>(DType::Fp32);
    }
    return call;
}

TEST_F(KernelHostLogic, EveryOpIsDoneByACallOrALaunchInEveryType) {
    void* memory = device_->allocate(4096).value();
    std::fill_n(static_cast<char*>(memory), 4096, 0);
    for (std::uint32_t op = 0; op < static_cast<std::uint32_t>(KernelOp::Count); ++op)
        for (const DType dtype : {DType::Fp32, DType::Bf16}) {
            const auto kernel = static_cast<KernelOp>(op);
            const bool convolution = kernel == KernelOp::Convolution || kernel == KernelOp::ConvolutionInputGradient || kernel == KernelOp::ConvolutionWeightGradient;
            if (convolution && dtype == DType::Bf16) continue;  // not in the stand-in
            standIn().clearLog();
            const Result<void> result = run(smallCall(kernel, dtype, memory));
            EXPECT_TRUE(result) << nameOf(kernel) << ": " << (result ? "" : result.error().toString());
            const int done = standIn().count("launch") + standIn().count("cublasLtMatmul stream") + standIn().count("cudnnConvolution") + standIn().count("cudaMem");
            EXPECT_GT(done, 0) << nameOf(kernel);
        }
}

TEST_F(KernelHostLogic, ALaunchCoversItsElementsWithBlocksOf256) {
    float* x = put(std::vector<float>(1000));
    KernelCall call;
    call.op = KernelOp::Axpy, call.in = {x}, call.out = {x}, call.dims = {1000};
    ASSERT_TRUE(run(call));
    EXPECT_EQ(standIn().count("launch 4 blocks of 256"), 1);  // 1000 / 256 = 3.9
    call.op = KernelOp::Softmax, call.dims = {10, 100};
    ASSERT_TRUE(run(call));
    EXPECT_EQ(standIn().count("launch 10 blocks of 256"), 1);  // one per row
}

TEST_F(KernelHostLogic, NothingIsLaunchedForNoElements) {
    KernelCall call;
    call.op = KernelOp::Add, call.dims = {0};
    ASSERT_TRUE(run(call));
    EXPECT_EQ(standIn().count("launch"), 0);
}

TEST_F(KernelHostLogic, AFailedLaunchNamesTheOp) {
    float* x = put({1});
    KernelCall call;
    call.op = KernelOp::Scale, call.in = {x}, call.out = {x}, call.dims = {1};
    standIn().failNext("cudaLaunchKernel", 98);
    const Result<void> result = run(call);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("scale: an error of the stand-in"));
    EXPECT_TRUE(run(call));  // and is not found again
}

TEST_F(KernelHostLogic, AttentionAsksForTheProductsOfEachGroupOfHeads) {
    // b = 2, s = 3, 4 heads share 2 key-value heads, d = 2: per sample two products for each of the two query heads of a group.
    const std::int64_t b = 2, s = 3, heads = 4, kvHeads = 2, d = 2;
    void* memory = device_->allocate(8192).value();
    std::fill_n(static_cast<char*>(memory), 8192, 0);
    KernelCall call;
    call.op = KernelOp::Attention;
    call.in = {memory, memory, memory}, call.out = {memory, memory};
    call.dims = {b, s, heads, kvHeads, d, 1, heads * d, kvHeads * d, heads * d};
    call.scalars = {0.7};
    const Result<void> result = run(call);
    ASSERT_TRUE(result) << result.error().toString();
    EXPECT_EQ(standIn().count("cublasLtMatmul stream"), b * (heads / kvHeads) * 2);
    EXPECT_EQ(standIn().count("launch 12 blocks"), b);  // heads · s rows of scores
    standIn().clearLog();
    call.op = KernelOp::AttentionGradient;
    call.in.fill(memory), call.out = {memory, memory, memory};
    call.dims[9] = heads * d, call.dims[10] = kvHeads * d;
    ASSERT_TRUE(run(call));
    EXPECT_EQ(standIn().count("cublasLtMatmul stream"), b * (heads / kvHeads) * 5);
}

struct BadCall {
    KernelOp op;
    DType dtype;
    std::vector<std::int64_t> dims;
    const char* text;
};

TEST_F(KernelHostLogic, WhatAnOpDoesNotTakeIsNamed) {
    void* memory = device_->allocate(256).value();
    const std::vector<BadCall> bad = {
        {KernelOp::Softmax, DType::Int8, {2, 2}, "softmax: takes fp32, tf32, fp16 and bf16; found int8"},
        {KernelOp::Cast, DType::Fp32, {2, static_cast<std::int64_t>(DType::Int64)}, "cast: takes fp64, fp32, tf32, fp16 and bf16; found int64"},
        {KernelOp::LayerNorm, DType::Fp32, {2, 0}, "layer norm: features is 0; expected at least 1"},
        {KernelOp::Activation, DType::Fp32, {2, 9}, "activation: kind is 9; expected 0 to 4"},
        {KernelOp::Rotary, DType::Fp32, {1, 1, 1, 3, 3, 3, 0}, "rotary: d is 3; expected an even number"},
        {KernelOp::Attention, DType::Fp32, {1, 1, 3, 2, 2, 0, 8, 8, 8}, "attention: 3 query heads cannot share 2 key-value heads evenly"},
        {KernelOp::Attention, DType::Fp32, {1, 1, 2, 2, 2, 0, 3, 8, 8}, "attention: qStride is 3; expected at least 4 (heads·d)"},
        {KernelOp::Convolution, DType::Fp32, {1, 1, 2, 2, 1, 5, 1, 1, 1}, "convolution: h is 2; expected at least 3 (the window must fit)"},
        {KernelOp::CopyStrided, DType::Fp32, {2, 4, 3, 4}, "copy strided: xStride is 3; expected at least 4 (a row)"},
        {KernelOp::Fill, DType::Fp8, {2}, "fill: is not done in fp8"},
    };
    for (const BadCall& row : bad) {
        KernelCall call;
        call.op = row.op, call.dtype = row.dtype;
        call.in.fill(memory), call.out.fill(memory), call.scalars.fill(1);
        std::copy(row.dims.begin(), row.dims.end(), call.dims.begin());
        const Result<void> result = run(call);
        ASSERT_FALSE(result) << row.text;
        EXPECT_EQ(result.error().code, ErrorCode::BadInput);
        EXPECT_EQ(result.error().toString(), row.text);
    }
    KernelCall missing;
    missing.op = KernelOp::Add, missing.dims = {4}, missing.in = {memory}, missing.out = {memory};
    const Result<void> result = run(missing);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().toString(), "add: operand b is missing");
}

}  // namespace
}  // namespace ringside
