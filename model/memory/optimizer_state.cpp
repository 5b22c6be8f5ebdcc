#include "model/memory/optimizer_state.h"

#include <algorithm>

namespace ringside {
namespace {

/// What the optimizer updates: the master copy, or the parameter itself.
Bytes updatedWidth(const Precision& precision) { return precision.masterWeights ? 4 : sizeOf(precision.parameter); }
Bytes masterBytes(const Precision& precision, std::int64_t elements) { return precision.masterWeights ? 4 * elements : 0; }

/// bitsandbytes: blocks of 256 share an fp32 scale; small tensors keep 32-bit moments.
constexpr std::int64_t kQuantisationBlock = 256;
constexpr std::int64_t kSmallest8bitTensor = 4096;

Bytes eightBitMoments(std::int64_t elements) {
    if (elements < kSmallest8bitTensor) return 8 * elements;
    const std::int64_t blocks = (elements + kQuantisationBlock - 1) / kQuantisationBlock;
    return 2 * (elements + 4 * blocks);
}

}  // namespace

Bytes flatOptimizerStateBytes(const Optimizer& optimizer, const Precision& precision, std::int64_t elements) {
    const Bytes width = updatedWidth(precision);
    Bytes state = 0;
    switch (optimizer.kind) {
        case OptimizerKind::Sgd: break;
        case OptimizerKind::Momentum:
        case OptimizerKind::Adafactor: state = width * elements; break;
        case OptimizerKind::Adam:
        case OptimizerKind::AdamW: state = 2 * width * elements; break;
        case OptimizerKind::Adam8bit: state = eightBitMoments(elements); break;
    }
    return state + masterBytes(precision, elements);
}

Bytes optimizerStateBytes(const Optimizer& optimizer, const Precision& precision, const Shape& parameter) {
    const std::int64_t elements = elementCount(parameter);
    if (optimizer.kind != OptimizerKind::Adafactor || parameter.size() < 2 || elements == 0) return flatOptimizerStateBytes(optimizer, precision, elements);
    // torch.optim.Adafactor factors over the last two dimensions: one mean per row and one per column of each matrix.
    const std::int64_t rows = parameter[parameter.size() - 2], columns = parameter.back();
    const std::int64_t matrices = elements / (rows * columns);
    return updatedWidth(precision) * matrices * (rows + columns) + masterBytes(precision, elements);
}

Bytes foreachTransientBytes(const Optimizer& optimizer, const Precision& precision, std::span<const std::int64_t> parameterElements) {
    const bool adam = optimizer.kind == OptimizerKind::Adam || optimizer.kind == OptimizerKind::AdamW;
    const bool adafactor = optimizer.kind == OptimizerKind::Adafactor;
    if (!adam && !adafactor) return 0;                                               // in place, or one kernel
    if (adam && optimizer.implementation == OptimizerImplementation::Fused) return 0;
    const Bytes width = updatedWidth(precision);
    std::int64_t sum = 0, largest = 0;
    for (const std::int64_t elements : parameterElements) {
        sum += elements;
        largest = std::max(largest, elements);
    }
    if (optimizer.implementation != OptimizerImplementation::ForLoop) return width * sum;
    return (adam ? 2 : 1) * width * largest;  // Adam's sqrt(v) is alive while its quotient is made
}

}  // namespace ringside
