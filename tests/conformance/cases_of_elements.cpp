// Cases of ops over elements and rows: activations, sums, copies, losses, optimizers.
#include "tests/conformance/cases.h"

namespace ringside::conformance {

namespace {

using i64 = std::int64_t;
using Kind = Tensor::Kind;

// Below, at and above the width of a vector, and enough for several threads.
constexpr i64 kCounts[] = {0, 1, 15, 16, 17, 1000, 40000};

std::vector<Case> activations(KernelOp op) {
    std::vector<Case> cases;
    for (i64 kind = 0; kind <= static_cast<i64>(ActivationKind::Tanh); ++kind)
        for (const i64 n : kCounts) {
            const Tensor x = random(n, 3, -9, 9);
            if (op == KernelOp::Activation) {
                cases.push_back({{op, {x}, {undefined(n)}, {n, kind}, {}}, 1e-6});
                continue;
            }
            // ReLU and tanh keep their result, which is at most 1 for tanh.
            const Tensor saved = kind == static_cast<i64>(ActivationKind::Tanh) ? random(n, 3) : x;
            cases.push_back({{op, {random(n, 4), saved}, {undefined(n)}, {n, kind}, {}}, 1e-6});
        }
    return cases;
}

/// Operands a and b of n elements each, y as it is or undefined.
std::vector<Case> elementwise(KernelOp op, int inputs, bool readsY, std::vector<double> scalars, bool alsoBf16) {
    std::vector<Case> cases;
    for (const i64 n : kCounts)
        for (const DType type : {DType::Fp32, DType::Bf16}) {
            if (type == DType::Bf16 && !alsoBf16) continue;
            Call call{op, {}, {readsY ? random(n, 9) : undefined(n)}, {n}, scalars, type};
            for (int i = 0; i < inputs; ++i) call.in.push_back(random(n, static_cast<unsigned>(i + 1), 0.5, 2));
            cases.push_back({call, type == DType::Bf16 ? 8e-3 : 2e-6});
        }
    return cases;
}

std::vector<Case> casts() {
    std::vector<Case> cases;
    for (const i64 n : kCounts) {
        // The source's type is the call's in the harness, so casts here keep theirs; rounding has a test of its own.
        cases.push_back({{KernelOp::Cast, {random(n, 1)}, {undefined(n)}, {n, static_cast<i64>(DType::Fp32)}, {}}, 0});
        cases.push_back({{KernelOp::Cast, {random(n, 1)}, {undefined(n)}, {n, static_cast<i64>(DType::Bf16)}, {}, DType::Bf16}, 0});
    }
    return cases;
}

std::vector<Case> columnSums(KernelOp op) {
    std::vector<Case> cases;
    for (const double beta : {0.0, 1.0, 0.5})
        for (const auto& [rows, n, inner] : {std::tuple<i64, i64, i64>{1, 1, 1}, {70, 33, 1}, {5, 600, 1}, {1000, 40, 1}, {0, 5, 1}, {3, 7, 30}}) {
            const bool channels = op == KernelOp::ChannelSum;
            if (!channels && inner != 1) continue;
            Call call{op, {random(rows * n * inner, 1)}, {beta == 0 ? undefined(n) : random(n, 2)}, {rows, n}, {beta}};
            if (channels) call.dims.push_back(inner);
            cases.push_back({call, 4e-6});
            call.dtype = DType::Bf16;
            if (!channels) cases.push_back({call, 8e-3});
        }
    return cases;
}

std::vector<Case> rows(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& [count, n] : {std::pair<i64, i64>{1, 1}, {3, 17}, {50, 100}, {2, 5000}, {0, 4}}) {
        const i64 size = count * n;
        const Tensor x = random(size, 1, -6, 6);
        Call forward{op == KernelOp::SoftmaxGradient || op == KernelOp::Softmax ? KernelOp::Softmax : KernelOp::LogSoftmax, {x}, {undefined(size)}, {count, n}, {}};
        if (forward.op != op) {
            runReference(forward);
            forward = {op, {random(size, 2), forward.out[0]}, {undefined(size)}, {count, n}, {}};
        }
        cases.push_back({forward, 4e-6});
    }
    if (op == KernelOp::Softmax) {
        Tensor masked = random(3 * 20, 1, -80, 80);
        for (i64 i = 5; i < 20; ++i) masked[i] = -1.0 / 0.0;
        cases.push_back({{op, {masked}, {undefined(60)}, {3, 20}, {}}});
    }
    return cases;
}

std::vector<Case> losses(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& [count, n] : {std::pair<i64, i64>{1, 1}, {9, 10}, {33, 1000}}) {
        const Tensor labels = randomTokens(count, 2, n);
        if (op == KernelOp::NllLoss) cases.push_back({{op, {random(count * n, 1, -9, 0), labels}, {undefined(1, Kind::AlwaysFp32)}, {count, n}, {}}});
        else cases.push_back({{op, {labels}, {undefined(count * n)}, {count, n}, {1.5}}});
    }
    return cases;
}

std::vector<Case> sums(KernelOp op) {
    std::vector<Case> cases;
    for (const i64 n : kCounts) {
        if (op == KernelOp::SquaredError) cases.push_back({{op, {random(n, 1), random(n, 2)}, {undefined(1, Kind::AlwaysFp32)}, {n}, {}}});
        else cases.push_back({{op, {random(n, 1)}, {random(1, 2)}, {n}, {}}});
    }
    return cases;
}

std::vector<Case> moves(KernelOp op) {
    std::vector<Case> cases;
    for (const DType type : {DType::Fp32, DType::Bf16}) {
        if (op == KernelOp::CopyStrided) {
            for (const auto& dims : {std::vector<i64>{5, 7, 9, 8}, {1, 100, 100, 100}, {40, 33, 33, 33}, {3, 1, 1, 5}})
                cases.push_back({{op, {random(dims[0] * dims[2], 1)}, {undefined(dims[0] * dims[3])}, dims, {}, type}, 0});
        } else {
            for (const auto& dims : {std::vector<i64>{1, 5, 7, 1}, {3, 33, 70, 1}, {2, 4, 6, 5}, {2, 9, 3, 2}, {1, 1, 1, 16}})
                cases.push_back({{op, {random(dims[0] * dims[1] * dims[2] * dims[3], 1)}, {undefined(dims[0] * dims[1] * dims[2] * dims[3])}, dims, {}, type}, 0});
        }
    }
    return cases;
}

std::vector<Case> shaped(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& dims : {std::vector<i64>{1, 1, 1}, {4, 9, 1}, {3, 5, 30}, {2, 70, 70}}) {
        const i64 size = dims[0] * dims[1] * dims[2], table = dims[1] * dims[2];
        if (op == KernelOp::AddBias) cases.push_back({{op, {random(size, 1), random(dims[1], 2)}, {undefined(size)}, dims, {}}});
        else if (op == KernelOp::AddRows) cases.push_back({{op, {random(size, 1), random(table, 2)}, {undefined(size)}, dims, {}}});
        else if (op == KernelOp::SumOverSamples) cases.push_back({{op, {random(size, 1)}, {undefined(table)}, dims, {}}});
        else cases.push_back({{op, {random(size, 1)}, {undefined(size)}, dims, {}}, 0});
    }
    return cases;
}

std::vector<Case> optimizers(KernelOp op) {
    std::vector<Case> cases;
    for (const i64 n : kCounts)
        for (const i64 step : {1, 7}) {
            if (op == KernelOp::AdamFused) {
                cases.push_back({{op, {random(n, 1)}, {random(n, 2), random(n, 3, -0.1, 0.1), random(n, 4, 0, 0.1)}, {n, step}, {1e-3, 0.9, 0.999, 1e-8, 0.01}}});
                continue;
            }
            cases.push_back({{op, {random(n, 1)}, {random(n, 2), step == 1 ? undefined(n) : random(n, 3)}, {n, step}, {0.1, 0.9}}});
            cases.push_back({{op, {random(n, 1)}, {random(n, 2), absent()}, {n, step}, {0.1, 0}}});
        }
    return cases;
}

std::vector<Case> dropoutGradients() {
    std::vector<Case> cases;
    for (const i64 n : kCounts) {
        Tensor mask = randomTokens(n, 2, 2);
        mask.kind = Kind::Bool;
        cases.push_back({{KernelOp::DropoutGradient, {random(n, 1), mask}, {undefined(n)}, {n}, {0.25}}});
    }
    return cases;
}

}  // namespace

std::vector<Case> elementCases(KernelOp op) {
    switch (op) {
        case KernelOp::Activation: case KernelOp::ActivationGradient: return activations(op);
        case KernelOp::Add: return elementwise(op, 2, false, {}, true);
        case KernelOp::Multiply: return elementwise(op, 2, false, {}, false);
        case KernelOp::Axpy: return elementwise(op, 1, true, {-0.75}, true);
        case KernelOp::Scale: return elementwise(op, 1, false, {2.5}, true);
        case KernelOp::Fill: return elementwise(op, 0, false, {-3}, true);
        case KernelOp::Copy: return elementwise(op, 1, false, {}, true);
        case KernelOp::Cast: return casts();
        case KernelOp::Lerp: return elementwise(op, 1, true, {0.1}, false);
        case KernelOp::MultiplyAccumulate: return elementwise(op, 2, true, {0.3}, false);
        case KernelOp::SquareRoot: return elementwise(op, 1, false, {}, false);
        case KernelOp::AddScalar: return elementwise(op, 1, false, {0.7}, false);
        case KernelOp::DivideAccumulate: return elementwise(op, 2, true, {-0.4}, false);
        case KernelOp::ColumnSum: case KernelOp::ChannelSum: return columnSums(op);
        case KernelOp::Softmax: case KernelOp::SoftmaxGradient: case KernelOp::LogSoftmax: case KernelOp::LogSoftmaxGradient: return rows(op);
        case KernelOp::NllLoss: case KernelOp::NllLossGradient: return losses(op);
        case KernelOp::SquaredError: case KernelOp::SumOfSquares: return sums(op);
        case KernelOp::CopyStrided: case KernelOp::Transpose: return moves(op);
        case KernelOp::AddBias: case KernelOp::AddRows: case KernelOp::SumOverSamples: case KernelOp::Mask: return shaped(op);
        case KernelOp::AdamFused: case KernelOp::SgdFused: return optimizers(op);
        case KernelOp::DropoutGradient: return dropoutGradients();
        default: return {};
    }
}

std::vector<Case> casesOf(KernelOp op) {
    std::vector<Case> cases = layerCases(op);
    return cases.empty() ? elementCases(op) : cases;
}

}  // namespace ringside::conformance
