// The naive reference: every op as its definition reads, in fp64, one element at a time. Slow, and meant to be read.
#include "tests/conformance/reference_kernels.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/base/check.h"

namespace ringside::conformance {

namespace {

using i64 = std::int64_t;

double normalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normalDensity(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

constexpr double kCubic = 0.044715;
double geluAngle(double x) { return std::sqrt(2 / std::numbers::pi) * (x + kCubic * x * x * x); }

double activate(ActivationKind kind, double x) {
    switch (kind) {
        case ActivationKind::Relu: return std::max(x, 0.0);
        case ActivationKind::Gelu: return x * normalCdf(x);
        case ActivationKind::GeluTanh: return 0.5 * x * (1 + std::tanh(geluAngle(x)));
        case ActivationKind::Silu: return x * sigmoid(x);
        case ActivationKind::Tanh: return std::tanh(x);
    }
    return 0;
}

/// `saved` is y for ReLU and tanh, x for the others.
double activationSlope(ActivationKind kind, double saved) {
    switch (kind) {
        case ActivationKind::Relu: return saved > 0 ? 1 : 0;
        case ActivationKind::Gelu: return normalCdf(saved) + saved * normalDensity(saved);
        case ActivationKind::GeluTanh: {
            const double t = std::tanh(geluAngle(saved));
            return 0.5 * (1 + t) + 0.5 * saved * (1 - t * t) * std::sqrt(2 / std::numbers::pi) * (1 + 3 * kCubic * saved * saved);
        }
        case ActivationKind::Silu: return sigmoid(saved) * (1 + saved * (1 - sigmoid(saved)));
        case ActivationKind::Tanh: return 1 - saved * saved;
    }
    return 0;
}

void matmul(Reference& r) {
    const i64 batch = r.d(0), m = r.d(1), n = r.d(2), k = r.d(3);
    for (i64 b = 0; b < batch; ++b)
        for (i64 i = 0; i < m; ++i)
            for (i64 j = 0; j < n; ++j) {
                double sum = 0;
                for (i64 l = 0; l < k; ++l) sum += r.in(0)[b * m * k + (r.d(4) != 0 ? l * m + i : i * k + l)] * r.in(1)[b * k * n + (r.d(5) != 0 ? j * k + l : l * n + j)];
                double& c = r.out(0)[(b * m + i) * n + j];
                c = r.s(0) * sum + (r.has(2) ? r.in(2)[j] : 0) + (r.s(1) == 0 ? 0 : r.s(1) * c);
            }
}

void keepOrAdd(double& y, double sum, double beta) { y = sum + (beta == 0 ? 0 : beta * y); }

void convolution(Reference& r) {
    const i64 n = r.d(0), ci = r.d(1), h = r.d(2), w = r.d(3), co = r.d(4), kh = r.d(5), kw = r.d(6), stride = r.d(7), padding = r.d(8);
    const i64 oh = (h + 2 * padding - kh) / stride + 1, ow = (w + 2 * padding - kw) / stride + 1;
    std::vector<double> sums(r.call.out[0].values.size(), 0.0);
    for (i64 b = 0; b < n; ++b)
        for (i64 o = 0; o < co; ++o)
            for (i64 y = 0; y < oh; ++y)
                for (i64 x = 0; x < ow; ++x)
                    for (i64 c = 0; c < ci; ++c)
                        for (i64 i = 0; i < kh; ++i)
                            for (i64 j = 0; j < kw; ++j) {
                                const i64 row = y * stride + i - padding, column = x * stride + j - padding;
                                if (row < 0 || row >= h || column < 0 || column >= w) continue;
                                const i64 inAt = ((b * ci + c) * h + row) * w + column, wAt = ((o * ci + c) * kh + i) * kw + j, outAt = ((b * co + o) * oh + y) * ow + x;
                                if (r.call.op == KernelOp::Convolution) sums[static_cast<std::size_t>(outAt)] += r.in(0)[inAt] * r.in(1)[wAt];
                                else if (r.call.op == KernelOp::ConvolutionInputGradient) sums[static_cast<std::size_t>(inAt)] += r.in(0)[outAt] * r.in(1)[wAt];
                                else sums[static_cast<std::size_t>(wAt)] += r.in(0)[inAt] * r.in(1)[outAt];
                            }
    const double beta = r.call.op == KernelOp::ConvolutionWeightGradient ? r.s(0) : 0;
    for (std::size_t i = 0; i < sums.size(); ++i) keepOrAdd(r.out(0)[static_cast<i64>(i)], sums[i], beta);
}

void columnSums(Reference& r) {
    const i64 rows = r.d(0), channels = r.d(1), inner = r.call.op == KernelOp::ChannelSum ? r.d(2) : 1;
    for (i64 c = 0; c < channels; ++c) {
        double sum = 0;
        for (i64 row = 0; row < rows; ++row)
            for (i64 i = 0; i < inner; ++i) sum += r.in(0)[(row * channels + c) * inner + i];
        keepOrAdd(r.out(0)[c], sum, r.s(0));
    }
}

void layerNorm(Reference& r) {
    const i64 n = r.d(1);
    for (i64 row = 0; row < r.d(0); ++row) {
        double mean = 0, variance = 0;
        for (i64 i = 0; i < n; ++i) mean += r.in(0)[row * n + i] / static_cast<double>(n);
        for (i64 i = 0; i < n; ++i) variance += std::pow(r.in(0)[row * n + i] - mean, 2) / static_cast<double>(n);
        const double inverse = 1 / std::sqrt(variance + r.s(0));
        r.out(1)[2 * row] = mean;
        r.out(1)[2 * row + 1] = inverse;
        for (i64 i = 0; i < n; ++i) r.out(0)[row * n + i] = (r.in(0)[row * n + i] - mean) * inverse * r.in(1)[i] + (r.has(2) ? r.in(2)[i] : 0);
    }
}

void layerNormInputGradient(Reference& r) {
    const i64 n = r.d(1);
    for (i64 row = 0; row < r.d(0); ++row) {
        const double mean = r.in(3)[2 * row], inverse = r.in(3)[2 * row + 1];
        const auto g = [&](i64 i) { return r.in(0)[row * n + i] * r.in(2)[i]; };
        const auto hat = [&](i64 i) { return (r.in(1)[row * n + i] - mean) * inverse; };
        double sum = 0, dot = 0;
        for (i64 i = 0; i < n; ++i) {
            sum += g(i) / static_cast<double>(n);
            dot += g(i) * hat(i) / static_cast<double>(n);
        }
        for (i64 i = 0; i < n; ++i) r.out(0)[row * n + i] = inverse * (g(i) - sum - hat(i) * dot);
    }
}

void layerNormWeightGradient(Reference& r) {
    const i64 n = r.d(1);
    for (i64 i = 0; i < n; ++i) {
        double weight = 0, bias = 0;
        for (i64 row = 0; row < r.d(0); ++row) {
            weight += r.in(0)[row * n + i] * (r.in(1)[row * n + i] - r.in(2)[2 * row]) * r.in(2)[2 * row + 1];
            bias += r.in(0)[row * n + i];
        }
        keepOrAdd(r.out(0)[i], weight, r.s(0));
        if (r.call.out[1].present()) keepOrAdd(r.out(1)[i], bias, r.s(0));
    }
}

void rmsNorm(Reference& r) {
    const i64 n = r.d(1);
    for (i64 row = 0; row < r.d(0); ++row) {
        double square = 0;
        for (i64 i = 0; i < n; ++i) square += r.in(0)[row * n + i] * r.in(0)[row * n + i] / static_cast<double>(n);
        r.out(1)[row] = 1 / std::sqrt(square + r.s(0));
        for (i64 i = 0; i < n; ++i) r.out(0)[row * n + i] = r.in(0)[row * n + i] * r.out(1)[row] * r.in(1)[i];
    }
}

void rmsNormInputGradient(Reference& r) {
    const i64 n = r.d(1);
    for (i64 row = 0; row < r.d(0); ++row) {
        const double inverse = r.in(3)[row];
        double dot = 0;
        for (i64 i = 0; i < n; ++i) dot += r.in(0)[row * n + i] * r.in(2)[i] * r.in(1)[row * n + i] / static_cast<double>(n);
        for (i64 i = 0; i < n; ++i) r.out(0)[row * n + i] = inverse * (r.in(0)[row * n + i] * r.in(2)[i] - r.in(1)[row * n + i] * inverse * inverse * dot);
    }
}

void rmsNormWeightGradient(Reference& r) {
    const i64 n = r.d(1);
    for (i64 i = 0; i < n; ++i) {
        double sum = 0;
        for (i64 row = 0; row < r.d(0); ++row) sum += r.in(0)[row * n + i] * r.in(1)[row * n + i] * r.in(2)[row];
        keepOrAdd(r.out(0)[i], sum, r.s(0));
    }
}

void batchNorm(Reference& r) {
    const i64 n = r.d(0), channels = r.d(1), inner = r.d(2);
    const auto count = static_cast<double>(n * inner);
    for (i64 c = 0; c < channels; ++c) {
        const auto at = [&](i64 sample, i64 i) { return (sample * channels + c) * inner + i; };
        double mean = 0, squares = 0;
        for (i64 s = 0; s < n; ++s)
            for (i64 i = 0; i < inner; ++i) mean += r.in(0)[at(s, i)] / count;
        for (i64 s = 0; s < n; ++s)
            for (i64 i = 0; i < inner; ++i) squares += std::pow(r.in(0)[at(s, i)] - mean, 2);
        const double inverse = 1 / std::sqrt(squares / count + r.s(0));
        r.out(1)[2 * c] = mean;
        r.out(1)[2 * c + 1] = inverse;
        for (i64 s = 0; s < n; ++s)
            for (i64 i = 0; i < inner; ++i) r.out(0)[at(s, i)] = (r.in(0)[at(s, i)] - mean) * inverse * r.in(1)[c] + r.in(2)[c];
        if (r.call.out[2].present()) r.out(2)[c] = (1 - r.s(1)) * r.out(2)[c] + r.s(1) * mean;
        if (r.call.out[3].present()) r.out(3)[c] = (1 - r.s(1)) * r.out(3)[c] + r.s(1) * squares / std::max(count - 1, 1.0);
    }
}

void batchNormGradient(Reference& r) {
    const i64 n = r.d(0), channels = r.d(1), inner = r.d(2);
    const auto count = static_cast<double>(n * inner);
    for (i64 c = 0; c < channels; ++c) {
        const auto at = [&](i64 sample, i64 i) { return (sample * channels + c) * inner + i; };
        const auto hat = [&](i64 s, i64 i) { return (r.in(1)[at(s, i)] - r.in(3)[2 * c]) * r.in(3)[2 * c + 1]; };
        double sum = 0, dot = 0;
        for (i64 s = 0; s < n; ++s)
            for (i64 i = 0; i < inner; ++i) {
                sum += r.in(0)[at(s, i)];
                dot += r.in(0)[at(s, i)] * hat(s, i);
            }
        r.out(1)[c] = dot;
        r.out(2)[c] = sum;
        for (i64 s = 0; s < n; ++s)
            for (i64 i = 0; i < inner; ++i) r.out(0)[at(s, i)] = r.in(2)[c] * r.in(3)[2 * c + 1] * (r.in(0)[at(s, i)] - sum / count - hat(s, i) * dot / count);
    }
}

void softmaxes(Reference& r) {
    const i64 n = r.d(1);
    for (i64 row = 0; row < r.d(0); ++row) {
        const auto a = [&](i64 i) { return r.in(0)[row * n + i]; };
        const auto y = [&](i64 i) { return r.in(1)[row * n + i]; };
        double sum = 0, largest = -INFINITY;
        for (i64 i = 0; i < n; ++i) largest = std::max(largest, a(i));
        for (i64 i = 0; i < n; ++i) {
            if (r.call.op == KernelOp::SoftmaxGradient) sum += a(i) * y(i);
            else if (r.call.op == KernelOp::LogSoftmaxGradient) sum += a(i);
            else sum += std::exp(a(i) - largest);
        }
        for (i64 i = 0; i < n; ++i) {
            double& result = r.out(0)[row * n + i];
            if (r.call.op == KernelOp::Softmax) result = std::exp(a(i) - largest) / sum;
            else if (r.call.op == KernelOp::LogSoftmax) result = a(i) - largest - std::log(sum);
            else if (r.call.op == KernelOp::SoftmaxGradient) result = y(i) * (a(i) - sum);
            else result = a(i) - std::exp(y(i)) * sum;
        }
    }
}

void optimizers(Reference& r) {
    const auto step = static_cast<double>(r.d(1));
    for (i64 i = 0; i < r.d(0); ++i) {
        const double g = r.in(0)[i];
        if (r.call.op == KernelOp::SgdFused) {
            double velocity = g;
            if (r.call.out[1].present()) {
                if (r.d(1) > 1) velocity += r.s(1) * r.out(1)[i];
                r.out(1)[i] = velocity;
            }
            r.out(0)[i] -= r.s(0) * velocity;
            continue;
        }
        double &p = r.out(0)[i], &m = r.out(1)[i], &v = r.out(2)[i];
        p *= 1 - r.s(0) * r.s(4);
        m = r.s(1) * m + (1 - r.s(1)) * g;
        v = r.s(2) * v + (1 - r.s(2)) * g * g;
        p -= r.s(0) * (m / (1 - std::pow(r.s(1), step))) / (std::sqrt(v / (1 - std::pow(r.s(2), step))) + r.s(3));
    }
}

/// Ops whose element i depends on the elements i of their operands alone.
double element(const Reference& r, i64 i) {
    const auto a = [&] { return r.in(0)[i]; };
    const auto b = [&] { return r.in(1)[i]; };
    const double y = r.out(0)[i];
    switch (r.call.op) {
        case KernelOp::Activation: return activate(static_cast<ActivationKind>(r.d(1)), a());
        case KernelOp::ActivationGradient: return a() * activationSlope(static_cast<ActivationKind>(r.d(1)), b());
        case KernelOp::Add: return a() + b();
        case KernelOp::Multiply: return a() * b();
        case KernelOp::Axpy: return y + r.s(0) * a();
        case KernelOp::Scale: return r.s(0) * a();
        case KernelOp::Fill: return r.s(0);
        case KernelOp::Copy: case KernelOp::Cast: return a();
        case KernelOp::DropoutGradient: return b() != 0 ? a() / (1 - r.s(0)) : 0;
        case KernelOp::Lerp: return y + r.s(0) * (a() - y);
        case KernelOp::MultiplyAccumulate: return y + r.s(0) * a() * b();
        case KernelOp::SquareRoot: return std::sqrt(a());
        case KernelOp::AddScalar: return a() + r.s(0);
        case KernelOp::DivideAccumulate: return y + r.s(0) * a() / b();
        default: break;
    }
    CHECK(false && "an op that the reference does not know");
    return 0;
}

}  // namespace

void runReference(Call& call) {
    Reference r{call};
    switch (call.op) {
        case KernelOp::Matmul: return matmul(r);
        case KernelOp::ColumnSum: case KernelOp::ChannelSum: return columnSums(r);
        case KernelOp::Convolution: case KernelOp::ConvolutionInputGradient: case KernelOp::ConvolutionWeightGradient: return convolution(r);
        case KernelOp::LayerNorm: return layerNorm(r);
        case KernelOp::LayerNormInputGradient: return layerNormInputGradient(r);
        case KernelOp::LayerNormWeightGradient: return layerNormWeightGradient(r);
        case KernelOp::RmsNorm: return rmsNorm(r);
        case KernelOp::RmsNormInputGradient: return rmsNormInputGradient(r);
        case KernelOp::RmsNormWeightGradient: return rmsNormWeightGradient(r);
        case KernelOp::BatchNorm: return batchNorm(r);
        case KernelOp::BatchNormGradient: return batchNormGradient(r);
        case KernelOp::Softmax: case KernelOp::SoftmaxGradient: case KernelOp::LogSoftmax: case KernelOp::LogSoftmaxGradient: return softmaxes(r);
        case KernelOp::AdamFused: case KernelOp::SgdFused: return optimizers(r);
        default: break;
    }
    if (runShapedReference(r)) return;
    for (i64 i = 0; i < r.d(0); ++i) r.out(0)[i] = element(r, i);
}

}  // namespace ringside::conformance
