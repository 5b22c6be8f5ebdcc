#include "kernels/cuda/matmul.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

namespace ringside::cuda {

namespace {

struct DescDeleter {
    void operator()(cublasLtMatmulDesc_t desc) const { cublasLtMatmulDescDestroy(desc); }
    void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
    void operator()(cublasLtMatmulPreference_t preference) const { cublasLtMatmulPreferenceDestroy(preference); }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, DescDeleter>;

struct Plan {
    Owned<cublasLtMatmulDesc_t> desc;
    Owned<cublasLtMatrixLayout_t> first, second, result;
    cublasLtMatmulAlgo_t algo{};
};

Result<cudaDataType_t> elementType(DType type) {
    switch (type) {
        case DType::Fp32: case DType::Tf32: return CUDA_R_32F;
        case DType::Fp16: return CUDA_R_16F;
        case DType::Bf16: return CUDA_R_16BF;
        default: return badInput("matmul", fmt::format("takes fp32, tf32, fp16 and bf16; found {}", nameOf(type)));
    }
}

Result<Owned<cublasLtMatrixLayout_t>> layoutOf(DType type, std::int64_t rows, std::int64_t columns, std::int64_t ld, std::int64_t batch, std::int64_t stride) {
    TRY(const cudaDataType_t element, elementType(type));
    cublasLtMatrixLayout_t layout = nullptr;
    RINGSIDE_CALL(cublasLtMatrixLayoutCreate, &layout, element, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), ld);
    Owned<cublasLtMatrixLayout_t> owned(layout);
    const auto count = static_cast<std::int32_t>(batch);
    RINGSIDE_CALL(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    RINGSIDE_CALL(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
    return owned;
}

/// The largest power of two up to 256 that divides the address. cuBLASLt takes 256 for granted unless it is told.
std::uint32_t alignmentOf(const void* address) {
    const auto bits = reinterpret_cast<std::uintptr_t>(address);
    return bits == 0 ? 256U : std::min(256U, 1U << std::min(8, std::countr_zero(bits)));
}

using Alignments = std::array<std::uint32_t, 3>;  // of a, b, c

/// Row-major products are column-major ones of the transposes: Cᵀ = op(B)ᵀ·op(A)ᵀ. So B comes first, rows and columns change
/// places, and a bias per column of C is the bias per row that cuBLASLt's epilogue adds.
Result<Plan> makePlan(RingsideCudaDevice& device, const GemmShape& s, const Alignments& alignments) {
    Plan plan;
    cublasLtMatmulDesc_t desc = nullptr;
    RINGSIDE_CALL(cublasLtMatmulDescCreate, &desc, s.input == DType::Tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    plan.desc.reset(desc);
    const cublasOperation_t opFirst = s.transB ? CUBLAS_OP_T : CUBLAS_OP_N, opSecond = s.transA ? CUBLAS_OP_T : CUBLAS_OP_N;
    RINGSIDE_CALL(cublasLtMatmulDescSetAttribute, desc, CUBLASLT_MATMUL_DESC_TRANSA, &opFirst, sizeof opFirst);
    RINGSIDE_CALL(cublasLtMatmulDescSetAttribute, desc, CUBLASLT_MATMUL_DESC_TRANSB, &opSecond, sizeof opSecond);
    if (s.bias) {
        const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        RINGSIDE_CALL(cublasLtMatmulDescSetAttribute, desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    }
    TRY(plan.first, layoutOf(s.input, s.transB ? s.k : s.n, s.transB ? s.n : s.k, s.ldb, s.batch, s.strideB));
    TRY(plan.second, layoutOf(s.input, s.transA ? s.m : s.k, s.transA ? s.k : s.m, s.lda, s.batch, s.strideA));
    TRY(plan.result, layoutOf(s.output, s.n, s.m, s.ldc, s.batch, s.strideC));

    cublasLtMatmulPreference_t preference = nullptr;
    RINGSIDE_CALL(cublasLtMatmulPreferenceCreate, &preference);
    const Owned<cublasLtMatmulPreference_t> owned(preference);
    const std::size_t workspace = kGemmWorkspace;
    RINGSIDE_CALL(cublasLtMatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    const auto [a, b, c] = alignments;
    RINGSIDE_CALL(cublasLtMatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &b, sizeof b);
    RINGSIDE_CALL(cublasLtMatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &a, sizeof a);
    RINGSIDE_CALL(cublasLtMatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof c);
    RINGSIDE_CALL(cublasLtMatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, sizeof c);

    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    RINGSIDE_CALL(cublasLtMatmulAlgoGetHeuristic, device.blas, desc, plan.first.get(), plan.second.get(), plan.result.get(), plan.result.get(),
                  preference, 1, &found, &count);
    if (count == 0)
        return failure(ErrorCode::RuntimeFailure, "matmul",
                       fmt::format("cuBLASLt has no algorithm for {}×{}×{} in {}", s.m, s.n, s.k, nameOf(s.input)));
    plan.algo = found.algo;
    return plan;
}

}  // namespace

class MatmulPlans {
public:
    std::map<std::pair<GemmShape, Alignments>, Plan> plans;
};

Result<void> gemm(RingsideCudaDevice& device, cudaStream_t stream, const GemmShape& shape, const GemmOperands& operands, void* workspace) {
    if (shape.m == 0 || shape.n == 0 || shape.batch == 0) return {};
    if (!device.matmulPlans) device.matmulPlans = std::make_shared<MatmulPlans>();
    const auto key = std::pair(shape, Alignments{alignmentOf(operands.a), alignmentOf(operands.b), alignmentOf(operands.c)});
    auto found = device.matmulPlans->plans.find(key);
    if (found == device.matmulPlans->plans.end()) {
        TRY(Plan plan, makePlan(device, shape, key.second));
        found = device.matmulPlans->plans.emplace(key, std::move(plan)).first;
    }
    const Plan& plan = found->second;
    if (shape.bias)
        RINGSIDE_CALL(cublasLtMatmulDescSetAttribute, plan.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands.bias, sizeof operands.bias);
    RINGSIDE_CALL(cublasLtMatmul, device.blas, plan.desc.get(), &operands.alpha, operands.b, plan.first.get(), operands.a, plan.second.get(),
                  &operands.beta, operands.c, plan.result.get(), operands.c, plan.result.get(), &plan.algo, workspace, kGemmWorkspace, stream);
    return {};
}

Result<void> runMatmul(RingsideCudaDevice& device, cudaStream_t stream, const RingsideKernel& kernel) {
    const auto& d = kernel.dims;
    GemmShape shape;
    shape.input = shape.output = typeOf(kernel);
    shape.batch = d[0], shape.m = d[1], shape.n = d[2], shape.k = d[3];
    shape.transA = d[4] != 0, shape.transB = d[5] != 0, shape.bias = kernel.in[2] != nullptr;
    shape.lda = shape.transA ? shape.m : shape.k;
    shape.ldb = shape.transB ? shape.k : shape.n;
    shape.ldc = shape.n;
    shape.strideA = shape.m * shape.k, shape.strideB = shape.k * shape.n, shape.strideC = shape.m * shape.n;
    TRY(void* workspace, scratchFor(device, stream, kGemmWorkspace));
    return gemm(device, stream, shape,
                {kernel.in[0], kernel.in[1], kernel.in[2], kernel.out[0], static_cast<float>(kernel.scalars[0]), static_cast<float>(kernel.scalars[1])},
                workspace);
}

}  // namespace ringside::cuda
