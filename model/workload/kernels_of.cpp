#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

double flopsOf(const GemmShape& shape) {
    return 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

}  // namespace

KernelWork gemmWork(std::string_view name, const GemmShape& shape, DType math, DType element) {
    const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
    KernelWork work;
    work.cls = KernelClass::Gemm;
    work.math = math;
    work.flops = flopsOf(shape);
    work.bytes = static_cast<double>(shape.batch) * (m * k + k * n + m * n) * static_cast<double>(sizeOf(element));
    work.shape = shape;
    work.name = name;
    return work;
}

KernelWork convolutionWork(std::string_view name, const GemmShape& shape, DType math, double bytes) {
    KernelWork work;
    work.cls = KernelClass::Convolution;
    work.math = math;
    work.flops = flopsOf(shape);
    work.bytes = bytes;
    work.shape = shape;
    work.name = name;
    return work;
}

KernelWork memoryWork(std::string_view name, double bytes) {
    KernelWork work;
    work.bytes = bytes;
    work.name = name;
    return work;
}

}  // namespace ringside
