// Call: a kernel call with tensors of doubles, which a device runs in its own types and the reference in fp64.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace ringside::conformance {

/// Integers and booleans are kept as doubles too. `dtype` is what the device stores; Fp32 of a Real follows the call's type.
struct Tensor {
    std::vector<double> values;
    enum class Kind { Real, AlwaysFp32, Int64, Bool, Absent } kind = Kind::Real;

    double& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
    double operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
    bool present() const { return kind != Kind::Absent; }
};

struct Call {
    KernelOp op = KernelOp::Copy;
    std::vector<Tensor> in, out;
    std::vector<std::int64_t> dims;
    std::vector<double> scalars;
    DType dtype = DType::Fp32;
};

/// Values that fp32 and bf16 both hold exactly, in [low, high], always the same for a seed.
Tensor random(std::int64_t elements, unsigned seed, double low = -1, double high = 1);
/// Whole numbers in [0, below).
Tensor randomTokens(std::int64_t elements, unsigned seed, std::int64_t below);
Tensor zeros(std::int64_t elements, Tensor::Kind kind = Tensor::Kind::Real);
/// What must not be read: NaN, or the largest whole number.
Tensor undefined(std::int64_t elements, Tensor::Kind kind = Tensor::Kind::Real);
Tensor absent();

/// Runs the call in the naive reference; its outputs are filled in.
void runReference(Call& call);

/// Runs the call on a stream of the device; its outputs are filled in.
Result<void> runOnDevice(ComputeDevice& device, StreamIndex stream, Call& call);

/// Expects that the device's outputs are the reference's: |difference| ≤ tolerance · (largest magnitude in the tensor + 1e-6).
void expectSame(ComputeDevice& device, const Call& call, double tolerance = 2e-6);

}  // namespace ringside::conformance
