#include "model/cost/optimizer_work.h"

#include <algorithm>
#include <array>

namespace ringside {
namespace {

/// One elementwise kernel over tensors: bytes read and written per element, and how many tensor lists it takes (which bounds
/// how many tensors fit in one launch).
struct Pass {
    std::string_view name;
    double bytesPerElement;
    int lists;
};

// ATen/native/cuda/MultiTensorApply.cuh with 32 KiB kernel arguments (CUDA 12.1 and later): a block per 65536 elements, at
// most 2240 blocks and this many tensors per launch, by number of tensor lists.
constexpr std::int64_t kChunk = 65536;
constexpr std::int64_t kMaxBlocks = 2240;
constexpr std::array<std::int64_t, 5> kMaxTensors{770, 448, 336, 252, 210};

KernelWork memoryKernel(std::string_view name, double bytes) {
    KernelWork work;
    work.cls = KernelClass::Memory;
    work.bytes = bytes;
    work.name = name;
    return work;
}

/// As multi_tensor_apply cuts: a launch ends when its blocks or its tensors are full; a tensor may span launches.
void appendForeach(std::vector<KernelWork>& out, const Pass& pass, std::span<const std::int64_t> tensors) {
    const std::int64_t maxTensors = kMaxTensors[static_cast<std::size_t>(pass.lists - 1)];
    std::int64_t blocks = 0, held = 0;
    double elements = 0;
    const auto flush = [&] {
        if (blocks > 0) out.push_back(memoryKernel(pass.name, elements * pass.bytesPerElement));
        blocks = held = 0;
        elements = 0;
    };
    for (const std::int64_t size : tensors) {
        std::int64_t left = size;
        if (left > 0) ++held;
        while (left > 0) {
            const std::int64_t room = (kMaxBlocks - blocks) * kChunk;
            const std::int64_t taken = std::min(left, room);
            blocks += (taken + kChunk - 1) / kChunk;
            elements += static_cast<double>(taken);
            left -= taken;
            if (blocks == kMaxBlocks || (held == maxTensors && left == 0)) {
                flush();
                if (left > 0) held = 1;
            }
        }
    }
    flush();
}

void appendForLoop(std::vector<KernelWork>& out, std::span<const Pass> passes, std::span<const std::int64_t> tensors) {
    for (const std::int64_t size : tensors) {
        if (size <= 0) continue;
        for (const Pass& pass : passes) out.push_back(memoryKernel(pass.name, static_cast<double>(size) * pass.bytesPerElement));
    }
}

/// Bytes per element of what the update touches.
struct Widths {
    double parameter, gradient, state;
};

/// torch.optim.adamw._multi_tensor_adamw (not capturable, no amsgrad); Adam without its optional weight decay.
std::vector<Pass> adamPasses(const Widths& w, bool weightDecay) {
    std::vector<Pass> passes;
    if (weightDecay) passes.push_back({"adam.decay", 2 * w.parameter, 1});
    passes.push_back({"adam.lerp_m", 2 * w.state + w.gradient, 2});
    passes.push_back({"adam.mul_v", 2 * w.state, 1});
    passes.push_back({"adam.addcmul_v", 2 * w.state + w.gradient, 3});
    passes.push_back({"adam.sqrt_v", 2 * w.state, 2});
    passes.push_back({"adam.div", 2 * w.state, 1});
    passes.push_back({"adam.add_eps", 2 * w.state, 1});
    passes.push_back({"adam.addcdiv_p", 2 * w.parameter + 2 * w.state, 3});
    return passes;
}

/// torch.optim.sgd._multi_tensor_sgd.
std::vector<Pass> sgdPasses(const Widths& w, bool momentum) {
    if (!momentum) return {{"sgd.add_p", 2 * w.parameter + w.gradient, 2}};
    return {{"sgd.mul_buffer", 2 * w.state, 1}, {"sgd.add_buffer", 2 * w.state + w.gradient, 2}, {"sgd.add_p", 2 * w.parameter + w.state, 2}};
}

/// torch.optim._adafactor, matrices: row and column statistics are small and folded into the passes that make them.
std::vector<Pass> adafactorPasses(const Widths& w) {
    return {{"adafactor.norm_p", w.parameter, 1},
            {"adafactor.decay", 2 * w.parameter, 1},
            {"adafactor.row_norm", w.gradient, 1},
            {"adafactor.column_norm", w.gradient, 1},
            {"adafactor.outer", w.gradient, 1},
            {"adafactor.div", 2 * w.gradient, 1},
            {"adafactor.clamp", 2 * w.gradient, 1},
            {"adafactor.rsqrt", 2 * w.gradient, 1},
            {"adafactor.mul_g", 3 * w.gradient, 2},
            {"adafactor.norm_update", w.gradient, 1},
            {"adafactor.add_p", 2 * w.parameter + w.gradient, 2}};
}

/// Everything read once and written once in one kernel.
Pass fusedPass(OptimizerKind kind, const Widths& w) {
    switch (kind) {
        case OptimizerKind::Sgd: return {"sgd.fused", 2 * w.parameter + w.gradient, 2};
        case OptimizerKind::Momentum: return {"sgd.fused", 2 * w.parameter + w.gradient + 2 * w.state, 3};
        case OptimizerKind::Adam:
        case OptimizerKind::AdamW:
        case OptimizerKind::Adafactor:
        case OptimizerKind::Adam8bit: break;
    }
    return {"adam.fused", 2 * w.parameter + w.gradient + 4 * w.state, 4};
}

}  // namespace

std::vector<KernelWork> optimizerStep(const Optimizer& optimizer, const Precision& precision, std::span<const std::int64_t> tensors) {
    std::vector<KernelWork> out;
    const auto width = [](DType type) { return static_cast<double>(sizeOf(type)); };
    const double stored = width(precision.parameter);
    Widths w{stored, width(precision.gradient), stored};
    if (precision.masterWeights) {
        if (w.gradient < 4) appendForeach(out, {"master.cast_gradient", w.gradient + 4, 2}, tensors);
        w = {4, 4, 4};
    }

    if (optimizer.kind == OptimizerKind::Adam8bit) {
        // bitsandbytes: one kernel per tensor, two moments of one byte with an fp32 scale per 256 elements.
        const double moments = 2 * (1 + 4.0 / 256);
        const std::array pass{Pass{"adam8bit", 2 * w.parameter + w.gradient + 2 * moments, 4}};
        appendForLoop(out, pass, tensors);
    } else if (optimizer.implementation == OptimizerImplementation::Fused && optimizer.kind != OptimizerKind::Adafactor) {
        // The fused kernels read the step count from the device, so it is counted up there.
        appendForeach(out, fusedPass(optimizer.kind, w), tensors);
        const bool counts = optimizer.kind == OptimizerKind::Adam || optimizer.kind == OptimizerKind::AdamW;
        if (counts && !out.empty()) out.push_back(memoryKernel("adam.count_steps", 8.0 * static_cast<double>(tensors.size())));
    } else {
        std::vector<Pass> passes;
        switch (optimizer.kind) {
            case OptimizerKind::Sgd: passes = sgdPasses(w, false); break;
            case OptimizerKind::Momentum: passes = sgdPasses(w, true); break;
            case OptimizerKind::Adam: passes = adamPasses(w, false); break;
            case OptimizerKind::AdamW: passes = adamPasses(w, true); break;
            case OptimizerKind::Adafactor: passes = adafactorPasses(w); break;
            case OptimizerKind::Adam8bit: break;
        }
        if (optimizer.implementation == OptimizerImplementation::ForLoop)
            appendForLoop(out, passes, tensors);
        else
            for (const Pass& pass : passes) appendForeach(out, pass, tensors);
    }
    if (precision.masterWeights) appendForeach(out, {"master.cast_parameter", 4 + stored, 2}, tensors);
    return out;
}

std::vector<KernelWork> gradientClipping(const Precision& precision, std::span<const std::int64_t> tensors) {
    std::vector<KernelWork> out;
    const double gradient = static_cast<double>(sizeOf(precision.gradient));
    appendForeach(out, {"clip.norm", gradient, 1}, tensors);
    if (out.empty()) return out;
    // Per-tensor norms: gathered, stacked, their norm; then add, reciprocal, multiply and clamp of one number.
    const double norms = 4.0 * static_cast<double>(tensors.size());
    for (const std::string_view name : {"clip.gather", "clip.stack", "clip.total_norm"}) out.push_back(memoryKernel(name, 2 * norms));
    for (const std::string_view name : {"clip.add", "clip.reciprocal", "clip.mul", "clip.clamp"}) out.push_back(memoryKernel(name, 8));
    appendForeach(out, {"clip.scale", 2 * gradient, 1}, tensors);
    return out;
}

std::vector<KernelWork> gradientUnscaling(const Precision& precision, std::span<const std::int64_t> tensors) {
    std::vector<KernelWork> out;
    if (precision.lossScaling) appendForeach(out, {"scaler.unscale", 2.0 * static_cast<double>(sizeOf(precision.gradient)), 1}, tensors);
    return out;
}

}  // namespace ringside
