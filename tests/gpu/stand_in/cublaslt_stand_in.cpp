// Stand-in for libcublasLt (no GPU): column-major products as plain loops over host memory, in fp32 and bf16.
#include <bit>
#include <cstring>
#include <string>

#include <cublasLt.h>

#include "tests/gpu/stand_in/stand_in.h"

namespace {

struct Desc {
    cublasComputeType_t compute;
    cublasOperation_t opA = CUBLAS_OP_N, opB = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
};
struct Layout {
    cudaDataType_t type;
    std::uint64_t rows, columns;
    std::int64_t ld;
    std::int32_t batch = 1;
    std::int64_t stride = 0;
};

Desc* of(cublasLtMatmulDesc_t desc) { return reinterpret_cast<Desc*>(desc); }
const Layout* of(cublasLtMatrixLayout_t layout) { return reinterpret_cast<const Layout*>(layout); }

float load(const void* memory, std::int64_t at, cudaDataType_t type) {
    if (type == CUDA_R_32F) return static_cast<const float*>(memory)[at];
    return std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(memory)[at]) << 16);
}
void store(void* memory, std::int64_t at, cudaDataType_t type, float value) {
    if (type == CUDA_R_32F) static_cast<float*>(memory)[at] = value;
    else static_cast<std::uint16_t*>(memory)[at] = static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000U) >> 16);
}
bool known(cudaDataType_t type) { return type == CUDA_R_32F || type == CUDA_R_16BF; }

template <class T>
cublasStatus_t take(T& field, const void* value, std::size_t bytes) {
    if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    int code = 0;
    if (standInFails("cublasLtCreate", &code)) return static_cast<cublasStatus_t>(code);
    *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete reinterpret_cast<int*>(handle);
    return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS_OF_THE_STAND_IN"; }
std::size_t cublasLtGetVersion() { return 130002; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t) {
    *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc{compute});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    delete of(desc);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void* value, std::size_t bytes) {
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_TRANSA: return take(of(desc)->opA, value, bytes);
        case CUBLASLT_MATMUL_DESC_TRANSB: return take(of(desc)->opB, value, bytes);
        case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(of(desc)->epilogue, value, bytes);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(of(desc)->bias, value, bytes);
        default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
    if (ld < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, ld});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete of(layout);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value, std::size_t bytes) {
    auto* l = reinterpret_cast<Layout*>(layout);
    switch (attribute) {
        case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return take(l->batch, value, bytes);
        case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return take(l->stride, value, bytes);
        default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new int(0));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete reinterpret_cast<int*>(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t attribute, const void* value, std::size_t) {
    if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES && attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) {
        std::uint32_t alignment = 0;
        std::memcpy(&alignment, value, sizeof alignment);
        standInNote(("alignment " + std::to_string(alignment)).c_str());
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results, int* count) {
    standInNote(("cublasLtMatmulAlgoGetHeuristic compute " + std::to_string(static_cast<int>(of(desc)->compute))).c_str());
    *results = {};
    *count = known(of(a)->type) ? 1 : 0;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a, cublasLtMatrixLayout_t aLayout, const void* b,
                              cublasLtMatrixLayout_t bLayout, const void* beta, const void* c, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t dLayout,
                              const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t stream) {
    standInNote(("cublasLtMatmul stream " + std::to_string(standInStreamNumber(stream))).c_str());
    int code = 0;
    if (standInFails("cublasLtMatmul", &code)) return static_cast<cublasStatus_t>(code);
    const Layout &la = *of(aLayout), &lb = *of(bLayout), &ld = *of(dLayout);
    const bool ta = of(desc)->opA == CUBLAS_OP_T, tb = of(desc)->opB == CUBLAS_OP_T;
    const auto m = static_cast<std::int64_t>(ta ? la.columns : la.rows), k = static_cast<std::int64_t>(ta ? la.rows : la.columns);
    const auto n = static_cast<std::int64_t>(tb ? lb.rows : lb.columns);
    const auto kb = static_cast<std::int64_t>(tb ? lb.columns : lb.rows);
    if (k != kb || m != static_cast<std::int64_t>(ld.rows) || n != static_cast<std::int64_t>(ld.columns) || la.batch != ld.batch || lb.batch != ld.batch) return CUBLAS_STATUS_INVALID_VALUE;
    const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
    for (std::int64_t batch = 0; batch < ld.batch; ++batch)
        for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t i = 0; i < m; ++i) {
                float sum = 0;
                for (std::int64_t p = 0; p < k; ++p)
                    sum += load(a, batch * la.stride + (ta ? i * la.ld + p : p * la.ld + i), la.type) * load(b, batch * lb.stride + (tb ? p * lb.ld + j : j * lb.ld + p), lb.type);
                const std::int64_t at = batch * ld.stride + j * ld.ld + i;
                float value = scale * sum + (keep != 0 ? keep * load(c, at, ld.type) : 0.0F);
                if (of(desc)->epilogue == CUBLASLT_EPILOGUE_BIAS) value += load(of(desc)->bias, i, ld.type);
                store(d, at, ld.type, value);
            }
    return CUBLAS_STATUS_SUCCESS;
}
}
