// Matrix products. fp32 goes to oneDNN's sgemm, which takes any leading dimension, needs no primitive and is as fast as or faster than
// its matmul primitive, except for a few rows against a transposed matrix (a linear layer's forward pass with a small batch), which
// go there. bf16 goes to the primitive where the processor has bf16 products, else through fp32.
#include <algorithm>

#include "kernels/cpu/bf16_staging.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/openmp_threads.h"

namespace ringside::cpu {

namespace {

using dnnl::memory;

// Measured with AVX-512: 16×4096×1024 runs at 72 instead of 55 GFLOP/s, 64 rows at 113 instead of 108, 128 at the same rate.
constexpr std::int64_t kFewRows = 64;
constexpr std::int64_t kLargeMatrix = 1 << 16;

struct Shape {
    explicit Shape(const KernelCall& call)
        : batch(call.dims[0]), m(call.dims[1]), n(call.dims[2]), k(call.dims[3]), transA(call.dims[4] != 0), transB(call.dims[5] != 0) {}
    std::int64_t batch, m, n, k;
    bool transA, transB;
};

void setRows(const float* bias, float* c, std::int64_t rows, std::int64_t n) {
    for (std::int64_t r = 0; r < rows; ++r) std::copy(bias, bias + n, c + r * n);
}

void matmulFp32(KernelThread& thread, const Shape& s, float alpha, float beta, const float* a, const float* b, const float* bias, float* c) {
    const auto product = [&](std::int64_t i) {
        float* target = c + i * s.m * s.n;
        // The bias goes in first where nothing stands there yet, so that the product is the only pass that reads.
        const bool biasFirst = bias != nullptr && beta == 0.0F;
        if (biasFirst) setRows(bias, target, s.m, s.n);
        gemm(s.transA, s.transB, s.m, s.n, s.k, alpha, a + i * s.m * s.k, s.transA ? s.m : s.k, b + i * s.k * s.n, s.transB ? s.k : s.n, biasFirst ? 1.0F : beta, target, s.n);
        if (bias != nullptr && !biasFirst)
            for (std::int64_t r = 0; r < s.m; ++r) thread.loops.add(target + r * s.n, bias, target + r * s.n, s.n);
    };
    if (s.batch < thread.team.threads()) {
        for (std::int64_t i = 0; i < s.batch; ++i) product(i);
        return;
    }
    const OneOpenMpThread one(thread.team.threads());
    thread.team.parallelFor(s.batch, 1, [&](const TeamShare& share) {
        for (std::int64_t i = share.begin; i < share.end; ++i) product(i);
    });
}

OneDnnPlan makePlan(const OneDnn& oneDnn, const Shape& s, memory::data_type type, bool withBias, bool accumulate) {
    OneDnnPlan plan;
    const memory::desc a({s.batch, s.m, s.k}, type, s.transA ? memory::dims{s.m * s.k, 1, s.m} : memory::dims{s.m * s.k, s.k, 1});
    const memory::desc b({s.batch, s.k, s.n}, type, s.transB ? memory::dims{s.k * s.n, 1, s.k} : memory::dims{s.k * s.n, s.n, 1});
    const memory::desc c({s.batch, s.m, s.n}, type, memory::dims{s.m * s.n, s.n, 1});
    if (withBias) plan.bias = memory::desc({1, 1, s.n}, type, memory::dims{s.n, s.n, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (accumulate) {
        dnnl::post_ops postOps;
        postOps.append_sum(1.0F);
        attributes.set_post_ops(postOps);
    }
    const dnnl::matmul::desc description = withBias ? dnnl::matmul::desc(a, b, *plan.bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc primitive(description, attributes, oneDnn.engine());
    plan.primitive = dnnl::matmul(primitive);
    plan.scratchpad = primitive.scratchpad_desc();
    plan.operands = {OneDnnOperand{DNNL_ARG_SRC, a, a, {}, {}}, OneDnnOperand{DNNL_ARG_WEIGHTS, b, b, {}, {}}, OneDnnOperand{DNNL_ARG_DST, c, c, {}, {}}};
    return plan;
}

}  // namespace

void gemm(bool transA, bool transB, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc) {
    if (m == 0 || n == 0) return;
    if (k == 0) {
        for (std::int64_t r = 0; r < m; ++r)
            for (std::int64_t j = 0; j < n; ++j) c[r * ldc + j] = beta == 0.0F ? 0.0F : beta * c[r * ldc + j];
        return;
    }
    const dnnl_status_t status = dnnl_sgemm(transA ? 'T' : 'N', transB ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (status != dnnl_success) throw dnnl::error(status, "sgemm");
}

Result<void> matmul(KernelThread& thread, const KernelCall& call) {
    const Shape s(call);
    const float alpha = scalar(call, 0), beta = scalar(call, 1);
    if (s.batch == 0 || s.m == 0 || s.n == 0) return {};
    const bool bf16 = call.dtype == DType::Bf16, withBias = call.in[2] != nullptr;
    OneDnn& oneDnn = thread.shared.oneDnn;
    // What the primitive can do in one pass, and where it is the faster one.
    const bool onePass = alpha == 1.0F && (beta == 0.0F || (beta == 1.0F && !withBias)) && s.k > 0;
    const bool fewRows = s.m <= kFewRows && s.transB && s.n * s.k >= kLargeMatrix;
    if (onePass && (bf16 ? oneDnn.hasNativeBf16() : fewRows)) {
        const OneDnn::Key key = {0, s.batch, s.m, s.n, s.k, s.transA, s.transB, withBias, beta != 0.0F, bf16, thread.team.threads()};
        const auto type = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
        const OneDnnPlan& plan = oneDnn.plan(key, [&] { return makePlan(oneDnn, s, type, withBias, beta != 0.0F); });
        oneDnn.run(plan, call.in[0], call.in[1], call.in[2], call.out[0], thread.oneDnnStream, thread.scratch());
        return {};
    }
    if (!bf16) {
        matmulFp32(thread, s, alpha, beta, input<float>(call, 0), input<float>(call, 1), input<float>(call, 2), output<float>(call, 0));
        return {};
    }
    const std::int64_t elements = s.batch * s.m * s.n;
    const float* a = stagedInput(thread, 0, call.in[0], s.batch * s.m * s.k);
    const float* b = stagedInput(thread, 1, call.in[1], s.batch * s.k * s.n);
    const float* bias = withBias ? stagedInput(thread, 2, call.in[2], s.n) : nullptr;
    float* c = thread.scratch().get<float>(3, elements);
    if (beta != 0.0F) stagedInput(thread, 3, call.out[0], elements);
    matmulFp32(thread, s, alpha, beta, a, b, bias, c);
    storeStaged(thread, c, call.out[0], elements);
    return {};
}

}  // namespace ringside::cpu
