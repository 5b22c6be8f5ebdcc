// OneDnn: the engine and the primitives made so far; making one takes far longer than running it, and a step repeats its shapes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <dnnl.hpp>

#include "kernels/cpu/scratch.h"

namespace ringside {

/// A tensor of a primitive: dense and row-major as the caller has it, and in the layout that the primitive wants.
struct OneDnnOperand {
    int argument = 0;  ///< DNNL_ARG_SRC, …
    dnnl::memory::desc plain, wanted;
    std::optional<dnnl::reorder> toWanted, toPlain;  ///< where the two differ
};

/// A primitive with two inputs and one output, and the reorders around it. Immutable: threads share it, each with its own scratch.
struct OneDnnPlan {
    dnnl::primitive primitive;
    dnnl::memory::desc scratchpad;
    std::array<OneDnnOperand, 3> operands;  ///< first input, second input, output
    std::optional<dnnl::memory::desc> bias;
};

class OneDnn {
public:
    using Key = std::array<std::int64_t, 12>;

    const dnnl::engine& engine() const { return engine_; }
    /// True where bf16 products are faster than those of fp32: with AVX-512 BF16 or AMX. Without, oneDNN emulates them.
    bool hasNativeBf16() const { return nativeBf16_; }

    /// The plan of the key, made by `make` the first time. Throws dnnl::error what `make` throws.
    template <class Make>
    const OneDnnPlan& plan(const Key& key, const Make& make) {
        const std::lock_guard lock(mutex_);
        std::unique_ptr<OneDnnPlan>& plan = plans_[key];
        if (!plan) plan = std::make_unique<OneDnnPlan>(make());
        return *plan;
    }
    /// Fills in the reorders of an operand whose descriptions are set.
    void addReorders(OneDnnOperand& operand, bool isOutput) const;
    void run(const OneDnnPlan& plan, const void* a, const void* b, const void* bias, void* output, dnnl::stream& stream, Scratch& scratch) const;

    static std::string version();

private:
    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    bool nativeBf16_ = detectNativeBf16();
    std::mutex mutex_;
    std::map<Key, std::unique_ptr<OneDnnPlan>> plans_;

    static bool detectNativeBf16();
};

}  // namespace ringside
