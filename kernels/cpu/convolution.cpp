// Convolutions: oneDNN chooses its own layouts; the reorders from and to row-major NCHW are part of the call.
#include <algorithm>

#include <fmt/format.h>

#include "kernels/cpu/bf16_staging.h"
#include "kernels/cpu/cpu_kernels.h"

namespace ringside::cpu {

namespace {

using dnnl::memory;

struct Shape {
    explicit Shape(const KernelCall& call)
        : n(call.dims[0]), ci(call.dims[1]), h(call.dims[2]), w(call.dims[3]), co(call.dims[4]), kh(call.dims[5]), kw(call.dims[6]), stride(call.dims[7]), padding(call.dims[8]),
          oh((h + 2 * padding - kh) / stride + 1), ow((w + 2 * padding - kw) / stride + 1) {}
    std::int64_t inputs() const { return n * ci * h * w; }
    std::int64_t weights() const { return co * ci * kh * kw; }
    std::int64_t outputs() const { return n * co * oh * ow; }

    std::int64_t n, ci, h, w, co, kh, kw, stride, padding, oh, ow;
};

Result<void> checkShape(const KernelCall& call, const Shape& s) {
    if (s.kh > s.h + 2 * s.padding || s.kw > s.w + 2 * s.padding)
        return badCall(call, fmt::format("the filter is {}×{}; the padded input is {}×{}", s.kh, s.kw, s.h + 2 * s.padding, s.w + 2 * s.padding));
    return {};
}

struct Descriptions {
    Descriptions(const Shape& s, memory::data_type type, memory::format_tag data, memory::format_tag filter)
        : x({s.n, s.ci, s.h, s.w}, type, data), w({s.co, s.ci, s.kh, s.kw}, type, filter), y({s.n, s.co, s.oh, s.ow}, type, data) {}
    memory::desc x, w, y;
};

OneDnnPlan makePlan(const OneDnn& oneDnn, KernelOp op, const Shape& s, memory::data_type type) {
    const Descriptions any(s, type, memory::format_tag::any, memory::format_tag::any), plain(s, type, memory::format_tag::nchw, memory::format_tag::oihw);
    const memory::dims strides = {s.stride, s.stride};
    // The far side is padded by what the last window needs; more would add an output.
    const memory::dims near = {s.padding, s.padding}, far = {(s.oh - 1) * s.stride + s.kh - s.h - s.padding, (s.ow - 1) * s.stride + s.kw - s.w - s.padding};
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc forward({dnnl::prop_kind::forward_training, kDirect, any.x, any.w, any.y, strides, near, far}, attributes, oneDnn.engine());
    OneDnnPlan plan;
    if (op == KernelOp::Convolution) {
        plan.primitive = dnnl::convolution_forward(forward);
        plan.scratchpad = forward.scratchpad_desc();
        plan.operands = {OneDnnOperand{DNNL_ARG_SRC, plain.x, forward.src_desc(), {}, {}}, OneDnnOperand{DNNL_ARG_WEIGHTS, plain.w, forward.weights_desc(), {}, {}},
                         OneDnnOperand{DNNL_ARG_DST, plain.y, forward.dst_desc(), {}, {}}};
    } else if (op == KernelOp::ConvolutionInputGradient) {
        const dnnl::convolution_backward_data::primitive_desc backward({kDirect, any.x, any.w, any.y, strides, near, far}, attributes, oneDnn.engine(), forward);
        plan.primitive = dnnl::convolution_backward_data(backward);
        plan.scratchpad = backward.scratchpad_desc();
        plan.operands = {OneDnnOperand{DNNL_ARG_DIFF_DST, plain.y, backward.diff_dst_desc(), {}, {}}, OneDnnOperand{DNNL_ARG_WEIGHTS, plain.w, backward.weights_desc(), {}, {}},
                         OneDnnOperand{DNNL_ARG_DIFF_SRC, plain.x, backward.diff_src_desc(), {}, {}}};
    } else {
        const dnnl::convolution_backward_weights::primitive_desc backward({kDirect, any.x, any.w, any.y, strides, near, far}, attributes, oneDnn.engine(), forward);
        plan.primitive = dnnl::convolution_backward_weights(backward);
        plan.scratchpad = backward.scratchpad_desc();
        plan.operands = {OneDnnOperand{DNNL_ARG_SRC, plain.x, backward.src_desc(), {}, {}}, OneDnnOperand{DNNL_ARG_DIFF_DST, plain.y, backward.diff_dst_desc(), {}, {}},
                         OneDnnOperand{DNNL_ARG_DIFF_WEIGHTS, plain.w, backward.diff_weights_desc(), {}, {}}};
    }
    for (int i = 0; i < 3; ++i) oneDnn.addReorders(plan.operands[static_cast<std::size_t>(i)], i == 2);
    return plan;
}

void runPlan(KernelThread& thread, const KernelCall& call, const Shape& s, DType type, const void* a, const void* b, void* out) {
    OneDnn& oneDnn = thread.shared.oneDnn;
    const OneDnn::Key key = {1 + static_cast<std::int64_t>(call.op), static_cast<std::int64_t>(type), s.n, s.ci, s.h, s.w, s.co, s.kh, s.kw, s.stride, s.padding, thread.team.threads()};
    const OneDnnPlan& plan =
        oneDnn.plan(key, [&] { return makePlan(oneDnn, call.op, s, type == DType::Bf16 ? memory::data_type::bf16 : memory::data_type::f32); });
    oneDnn.run(plan, a, b, nullptr, out, thread.oneDnnStream, thread.scratch());
}

/// Elements of the call's two inputs and its output.
struct Sizes {
    std::int64_t a, b, out;
};

Result<void> run(KernelThread& thread, const KernelCall& call, const Shape& s, const Sizes& sizes, float beta) {
    if (call.dtype == DType::Bf16 && thread.shared.oneDnn.hasNativeBf16() && beta == 0.0F) {
        runPlan(thread, call, s, DType::Bf16, call.in[0], call.in[1], call.out[0]);
        return {};
    }
    if (call.dtype == DType::Fp32 && beta == 0.0F) {
        runPlan(thread, call, s, DType::Fp32, call.in[0], call.in[1], call.out[0]);
        return {};
    }
    // Through fp32 copies, for bf16 that would be emulated and for results that are added to what stands there. Slots 0 to 3 of the
    // scratch memory are the primitive's, so the copies share slot 4.
    const bool bf16 = call.dtype == DType::Bf16;
    float* copies = thread.scratch().get<float>(4, 2 * sizes.out + (bf16 ? sizes.a + sizes.b : 0));
    float *result = copies, *old = copies + sizes.out, *a = old + sizes.out, *b = a + sizes.a;
    if (bf16) {
        thread.loops.fromBf16(input<std::uint16_t>(call, 0), a, sizes.a);
        thread.loops.fromBf16(input<std::uint16_t>(call, 1), b, sizes.b);
        if (beta != 0.0F) thread.loops.fromBf16(output<std::uint16_t>(call, 0), old, sizes.out);
    }
    runPlan(thread, call, s, DType::Fp32, bf16 ? a : call.in[0], bf16 ? b : call.in[1], result);
    if (beta != 0.0F) thread.loops.axpy(bf16 ? old : output<float>(call, 0), result, sizes.out, beta);
    if (bf16) storeStaged(thread, result, call.out[0], sizes.out);
    else std::copy(result, result + sizes.out, output<float>(call, 0));
    return {};
}

}  // namespace

Result<void> convolution(KernelThread& thread, const KernelCall& call) {
    const Shape s(call);
    TRY_VOID(checkShape(call, s));
    if (s.n == 0) return {};
    return run(thread, call, s, {s.inputs(), s.weights(), s.outputs()}, 0.0F);
}

Result<void> convolutionInputGradient(KernelThread& thread, const KernelCall& call) {
    const Shape s(call);
    TRY_VOID(checkShape(call, s));
    if (s.n == 0) return {};
    return run(thread, call, s, {s.outputs(), s.weights(), s.inputs()}, 0.0F);
}

Result<void> convolutionWeightGradient(KernelThread& thread, const KernelCall& call) {
    const Shape s(call);
    TRY_VOID(checkShape(call, s));
    const float beta = scalar(call, 0);
    if (s.n == 0) {
        if (call.out[0] == nullptr) return badCall(call, "operand dw is missing");
        KernelCall rest = call;  // a sum over no samples
        rest.op = beta == 0.0F ? KernelOp::Fill : KernelOp::Scale;
        rest.in[0] = call.out[0];
        rest.dims = {s.weights()};
        rest.scalars = {static_cast<double>(beta)};
        return beta == 0.0F ? fill(thread, rest) : scale(thread, rest);
    }
    return run(thread, call, s, {s.inputs(), s.outputs(), s.weights()}, beta);
}

}  // namespace ringside::cpu
