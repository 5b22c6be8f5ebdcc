// Cases of matrix products, convolutions, norms, attention, pooling, embeddings.
#include <cmath>

#include "tests/conformance/cases.h"

namespace ringside::conformance {

namespace {

using i64 = std::int64_t;
using Kind = Tensor::Kind;

std::vector<Case> matmuls() {
    std::vector<Case> cases;
    unsigned seed = 1;
    const auto add = [&](i64 batch, i64 m, i64 n, i64 k, bool transA, bool transB, bool bias, double alpha, double beta, DType type) {
        Call call{KernelOp::Matmul, {random(batch * m * k, seed), random(batch * k * n, seed + 1), bias ? random(n, seed + 2) : absent()},
                  {beta == 0 ? undefined(batch * m * n) : random(batch * m * n, seed + 3)}, {batch, m, n, k, transA, transB}, {alpha, beta}, type};
        cases.push_back({call, type == DType::Bf16 ? 8e-3 : 4e-6});
        seed += 4;
    };
    for (const bool transA : {false, true})
        for (const bool transB : {false, true})
            for (const bool bias : {false, true}) add(1, 17, 33, 29, transA, transB, bias, 1, 0, DType::Fp32);
    add(1, 1, 1, 1, false, false, true, 1, 0, DType::Fp32);
    add(3, 5, 7, 130, false, true, true, 1, 0, DType::Fp32);
    add(2, 64, 48, 96, true, false, false, 0.5, 1, DType::Fp32);
    add(1, 40, 20, 10, false, false, true, 2, 1, DType::Fp32);
    add(1, 300, 1, 70, false, true, false, 1, 0.25, DType::Fp32);
    add(1, 9, 300, 256, false, true, true, 1, 0, DType::Fp32);
    add(2, 3, 300, 256, true, true, false, 1, 1, DType::Fp32);
    add(1, 6, 5, 0, false, false, true, 1, 1, DType::Fp32);
    for (const bool trans : {false, true}) add(2, 33, 18, 40, trans, !trans, trans, 1, 0, DType::Bf16);
    add(1, 16, 16, 32, false, false, false, 1, 1, DType::Bf16);
    add(1, 16, 16, 32, false, true, true, 0.5, 1, DType::Bf16);
    return cases;
}

struct ConvolutionShape {
    i64 n, ci, h, w, co, kh, kw, stride, padding;
    i64 out(i64 size, i64 kernel) const { return (size + 2 * padding - kernel) / stride + 1; }
};

std::vector<Case> convolutions(KernelOp op) {
    std::vector<Case> cases;
    const auto add = [&](const ConvolutionShape& s, double beta, DType type) {
        const i64 x = s.n * s.ci * s.h * s.w, w = s.co * s.ci * s.kh * s.kw, y = s.n * s.co * s.out(s.h, s.kh) * s.out(s.w, s.kw);
        Call call{op, {}, {}, {s.n, s.ci, s.h, s.w, s.co, s.kh, s.kw, s.stride, s.padding}, {beta}, type};
        if (op == KernelOp::Convolution) call.in = {random(x, 1), random(w, 2)}, call.out = {undefined(y)};
        else if (op == KernelOp::ConvolutionInputGradient) call.in = {random(y, 1), random(w, 2)}, call.out = {undefined(x)};
        else call.in = {random(x, 1), random(y, 2)}, call.out = {beta == 0 ? undefined(w) : random(w, 3)};
        cases.push_back({call, type == DType::Bf16 ? 8e-3 : 4e-6});
    };
    for (const DType type : {DType::Fp32, DType::Bf16}) {
        add({2, 3, 9, 11, 5, 3, 3, 1, 1}, 0, type);
        add({1, 16, 8, 8, 32, 1, 1, 1, 0}, 0, type);
        if (op == KernelOp::ConvolutionWeightGradient) add({2, 4, 7, 7, 6, 3, 3, 2, 1}, 1, type);
    }
    add({2, 3, 23, 23, 16, 7, 7, 2, 3}, 0, DType::Fp32);
    add({1, 16, 9, 9, 16, 3, 3, 2, 1}, 0, DType::Fp32);
    add({1, 1, 1, 1, 1, 1, 1, 1, 0}, 0, DType::Fp32);
    add({1, 8, 10, 7, 8, 1, 1, 2, 0}, 0, DType::Fp32);
    return cases;
}

/// Statistics as the reference's forward pass makes them.
Tensor statisticsOf(KernelOp forward, const Tensor& x, std::vector<i64> dims) {
    const bool batch = forward == KernelOp::BatchNorm;
    const i64 features = dims[1], groups = batch ? dims[1] : dims[0];
    Tensor ones = zeros(features);
    for (double& value : ones.values) value = 1;
    Call call{forward, {x, ones, zeros(features)}, {zeros(static_cast<i64>(x.values.size())), zeros(2 * groups, Kind::AlwaysFp32), absent(), absent()}, std::move(dims), {1e-5, 0.1}};
    runReference(call);
    for (double& value : call.out[1].values) value = static_cast<double>(static_cast<float>(value));
    if (forward == KernelOp::RmsNorm) call.out[1].values.resize(static_cast<std::size_t>(groups));
    return call.out[1];
}

std::vector<Case> norms(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& [rows, n] : {std::pair<i64, i64>{1, 1}, {3, 5}, {7, 64}, {70, 33}, {2, 1000}, {33, 300}}) {
        const i64 size = rows * n;
        const Tensor x = random(size, 5, -3, 5), dy = random(size, 6), weight = random(n, 7), bias = random(n, 8);
        const bool rms = op == KernelOp::RmsNorm || op == KernelOp::RmsNormInputGradient || op == KernelOp::RmsNormWeightGradient;
        const Tensor statistics = statisticsOf(rms ? KernelOp::RmsNorm : KernelOp::LayerNorm, x, {rows, n});
        const double tolerance = n == 1 ? 1e-3 : 1e-5;  // one feature: the variance is 0, and 1/√ε magnifies rounding
        switch (op) {
            case KernelOp::LayerNorm:
                cases.push_back({{op, {x, weight, bias}, {undefined(size), undefined(2 * rows, Kind::AlwaysFp32)}, {rows, n}, {1e-5}}, tolerance});
                cases.push_back({{op, {x, weight, absent()}, {undefined(size), undefined(2 * rows, Kind::AlwaysFp32)}, {rows, n}, {1e-5}}, tolerance});
                break;
            case KernelOp::RmsNorm: cases.push_back({{op, {x, weight}, {undefined(size), undefined(rows, Kind::AlwaysFp32)}, {rows, n}, {1e-5}}, tolerance}); break;
            case KernelOp::LayerNormInputGradient:
            case KernelOp::RmsNormInputGradient: cases.push_back({{op, {dy, x, weight, statistics}, {undefined(size)}, {rows, n}, {}}, n == 1 ? 1e-1 : 1e-5}); break;
            default:
                for (const double beta : {0.0, 1.0}) {
                    const auto out = [&](unsigned seed) { return beta == 0 ? undefined(n) : random(n, seed); };
                    Call call{op, {dy, x, statistics}, {out(9)}, {rows, n}, {beta}};
                    if (!rms) call.out.push_back(out(10));
                    cases.push_back({call, tolerance});
                    if (!rms) call.out[1] = absent(), cases.push_back({call, tolerance});
                }
        }
    }
    return cases;
}

std::vector<Case> batchNorms(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& [n, c, inner] : {std::tuple<i64, i64, i64>{2, 3, 35}, {4, 17, 1}, {1, 2, 100}, {3, 64, 49}, {8, 1, 9}}) {
        const i64 size = n * c * inner;
        const Tensor x = random(size, 5, -2, 3), weight = random(c, 7), bias = random(c, 8);
        if (op == KernelOp::BatchNorm) {
            Call call{op, {x, weight, bias}, {undefined(size), undefined(2 * c, Kind::AlwaysFp32), random(c, 9), random(c, 10)}, {n, c, inner}, {1e-5, 0.1}};
            cases.push_back({call, 1e-5});
            call.out[2] = call.out[3] = absent();
            cases.push_back({call, 1e-5});
        } else {
            cases.push_back({{op, {random(size, 6), x, weight, statisticsOf(KernelOp::BatchNorm, x, {n, c, inner})}, {undefined(size), undefined(c), undefined(c)}, {n, c, inner}, {}}, 1e-5});
        }
    }
    return cases;
}

struct AttentionShape {
    i64 b, s, heads, kvHeads, d, causal, gap;  ///< gap: elements between the tokens of every tensor
};

std::vector<Case> attentions(KernelOp op) {
    std::vector<Case> cases;
    for (const AttentionShape& s : {AttentionShape{1, 1, 1, 1, 1, 0, 0}, {2, 5, 2, 2, 8, 0, 0}, {2, 67, 2, 1, 16, 1, 5}, {1, 130, 4, 2, 33, 1, 0}, {1, 64, 2, 2, 64, 0, 3}, {1, 200, 1, 1, 20, 0, 0}}) {
        const i64 q = s.heads * s.d + s.gap, kv = s.kvHeads * s.d + s.gap, tokens = s.b * s.s;
        const std::vector<Tensor> operands = {random(tokens * q, 1, -2, 2), random(tokens * kv, 2, -2, 2), random(tokens * kv, 3)};
        Call forward{KernelOp::Attention, operands, {undefined(tokens * q), undefined(s.b * s.heads * s.s, Kind::AlwaysFp32)}, {s.b, s.s, s.heads, s.kvHeads, s.d, s.causal, q, kv, q}, {1 / std::sqrt(static_cast<double>(s.d))}};
        if (op == KernelOp::Attention) {
            cases.push_back({forward, 4e-6});
            continue;
        }
        runReference(forward);
        Call call = forward;
        call.op = op;
        call.in = {random(tokens * q, 4), operands[0], operands[1], operands[2], forward.out[0], forward.out[1]};
        call.out = {undefined(tokens * (q + 1)), undefined(tokens * (kv + 2)), undefined(tokens * (kv + 2))};
        call.dims.insert(call.dims.end(), {q + 1, kv + 2});
        cases.push_back({call, 2e-5});
    }
    return cases;
}

std::vector<Case> maxPools(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& dims : {std::vector<i64>{2, 3, 8, 9, 2, 2, 0}, {1, 4, 56, 57, 3, 2, 1}, {2, 1, 7, 40, 3, 1, 1}, {1, 1, 1, 1, 1, 1, 0}, {1, 2, 20, 20, 5, 3, 2}}) {
        const i64 planes = dims[0] * dims[1], in = planes * dims[2] * dims[3];
        const i64 out = planes * ((dims[2] + 2 * dims[6] - dims[4]) / dims[5] + 1) * ((dims[3] + 2 * dims[6] - dims[4]) / dims[5] + 1);
        Call forward{KernelOp::MaxPool, {random(in, 1)}, {undefined(out), undefined(out, Kind::Int64)}, dims, {}};
        if (op == KernelOp::MaxPool) {
            cases.push_back({forward, 0});
            continue;
        }
        runReference(forward);
        cases.push_back({{op, {random(out, 2), forward.out[1]}, {undefined(in)}, dims, {}}});
    }
    return cases;
}

std::vector<Case> averagePools(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& dims : {std::vector<i64>{2, 3, 7, 7, 1}, {1, 4, 9, 10, 4}, {1, 1, 5, 3, 7}}) {
        const i64 planes = dims[0] * dims[1], in = planes * dims[2] * dims[3], out = planes * dims[4] * dims[4];
        const bool forward = op == KernelOp::AveragePool;
        cases.push_back({{op, {random(forward ? in : out, 1)}, {undefined(forward ? out : in)}, dims, {}}});
    }
    return cases;
}

std::vector<Case> embeddings(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& [tokens, features, rows] : {std::tuple<i64, i64, i64>{1, 1, 1}, {20, 33, 7}, {9, 700, 50}}) {
        const Tensor ids = randomTokens(tokens, 1, rows);
        if (op == KernelOp::Embedding) cases.push_back({{op, {ids, random(rows * features, 2)}, {undefined(tokens * features)}, {tokens, features, rows}, {}}, 0});
        else cases.push_back({{op, {ids, random(tokens * features, 2)}, {random(rows * features, 3)}, {tokens, features, rows}, {}}});
    }
    return cases;
}

std::vector<Case> rotaries() {
    std::vector<Case> cases;
    for (const i64 inverse : {0, 1})
        for (const auto& [b, s, heads, d, gap] : {std::tuple<i64, i64, i64, i64, i64>{1, 1, 1, 2, 0}, {2, 9, 3, 10, 4}, {1, 40, 2, 64, 0}})
            cases.push_back({{KernelOp::Rotary, {random(b * s * (heads * d + gap), 1)}, {undefined(b * s * (heads * d + 1))}, {b, s, heads, d, heads * d + gap, heads * d + 1, inverse}, {10000}}});
    return cases;
}

std::vector<Case> heads(KernelOp op) {
    std::vector<Case> cases;
    for (const auto& [b, s, kv, count, d, gap] : {std::tuple<i64, i64, i64, i64, i64, i64>{2, 5, 2, 6, 7, 3}, {1, 3, 4, 4, 16, 0}, {1, 1, 1, 1, 1, 0}}) {
        const i64 stride = kv * d + gap, packed = b * s * stride, repeated = b * count * s * d;
        const bool repeat = op == KernelOp::RepeatHeads;
        cases.push_back({{op, {random(repeat ? packed : repeated, 1)}, {undefined(repeat ? repeated : packed)}, {b, s, kv, count, d, stride}, {}}});
    }
    return cases;
}

}  // namespace

std::vector<Case> layerCases(KernelOp op) {
    switch (op) {
        case KernelOp::Matmul: return matmuls();
        case KernelOp::Convolution: case KernelOp::ConvolutionInputGradient: case KernelOp::ConvolutionWeightGradient: return convolutions(op);
        case KernelOp::LayerNorm: case KernelOp::LayerNormInputGradient: case KernelOp::LayerNormWeightGradient: return norms(op);
        case KernelOp::RmsNorm: case KernelOp::RmsNormInputGradient: case KernelOp::RmsNormWeightGradient: return norms(op);
        case KernelOp::BatchNorm: case KernelOp::BatchNormGradient: return batchNorms(op);
        case KernelOp::Attention: case KernelOp::AttentionGradient: return attentions(op);
        case KernelOp::MaxPool: case KernelOp::MaxPoolGradient: return maxPools(op);
        case KernelOp::AveragePool: case KernelOp::AveragePoolGradient: return averagePools(op);
        case KernelOp::Embedding: case KernelOp::EmbeddingGradient: return embeddings(op);
        case KernelOp::Rotary: return rotaries();
        case KernelOp::RepeatHeads: case KernelOp::SumRepeatedHeads: return heads(op);
        default: return {};
    }
}

}  // namespace ringside::conformance
