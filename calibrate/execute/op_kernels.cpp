#include "calibrate/execute/op_kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr double kNormEpsilon = 1e-5, kBatchNormMomentum = 0.1, kDropout = 0.1, kRotaryBase = 10000;

/// Collects the calls of one kernel.
class Calls {
public:
    Calls(std::vector<BoundCall>& calls, ScratchSizes& scratch) : calls_(calls), scratch_(scratch) {}

    void add(KernelOp op, std::initializer_list<Operand> in, std::initializer_list<Operand> out, std::initializer_list<std::int64_t> dims,
             std::initializer_list<double> scalars = {}) {
        BoundCall& bound = calls_.emplace_back();
        bound.call.op = op;
        std::copy(in.begin(), in.end(), bound.in.begin());
        std::copy(out.begin(), out.end(), bound.out.begin());
        std::copy(dims.begin(), dims.end(), bound.call.dims.begin());
        std::copy(scalars.begin(), scalars.end(), bound.call.scalars.begin());
    }
    /// Scratch of at least so many bytes.
    Operand scratch(std::uint32_t slot, Bytes bytes) {
        scratch_[slot] = std::max(scratch_[slot], bytes);
        return inScratch(slot);
    }

private:
    std::vector<BoundCall>& calls_;
    ScratchSizes& scratch_;
};

/// One op with its shapes at hand.
struct Bound {
    const LayerType& layer;
    const Op& op;
    const OpOperands& at;
    Calls calls;

    const Value& input(std::size_t i = 0) const { return layer.values[static_cast<std::size_t>(op.inputs[i])]; }
    const Value& output(std::size_t i = 0) const { return layer.values[static_cast<std::size_t>(op.outputs[i])]; }
    std::int64_t attribute(std::size_t i) const { return op.attributes[i]; }
    Operand saved(int value) const { return at.values[static_cast<std::size_t>(value)]; }
    /// Gradient of the parameter at position `i` of the layer's list (weight or bias), wherever it stands in Op::parameters.
    std::size_t placeOf(bool bias) const {
        for (std::size_t i = 0; i < op.parameters.size(); ++i) {
            const bool isBias = layer.parameters[static_cast<std::size_t>(op.parameters[i])].name.ends_with("bias");
            if (isBias == bias) return i;
        }
        return op.parameters.size();
    }
    Operand parameter(bool bias) const { return placeOf(bias) < op.parameters.size() ? at.parameters[placeOf(bias)] : Operand{}; }
    Operand gradient(bool bias) const { return placeOf(bias) < op.parameters.size() ? at.parameterGradients[placeOf(bias)] : Operand{}; }
    /// Where the kernels write an input's gradient: itself, or scratch that "gradient add" then adds.
    Operand inputGradient(std::size_t i) {
        if (at.inputGradients[i].kind == Operand::Kind::None || !at.addsToGradient[i]) return at.inputGradients[i];
        return calls.scratch(kSumScratch, input(i).bytes());
    }
};

std::int64_t rowsOf(const Value& value) { return elementCount(value.shape) / value.shape.back(); }

tl::unexpected<Error> unsupported(const Op& op, std::string_view what) {
    return failure(ErrorCode::MissingCapability, op.name, fmt::format("{} ({}) cannot be run for real; MLPs, GPT-2- and Llama-like transformers and ResNets in fp32 with flash attention can", what, nameOf(op.kind)));
}

ActivationKind activationOf(OpKind kind) {
    switch (kind) {
        case OpKind::Relu: return ActivationKind::Relu;
        case OpKind::Silu: return ActivationKind::Silu;
        case OpKind::Tanh: return ActivationKind::Tanh;
        default: return ActivationKind::Gelu;
    }
}

// ---- linear ----

void linearForward(Bound& b) {
    const std::int64_t rows = rowsOf(b.input()), in = b.attribute(0), out = b.attribute(1);
    const bool inByOut = b.attribute(3) != 0;
    b.calls.add(KernelOp::Matmul, {b.at.inputs[0], b.parameter(false), b.parameter(true)}, {b.at.outputs[0]}, {1, rows, out, in, 0, inByOut ? 0 : 1}, {1, 0});
}

void linearBackward(Bound& b, std::string_view kernel) {
    const std::int64_t rows = rowsOf(b.input()), in = b.attribute(0), out = b.attribute(1);
    const bool inByOut = b.attribute(3) != 0;
    if (kernel == "linear input gradient") {
        b.calls.add(KernelOp::Matmul, {b.at.outputGradients[0], b.parameter(false)}, {b.inputGradient(0)}, {1, rows, in, out, 0, inByOut ? 1 : 0}, {1, 0});
    } else if (kernel == "linear weight gradient") {
        const Operand x = b.saved(b.op.inputs[0]);
        if (inByOut) b.calls.add(KernelOp::Matmul, {x, b.at.outputGradients[0]}, {b.gradient(false)}, {1, in, out, rows, 1, 0}, {1, 0});
        else b.calls.add(KernelOp::Matmul, {b.at.outputGradients[0], x}, {b.gradient(false)}, {1, out, in, rows, 1, 0}, {1, 0});
    } else {
        b.calls.add(KernelOp::ColumnSum, {b.at.outputGradients[0]}, {b.gradient(true)}, {rows, out}, {0});
    }
}

// ---- attention ----

struct AttentionStrides {
    std::int64_t b, s, heads, kv, d, causal, q, kvStride, out;
    double scale;
};

AttentionStrides attentionOf(const Bound& b) {
    const Shape& out = b.output().shape;
    AttentionStrides a{out[0], out[1], b.attribute(0), b.attribute(1), b.attribute(2), b.attribute(3), 0, 0, 0, 0};
    const bool fused = b.attribute(4) != 0;
    const std::int64_t width = (a.heads + 2 * a.kv) * a.d;
    a.q = fused ? width : a.heads * a.d;
    a.kvStride = fused ? width : a.kv * a.d;
    a.out = a.heads * a.d;
    a.scale = 1 / std::sqrt(static_cast<double>(a.d));
    return a;
}

Operand shifted(Operand operand, std::int64_t elements) {
    operand.offset += elements * 4;
    return operand;
}

/// q, k and v of an op whose inputs (or saved inputs) are `first`, `second`, `third`; fused ones are three parts of the first.
std::array<Operand, 3> partsOf(const Bound& b, const AttentionStrides& a, const std::function<Operand(std::size_t)>& input) {
    if (b.attribute(4) != 0) return {input(0), shifted(input(0), a.heads * a.d), shifted(input(0), (a.heads + a.kv) * a.d)};
    return {input(0), input(1), input(2)};
}

void attentionForward(Bound& b) {
    const AttentionStrides a = attentionOf(b);
    const auto [q, k, v] = partsOf(b, a, [&](std::size_t i) { return b.at.inputs[i]; });
    b.calls.add(KernelOp::Attention, {q, k, v}, {b.at.outputs[0], b.at.outputs[1]}, {a.b, a.s, a.heads, a.kv, a.d, a.causal, a.q, a.kvStride, a.out}, {a.scale});
}

void attentionBackward(Bound& b, std::string_view kernel) {
    const AttentionStrides a = attentionOf(b);
    const bool fused = b.attribute(4) != 0;
    const std::int64_t tokens = a.b * a.s, queries = a.heads * a.d, keys = a.kv * a.d;
    // The kernel writes three tensors; split's backward joins them.
    const std::array<Operand, 3> parts = fused ? std::array{b.calls.scratch(0, tokens * queries * 4), b.calls.scratch(1, tokens * keys * 4), b.calls.scratch(2, tokens * keys * 4)}
                                               : std::array{b.inputGradient(0), b.inputGradient(1), b.inputGradient(2)};
    if (kernel == "flash attention gradient") {
        const auto [q, k, v] = partsOf(b, a, [&](std::size_t i) { return b.saved(b.op.inputs[i]); });
        b.calls.add(KernelOp::AttentionGradient, {b.at.outputGradients[0], q, k, v, b.saved(b.op.outputs[0]), b.saved(b.op.outputs[1])}, {parts[0], parts[1], parts[2]},
                    {a.b, a.s, a.heads, a.kv, a.d, a.causal, a.q, a.kvStride, a.out, queries, keys}, {a.scale});
        return;
    }
    const Operand joined = b.inputGradient(0);
    const std::int64_t width = queries + 2 * keys;
    std::int64_t column = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        const std::int64_t columns = i == 0 ? queries : keys;
        b.calls.add(KernelOp::CopyStrided, {parts[i]}, {shifted(joined, column)}, {tokens, columns, columns, width});
        column += columns;
    }
}

void rotate(Bound& b, bool keys, Operand from, Operand to, bool inverse) {
    const std::int64_t heads = keys ? b.attribute(1) : b.attribute(0), d = b.attribute(2);
    const Shape& shape = b.input().shape;
    const std::int64_t stride = heads * d;
    b.calls.add(KernelOp::Rotary, {from}, {to}, {shape[0], shape[1], heads, d, stride, stride, inverse}, {kRotaryBase});
}

// ---- norms ----

void normBackward(Bound& b, std::string_view kernel) {
    const std::int64_t features = b.attribute(0), rows = rowsOf(b.input());
    const bool rms = b.attribute(1) != 0;
    const Operand x = b.saved(b.op.inputs[0]), statistics = b.saved(b.op.outputs[1]);
    if (kernel == "norm input gradient")
        b.calls.add(rms ? KernelOp::RmsNormInputGradient : KernelOp::LayerNormInputGradient, {b.at.outputGradients[0], x, b.parameter(false), statistics}, {b.inputGradient(0)}, {rows, features});
    else
        b.calls.add(rms ? KernelOp::RmsNormWeightGradient : KernelOp::LayerNormWeightGradient, {b.at.outputGradients[0], x, statistics}, {b.gradient(false), b.gradient(true)}, {rows, features}, {0});
}

// ---- images ----

void convolutionCall(Bound& b, KernelOp op, std::initializer_list<Operand> in, Operand out) {
    const Shape& x = b.input().shape;
    const Shape& y = b.output().shape;
    b.calls.add(op, in, {out}, {x[0], x[1], x[2], x[3], y[1], b.attribute(0), b.attribute(0), b.attribute(1), b.attribute(2)}, {0});
}

void poolCall(Bound& b, KernelOp op, std::initializer_list<Operand> in, std::initializer_list<Operand> out) {
    const Shape& x = b.input().shape;
    if (b.op.kind == OpKind::MaxPool) b.calls.add(op, in, out, {x[0], x[1], x[2], x[3], b.attribute(0), b.attribute(1), b.attribute(2)});
    else b.calls.add(op, in, out, {x[0], x[1], x[2], x[3], b.attribute(0)});
}

std::int64_t innerOf(const Shape& shape) { return shape[2] * shape[3]; }

}  // namespace

Result<void> bindForwardKernel(const LayerType& layer, const Op& op, std::size_t kernel, const OpOperands& at, std::vector<BoundCall>& calls, ScratchSizes& scratch) {
    Bound b{layer, op, at, Calls(calls, scratch)};
    const std::string_view name = op.forward[kernel].name;
    const std::int64_t elements = elementCount(b.output().shape);
    if (op.forwardPieces > 1) return unsupported(op, "a product in pieces (tp_comm_overlap)");
    switch (op.kind) {
        case OpKind::Linear:
            if (op.attributes[4] > 1) return unsupported(op, "a linear layer of experts");
            linearForward(b);
            return {};
        case OpKind::Norm: {
            if (b.attribute(3) != 0) return unsupported(op, "an RMS norm of several kernels (rms_norm)");
            const std::int64_t features = b.attribute(0), rows = rowsOf(b.input());
            if (b.attribute(1) != 0) b.calls.add(KernelOp::RmsNorm, {at.inputs[0], b.parameter(false)}, {at.outputs[0], at.outputs[1]}, {rows, features}, {kNormEpsilon});
            else b.calls.add(KernelOp::LayerNorm, {at.inputs[0], b.parameter(false), b.parameter(true)}, {at.outputs[0], at.outputs[1]}, {rows, features}, {kNormEpsilon});
            return {};
        }
        case OpKind::Gelu: case OpKind::Silu: case OpKind::Relu: case OpKind::Tanh:
            b.calls.add(KernelOp::Activation, {at.inputs[0]}, {at.outputs[0]}, {elements, static_cast<std::int64_t>(activationOf(op.kind))});
            return {};
        case OpKind::GatedSilu: {
            if (b.attribute(2) != 0) return unsupported(op, "a gated activation of one fused input");
            if (b.attribute(3) != 0) return unsupported(op, "a gated activation in one kernel (gated_activation)");
            const ActivationKind kind = b.attribute(1) == 0 ? ActivationKind::Silu : b.attribute(1) == 1 ? ActivationKind::Gelu : ActivationKind::Relu;
            if (name != "multiply") b.calls.add(KernelOp::Activation, {at.inputs[0]}, {at.outputs[1]}, {elements, static_cast<std::int64_t>(kind)});
            else b.calls.add(KernelOp::Multiply, {at.outputs[1], at.inputs[1]}, {at.outputs[0]}, {elements});
            return {};
        }
        case OpKind::Add: b.calls.add(KernelOp::Add, {at.inputs[0], at.inputs[1]}, {at.outputs[0]}, {elements}); return {};
        case OpKind::Dropout: return unsupported(op, "dropout");
        case OpKind::Embedding: {
            const std::int64_t tokens = elementCount(b.input().shape);
            b.calls.add(KernelOp::Embedding, {at.inputs[0], at.parameters[0]}, {at.outputs[0]}, {tokens, b.attribute(1), b.attribute(0)});
            return {};
        }
        case OpKind::PositionEmbedding: {
            const Shape& shape = b.input().shape;
            if (shape.size() != 3) return unsupported(op, "a position embedding of this shape");
            const Bytes rows = shape[1] * shape[2] * 4;
            const Operand chosen = b.calls.scratch(0, rows);
            if (kernel == 0) b.calls.add(KernelOp::Copy, {at.parameters[0]}, {chosen}, {shape[1] * shape[2]});
            else b.calls.add(KernelOp::AddRows, {at.inputs[0], chosen}, {at.outputs[0]}, {shape[0], shape[1], shape[2]});
            return {};
        }
        case OpKind::Attention: attentionForward(b); return {};
        case OpKind::Rotary:
            if (b.attribute(4) != 0) return unsupported(op, "rotary embedding of fused queries, keys and values");
            if (kernel == 0) rotate(b, false, at.inputs[0], at.outputs[0], false);
            else rotate(b, true, at.inputs[1], at.outputs[1], false);
            return {};
        case OpKind::Convolution:
            if (op.attributes[4] > 1) return unsupported(op, "a grouped convolution");
            if (name == "convolution") convolutionCall(b, KernelOp::Convolution, {at.inputs[0], b.parameter(false)}, at.outputs[0]);
            else b.calls.add(KernelOp::AddBias, {at.outputs[0], b.parameter(true)}, {at.outputs[0]}, {b.output().shape[0], b.output().shape[1], innerOf(b.output().shape)});
            return {};
        case OpKind::BatchNorm: {
            if (name == "count batches") return {};  // nothing that training needs
            const Shape& x = b.input().shape;
            Operand variance = at.state;
            if (variance.kind != Operand::Kind::None) variance = shifted(variance, x[1]);
            b.calls.add(KernelOp::BatchNorm, {at.inputs[0], b.parameter(false), b.parameter(true)}, {at.outputs[0], at.outputs[1], at.state, variance}, {x[0], x[1], innerOf(x)},
                        {kNormEpsilon, kBatchNormMomentum});
            return {};
        }
        case OpKind::MaxPool: poolCall(b, KernelOp::MaxPool, {at.inputs[0]}, {at.outputs[0], at.outputs[1]}); return {};
        case OpKind::AveragePool: poolCall(b, KernelOp::AveragePool, {at.inputs[0]}, {at.outputs[0]}); return {};
        case OpKind::CrossEntropy: {
            if (b.attribute(1) != 0) return unsupported(op, "a fused loss");
            if (name.starts_with("metric")) return unsupported(op, "a metric beside the loss");
            const std::int64_t classes = b.attribute(0), rows = rowsOf(b.input());
            if (name == "log softmax") b.calls.add(KernelOp::LogSoftmax, {at.inputs[0]}, {at.outputs[1]}, {rows, classes});
            else b.calls.add(KernelOp::NllLoss, {at.outputs[1], at.labels}, {at.outputs[0]}, {rows, classes});
            return {};
        }
        default: return unsupported(op, "this op");
    }
}

Result<void> bindBackwardKernel(const LayerType& layer, const Op& op, std::size_t kernel, const OpOperands& at, std::vector<BoundCall>& calls, ScratchSizes& scratch) {
    Bound b{layer, op, at, Calls(calls, scratch)};
    const std::string_view name = op.backward[kernel].name;
    const std::int64_t elements = elementCount(b.output().shape);
    if (name == "gradient add") {
        // The sums stand at the end, one for each input that another op has written to already, in the order of the inputs.
        std::size_t sum = 0;
        for (std::size_t k = 0; k < kernel; ++k) sum += op.backward[k].name == name ? 1 : 0;
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            if (!at.addsToGradient[i]) continue;
            if (sum-- > 0) continue;
            const bool passedOn = op.gradientInPlace;  // nothing was computed: the output's gradient itself is added
            b.calls.add(KernelOp::Axpy, {passedOn ? at.outputGradients[0] : inScratch(kSumScratch)}, {at.inputGradients[i]}, {elementCount(b.input(i).shape)}, {1});
            return {};
        }
        return unsupported(op, "a sum of gradients");
    }
    if (std::count(at.addsToGradient.begin(), at.addsToGradient.end(), true) > 1) return unsupported(op, "an op with two inputs that others read too");
    switch (op.kind) {
        case OpKind::Linear: linearBackward(b, name); return {};
        case OpKind::Norm: normBackward(b, name); return {};
        case OpKind::Gelu: case OpKind::Silu: case OpKind::Relu: case OpKind::Tanh: {
            const Operand saved = b.saved(op.kind == OpKind::Relu || op.kind == OpKind::Tanh ? op.outputs[0] : op.inputs[0]);
            b.calls.add(KernelOp::ActivationGradient, {at.outputGradients[0], saved}, {b.inputGradient(0)}, {elements, static_cast<std::int64_t>(activationOf(op.kind))});
            return {};
        }
        case OpKind::GatedSilu: {
            const ActivationKind kind = b.attribute(1) == 0 ? ActivationKind::Silu : b.attribute(1) == 1 ? ActivationKind::Gelu : ActivationKind::Relu;
            const Operand activated = b.calls.scratch(0, elements * 4);
            if (kernel == 0) b.calls.add(KernelOp::Multiply, {at.outputGradients[0], b.saved(op.inputs[1])}, {activated}, {elements});
            else if (kernel == 1) b.calls.add(KernelOp::Multiply, {at.outputGradients[0], b.saved(op.outputs[1])}, {b.inputGradient(1)}, {elements});
            else b.calls.add(KernelOp::ActivationGradient, {activated, kind == ActivationKind::Relu ? b.saved(op.outputs[1]) : b.saved(op.inputs[0])}, {b.inputGradient(0)}, {elements, static_cast<std::int64_t>(kind)});
            return {};
        }
        case OpKind::Embedding: {
            const std::int64_t tokens = elementCount(b.input().shape);
            if (name == "embedding gradient fill") b.calls.add(KernelOp::Fill, {}, {at.parameterGradients[0]}, {b.attribute(0) * b.attribute(1)}, {0});
            else b.calls.add(KernelOp::EmbeddingGradient, {b.saved(op.inputs[0]), at.outputGradients[0]}, {at.parameterGradients[0]}, {tokens, b.attribute(1), b.attribute(0)});
            return {};
        }
        case OpKind::PositionEmbedding: {
            const Shape& shape = b.input().shape;
            const Operand sums = b.calls.scratch(0, shape[1] * shape[2] * 4);
            if (name == "sum over samples") b.calls.add(KernelOp::SumOverSamples, {at.outputGradients[0]}, {sums}, {shape[0], shape[1], shape[2]});
            else if (name == "embedding gradient fill") b.calls.add(KernelOp::Fill, {}, {at.parameterGradients[0]}, {b.attribute(0) * b.attribute(1)}, {0});
            else b.calls.add(KernelOp::Copy, {sums}, {at.parameterGradients[0]}, {shape[1] * shape[2]});
            return {};
        }
        case OpKind::Attention: attentionBackward(b, name); return {};
        case OpKind::Rotary: {
            // Both results have gradients of their own; the op's outputs come in the order of its inputs.
            const bool keys = kernel == 1;
            rotate(b, keys, at.outputGradients[keys ? 1 : 0], b.inputGradient(keys ? 1 : 0), true);
            return {};
        }
        case OpKind::Convolution:
            if (name == "convolution input gradient") convolutionCall(b, KernelOp::ConvolutionInputGradient, {at.outputGradients[0], b.parameter(false)}, b.inputGradient(0));
            else if (name == "convolution weight gradient") convolutionCall(b, KernelOp::ConvolutionWeightGradient, {b.saved(op.inputs[0]), at.outputGradients[0]}, b.gradient(false));
            else b.calls.add(KernelOp::ChannelSum, {at.outputGradients[0]}, {b.gradient(true)}, {b.output().shape[0], b.output().shape[1], innerOf(b.output().shape)}, {0});
            return {};
        case OpKind::BatchNorm: {
            const Shape& x = b.input().shape;
            b.calls.add(KernelOp::BatchNormGradient, {at.outputGradients[0], b.saved(op.inputs[0]), b.parameter(false), b.saved(op.outputs[1])},
                        {b.inputGradient(0), b.gradient(false), b.gradient(true)}, {x[0], x[1], innerOf(x)});
            return {};
        }
        case OpKind::MaxPool: poolCall(b, KernelOp::MaxPoolGradient, {at.outputGradients[0], b.saved(op.outputs[1])}, {b.inputGradient(0)}); return {};
        case OpKind::AveragePool: poolCall(b, KernelOp::AveragePoolGradient, {at.outputGradients[0]}, {b.inputGradient(0)}); return {};
        case OpKind::CrossEntropy: {
            const std::int64_t classes = b.attribute(0), rows = rowsOf(b.input());
            const Operand logGradient = b.calls.scratch(0, rows * classes * 4);
            if (name == "nll loss gradient") b.calls.add(KernelOp::NllLossGradient, {at.labels}, {logGradient}, {rows, classes}, {at.lossScale});
            else b.calls.add(KernelOp::LogSoftmaxGradient, {logGradient, b.saved(op.outputs[1])}, {b.inputGradient(0)}, {rows, classes});
            return {};
        }
        default: return unsupported(op, "this op's backward");
    }
}

}  // namespace ringside
