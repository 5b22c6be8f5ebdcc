// The reference's ops that move, look up, attend, pool or sum up.
#include <algorithm>
#include <cmath>

#include "tests/conformance/reference_kernels.h"

namespace ringside::conformance {

namespace {

using i64 = std::int64_t;

i64 whole(double value) { return static_cast<i64>(value); }

void addBias(Reference& r) {
    const i64 channels = r.d(1), inner = r.d(2);
    for (i64 i = 0; i < r.d(0) * channels * inner; ++i) r.out(0)[i] = r.in(0)[i] + r.in(1)[i / inner % channels];
}

void copyStrided(Reference& r) {
    for (i64 row = 0; row < r.d(0); ++row)
        for (i64 c = 0; c < r.d(1); ++c) r.out(0)[row * r.d(3) + c] = r.in(0)[row * r.d(2) + c];
}

void transpose(Reference& r) {
    const i64 m = r.d(1), n = r.d(2), inner = r.d(3);
    for (i64 b = 0; b < r.d(0); ++b)
        for (i64 i = 0; i < m; ++i)
            for (i64 j = 0; j < n; ++j)
                for (i64 k = 0; k < inner; ++k) r.out(0)[((b * n + j) * m + i) * inner + k] = r.in(0)[((b * m + i) * n + j) * inner + k];
}

void mask(Reference& r) {
    const i64 queries = r.d(1), keys = r.d(2);
    for (i64 row = 0; row < r.d(0) * queries; ++row)
        for (i64 k = 0; k < keys; ++k) r.out(0)[row * keys + k] = k > row % queries ? -INFINITY : r.in(0)[row * keys + k];
}

void repeatedHeads(Reference& r) {
    const i64 b = r.d(0), s = r.d(1), kv = r.d(2), heads = r.d(3), d = r.d(4), stride = r.d(5);
    const bool sum = r.call.op == KernelOp::SumRepeatedHeads;
    if (sum)
        for (i64 t = 0; t < b * s; ++t)
            for (i64 i = 0; i < kv * d; ++i) r.out(0)[t * stride + i] = 0;
    for (i64 n = 0; n < b; ++n)
        for (i64 h = 0; h < heads; ++h)
            for (i64 t = 0; t < s; ++t)
                for (i64 i = 0; i < d; ++i) {
                    const i64 packed = (n * s + t) * stride + h / (heads / kv) * d + i, repeated = ((n * heads + h) * s + t) * d + i;
                    if (sum) r.out(0)[packed] += r.in(0)[repeated];
                    else r.out(0)[repeated] = r.in(0)[packed];
                }
}

void embeddings(Reference& r) {
    const i64 features = r.d(1);
    for (i64 t = 0; t < r.d(0); ++t)
        for (i64 f = 0; f < features; ++f) {
            const i64 row = whole(r.in(0)[t]) * features + f;
            if (r.call.op == KernelOp::Embedding) r.out(0)[t * features + f] = r.in(1)[row];
            else r.out(0)[row] += r.in(1)[t * features + f];
        }
}

void samples(Reference& r) {
    const i64 n = r.d(0), size = r.d(1) * r.d(2);
    for (i64 i = 0; i < size; ++i) {
        double sum = 0;
        for (i64 s = 0; s < n; ++s) {
            sum += r.in(0)[s * size + i];
            if (r.call.op == KernelOp::AddRows) r.out(0)[s * size + i] = r.in(0)[s * size + i] + r.in(1)[i];
        }
        if (r.call.op == KernelOp::SumOverSamples) r.out(0)[i] = sum;
    }
}

void rotary(Reference& r) {
    const i64 s = r.d(1), heads = r.d(2), d = r.d(3);
    for (i64 token = 0; token < r.d(0) * s; ++token)
        for (i64 h = 0; h < heads; ++h)
            for (i64 i = 0; i < d / 2; ++i) {
                const double angle = (r.d(6) != 0 ? -1.0 : 1.0) * static_cast<double>(token % s) * std::pow(r.s(0), -2.0 * static_cast<double>(i) / static_cast<double>(d));
                const double a = r.in(0)[token * r.d(4) + h * d + i], b = r.in(0)[token * r.d(4) + h * d + d / 2 + i];
                r.out(0)[token * r.d(5) + h * d + i] = a * std::cos(angle) - b * std::sin(angle);
                r.out(0)[token * r.d(5) + h * d + d / 2 + i] = b * std::cos(angle) + a * std::sin(angle);
            }
}

struct AttentionShape {
    explicit AttentionShape(const Reference& r)
        : b(r.d(0)), s(r.d(1)), heads(r.d(2)), kvHeads(r.d(3)), d(r.d(4)), causal(r.d(5) != 0), qStride(r.d(6)), kvStride(r.d(7)), outStride(r.d(8)), scale(r.s(0)) {}
    i64 at(i64 sample, i64 token, i64 head, i64 stride) const { return (sample * s + token) * stride + head * d; }
    i64 kvHead(i64 head) const { return head / (heads / kvHeads); }
    i64 keys(i64 query) const { return causal ? query + 1 : s; }
    i64 b, s, heads, kvHeads, d;
    bool causal;
    i64 qStride, kvStride, outStride;
    double scale;

    /// Probabilities of one query, and the logarithm of their sum.
    std::vector<double> probabilities(const Tensor& q, const Tensor& k, i64 sample, i64 query, i64 head, double& logSumExp) const {
        std::vector<double> p;
        double largest = -INFINITY, sum = 0;
        for (i64 key = 0; key < keys(query); ++key) {
            double dot = 0;
            for (i64 i = 0; i < d; ++i) dot += q[at(sample, query, head, qStride) + i] * k[at(sample, key, kvHead(head), kvStride) + i];
            p.push_back(scale * dot);
            largest = std::max(largest, p.back());
        }
        for (double& value : p) sum += value = std::exp(value - largest);
        for (double& value : p) value /= sum;
        logSumExp = largest + std::log(sum);
        return p;
    }
};

void attention(Reference& r) {
    const AttentionShape a(r);
    for (i64 n = 0; n < a.b; ++n)
        for (i64 h = 0; h < a.heads; ++h)
            for (i64 q = 0; q < a.s; ++q) {
                const auto p = a.probabilities(r.in(0), r.in(1), n, q, h, r.out(1)[(n * a.heads + h) * a.s + q]);
                for (i64 i = 0; i < a.d; ++i) {
                    double sum = 0;
                    for (i64 key = 0; key < a.keys(q); ++key) sum += p[static_cast<std::size_t>(key)] * r.in(2)[a.at(n, key, a.kvHead(h), a.kvStride) + i];
                    r.out(0)[a.at(n, q, h, a.outStride) + i] = sum;
                }
            }
}

void attentionGradient(Reference& r) {
    const AttentionShape a(r);
    const i64 dqStride = r.d(9), dkvStride = r.d(10);
    for (i64 token = 0; token < a.b * a.s; ++token) {
        for (i64 i = 0; i < a.heads * a.d; ++i) r.out(0)[token * dqStride + i] = 0;
        for (i64 i = 0; i < a.kvHeads * a.d; ++i) r.out(1)[token * dkvStride + i] = r.out(2)[token * dkvStride + i] = 0;
    }
    for (i64 n = 0; n < a.b; ++n)
        for (i64 h = 0; h < a.heads; ++h)
            for (i64 q = 0; q < a.s; ++q) {
                double unused = 0, delta = 0;
                const auto p = a.probabilities(r.in(1), r.in(2), n, q, h, unused);
                const i64 out = a.at(n, q, h, a.outStride), dq = a.at(n, q, h, dqStride), query = a.at(n, q, h, a.qStride);
                std::vector<double> dp(p.size(), 0.0);
                for (i64 key = 0; key < a.keys(q); ++key) {
                    const auto index = static_cast<std::size_t>(key);
                    for (i64 i = 0; i < a.d; ++i) {
                        dp[index] += r.in(0)[out + i] * r.in(3)[a.at(n, key, a.kvHead(h), a.kvStride) + i];
                        r.out(2)[a.at(n, key, a.kvHead(h), dkvStride) + i] += p[index] * r.in(0)[out + i];
                    }
                    delta += p[index] * dp[index];
                }
                for (i64 key = 0; key < a.keys(q); ++key) {
                    const double ds = p[static_cast<std::size_t>(key)] * (dp[static_cast<std::size_t>(key)] - delta) * a.scale;
                    for (i64 i = 0; i < a.d; ++i) {
                        r.out(0)[dq + i] += ds * r.in(2)[a.at(n, key, a.kvHead(h), a.kvStride) + i];
                        r.out(1)[a.at(n, key, a.kvHead(h), dkvStride) + i] += ds * r.in(1)[query + i];
                    }
                }
            }
}

void maxPools(Reference& r) {
    const i64 planes = r.d(0) * r.d(1), h = r.d(2), w = r.d(3), kernel = r.d(4), stride = r.d(5), padding = r.d(6);
    const i64 oh = (h + 2 * padding - kernel) / stride + 1, ow = (w + 2 * padding - kernel) / stride + 1;
    if (r.call.op == KernelOp::MaxPoolGradient) {
        for (i64 i = 0; i < planes * h * w; ++i) r.out(0)[i] = 0;
        for (i64 i = 0; i < planes * oh * ow; ++i) r.out(0)[i / (oh * ow) * h * w + whole(r.in(1)[i])] += r.in(0)[i];
        return;
    }
    for (i64 at = 0; at < planes * oh * ow; ++at) {
        const i64 plane = at / (oh * ow), y = at / ow % oh, x = at % ow;
        double best = -INFINITY;
        for (i64 i = 0; i < kernel; ++i)
            for (i64 j = 0; j < kernel; ++j) {
                const i64 row = y * stride + i - padding, column = x * stride + j - padding;
                if (row < 0 || row >= h || column < 0 || column >= w || r.in(0)[(plane * h + row) * w + column] <= best) continue;
                best = r.in(0)[(plane * h + row) * w + column];
                r.out(1)[at] = static_cast<double>(row * w + column);
            }
        r.out(0)[at] = best;
    }
}

void averagePools(Reference& r) {
    const i64 planes = r.d(0) * r.d(1), h = r.d(2), w = r.d(3), o = r.d(4);
    const bool gradient = r.call.op == KernelOp::AveragePoolGradient;
    if (gradient)
        for (i64 i = 0; i < planes * h * w; ++i) r.out(0)[i] = 0;
    const auto begin = [o](i64 i, i64 size) { return i * size / o; };
    const auto end = [o](i64 i, i64 size) { return whole(std::ceil(static_cast<double>((i + 1) * size) / static_cast<double>(o))); };
    for (i64 at = 0; at < planes * o * o; ++at) {
        const i64 plane = at / (o * o), y = at / o % o, x = at % o;
        const auto count = static_cast<double>((end(y, h) - begin(y, h)) * (end(x, w) - begin(x, w)));
        double sum = 0;
        for (i64 i = begin(y, h); i < end(y, h); ++i)
            for (i64 j = begin(x, w); j < end(x, w); ++j) {
                if (gradient) r.out(0)[(plane * h + i) * w + j] += r.in(0)[at] / count;
                else sum += r.in(0)[(plane * h + i) * w + j] / count;
            }
        if (!gradient) r.out(0)[at] = sum;
    }
}

void losses(Reference& r) {
    const i64 rows = r.d(0);
    switch (r.call.op) {
        case KernelOp::NllLoss: {
            double sum = 0;
            for (i64 row = 0; row < rows; ++row) sum -= r.in(0)[row * r.d(1) + whole(r.in(1)[row])] / static_cast<double>(rows);
            r.out(0)[0] = sum;
            return;
        }
        case KernelOp::NllLossGradient:
            for (i64 i = 0; i < rows * r.d(1); ++i) r.out(0)[i] = i % r.d(1) == whole(r.in(0)[i / r.d(1)]) ? -r.s(0) / static_cast<double>(rows) : 0;
            return;
        case KernelOp::SquaredError:
            r.out(0)[0] = 0;
            for (i64 i = 0; i < rows; ++i) r.out(0)[0] += std::pow(r.in(0)[i] - r.in(1)[i], 2);
            return;
        default:
            for (i64 i = 0; i < rows; ++i) r.out(0)[0] += r.in(0)[i] * r.in(0)[i];
            return;
    }
}

}  // namespace

bool runShapedReference(Reference& r) {
    switch (r.call.op) {
        case KernelOp::AddBias: addBias(r); return true;
        case KernelOp::CopyStrided: copyStrided(r); return true;
        case KernelOp::Transpose: transpose(r); return true;
        case KernelOp::Mask: mask(r); return true;
        case KernelOp::RepeatHeads: case KernelOp::SumRepeatedHeads: repeatedHeads(r); return true;
        case KernelOp::Embedding: case KernelOp::EmbeddingGradient: embeddings(r); return true;
        case KernelOp::AddRows: case KernelOp::SumOverSamples: samples(r); return true;
        case KernelOp::Rotary: rotary(r); return true;
        case KernelOp::Attention: attention(r); return true;
        case KernelOp::AttentionGradient: attentionGradient(r); return true;
        case KernelOp::MaxPool: case KernelOp::MaxPoolGradient: maxPools(r); return true;
        case KernelOp::AveragePool: case KernelOp::AveragePoolGradient: averagePools(r); return true;
        case KernelOp::NllLoss: case KernelOp::NllLossGradient: case KernelOp::SquaredError: case KernelOp::SumOfSquares: losses(r); return true;
        default: return false;
    }
}

}  // namespace ringside::conformance
