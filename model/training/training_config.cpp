#include "model/training/training_config.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "model/base/check.h"
#include "model/base/names.h"

namespace ringside {
namespace {

/// Lower case with '-' for '_', ' ' and '.', so that "BF16_AMP", "bf16-amp" and "bf16 amp" are one spelling.
std::string canonical(std::string_view name) {
    std::string out;
    for (const char c : name) {
        const bool separator = c == '_' || c == ' ' || c == '.';
        out += separator ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out;
}

struct Alias {
    std::string_view spelling, name;
};

/// How other tools spell the same thing: llm-foundry "amp_bf16", Lightning "bf16-mixed" and "bf16-true", HF Trainer "bf16"
/// (which is autocast there, but the pure type here: the plain name of a type means that type throughout).
constexpr std::array kPrecisionAliases{
    Alias{"float32", "fp32"}, Alias{"float", "fp32"}, Alias{"single", "fp32"}, Alias{"32", "fp32"}, Alias{"32-true", "fp32"}, Alias{"amp-fp32", "fp32"},
    Alias{"tensorfloat32", "tf32"}, Alias{"tensorfloat-32", "tf32"}, Alias{"fp32-tf32", "tf32"},
    Alias{"fp16", "fp16-autocast"}, Alias{"float16", "fp16-autocast"}, Alias{"half", "fp16-autocast"}, Alias{"amp", "fp16-autocast"},
    Alias{"amp-fp16", "fp16-autocast"}, Alias{"fp16-amp", "fp16-autocast"}, Alias{"fp16-mixed", "fp16-autocast"}, Alias{"16-mixed", "fp16-autocast"},
    Alias{"amp-bf16", "bf16-autocast"}, Alias{"bf16-amp", "bf16-autocast"}, Alias{"bf16-mixed", "bf16-autocast"},
    Alias{"bfloat16-mixed", "bf16-autocast"}, Alias{"mixed-bf16", "bf16-autocast"},
    Alias{"bf16-pure", "bf16"}, Alias{"pure-bf16", "bf16"}, Alias{"bf16-true", "bf16"}, Alias{"bfloat16", "bf16"},
    Alias{"bf16-fp32-master", "bf16-master"}, Alias{"bf16-mixed-master", "bf16-master"}, Alias{"bf16-master-weights", "bf16-master"},
    Alias{"bf16-megatron", "bf16-master"}, Alias{"fp16-fp32-master", "fp16-master"}, Alias{"fp16-megatron", "fp16-master"}, Alias{"fp16-o2", "fp16-master"},
    Alias{"mxfp8", "fp8"}, Alias{"fp8-mx", "fp8"}, Alias{"fp8-hybrid", "fp8"}, Alias{"bf16-fp8", "fp8"},
};

std::vector<Precision> precisions() {
    using enum DType;
    //       name             parameter gradient math  activation autocast master scaling
    return {{"fp32",          Fp32,     Fp32,    Fp32, Fp32,      false,   false, false},
            {"tf32",          Fp32,     Fp32,    Tf32, Fp32,      false,   false, false},
            {"fp16-autocast", Fp32,     Fp32,    Fp16, Fp16,      true,    false, true},
            {"bf16-autocast", Fp32,     Fp32,    Bf16, Bf16,      true,    false, false},
            {"bf16",          Bf16,     Bf16,    Bf16, Bf16,      false,   false, false},
            {"fp16-pure",     Fp16,     Fp16,    Fp16, Fp16,      false,   false, false},
            {"bf16-master",   Bf16,     Fp32,    Bf16, Bf16,      false,   true,  false},
            {"fp16-master",   Fp16,     Fp32,    Fp16, Fp16,      false,   true,  true},
            {"fp8",           Bf16,     Fp32,    Fp8,  Bf16,      false,   true,  false}};
}

struct OptimizerName {
    OptimizerKind kind;
    std::string_view name;
};
constexpr std::array kOptimizers{
    OptimizerName{OptimizerKind::Sgd, "sgd"},     OptimizerName{OptimizerKind::Momentum, "momentum"},
    OptimizerName{OptimizerKind::Adam, "adam"},   OptimizerName{OptimizerKind::AdamW, "adamw"},
    OptimizerName{OptimizerKind::Adafactor, "adafactor"}, OptimizerName{OptimizerKind::Adam8bit, "adam-8bit"},
};
constexpr std::array kOptimizerAliases{
    Alias{"sgd-momentum", "momentum"}, Alias{"sgdm", "momentum"}, Alias{"adam-w", "adamw"}, Alias{"adam8bit", "adam-8bit"}, Alias{"adamw8bit", "adam-8bit"},
    Alias{"adamw-8bit", "adam-8bit"}, Alias{"8bit-adam", "adam-8bit"}, Alias{"adam8", "adam-8bit"},
};

struct ImplementationSuffix {
    std::string_view suffix;
    OptimizerImplementation implementation;
};
constexpr std::array kSuffixes{
    ImplementationSuffix{"-fused", OptimizerImplementation::Fused},      ImplementationSuffix{"-foreach", OptimizerImplementation::Foreach},
    ImplementationSuffix{"-for-loop", OptimizerImplementation::ForLoop}, ImplementationSuffix{"-forloop", OptimizerImplementation::ForLoop},
};

template <std::size_t N>
std::string_view resolveAlias(std::string_view spelling, const std::array<Alias, N>& aliases) {
    for (const Alias& alias : aliases)
        if (alias.spelling == spelling) return alias.name;
    return spelling;
}

std::string_view kindName(OptimizerKind kind) {
    for (const OptimizerName& entry : kOptimizers)
        if (entry.kind == kind) return entry.name;
    CHECK(false && "every kind has a name");
    return {};
}

}  // namespace

Result<Precision> precisionByName(std::string_view name) {
    const std::string spelling = canonical(name);
    const std::string_view wanted = resolveAlias(spelling, kPrecisionAliases);
    for (Precision& precision : precisions())
        if (precision.name == wanted) return std::move(precision);
    return badInput({}, unknownName("precision", name, precisionNames()));
}

std::vector<std::string> precisionNames() {
    std::vector<std::string> names;
    for (Precision& precision : precisions()) names.push_back(std::move(precision.name));
    return names;
}

Result<Optimizer> optimizerByName(std::string_view name) {
    std::string spelling = canonical(name);
    Optimizer optimizer;
    for (const ImplementationSuffix& entry : kSuffixes) {
        if (!spelling.ends_with(entry.suffix)) continue;
        optimizer.implementation = entry.implementation;
        spelling.resize(spelling.size() - entry.suffix.size());
        break;
    }
    const std::string_view wanted = resolveAlias(spelling, kOptimizerAliases);
    for (const OptimizerName& entry : kOptimizers) {
        if (entry.name != wanted) continue;
        optimizer.kind = entry.kind;
        return optimizer;
    }
    return badInput({}, unknownName("optimizer", name, optimizerNames(), "known: sgd, momentum, adam, adamw, adafactor, adam-8bit, each also with "
                                                                         "-fused, -foreach or -for-loop"));
}

std::string nameOf(const Optimizer& optimizer) {
    std::string name(kindName(optimizer.kind));
    if (optimizer.implementation == OptimizerImplementation::Fused) name += "-fused";
    if (optimizer.implementation == OptimizerImplementation::ForLoop) name += "-for-loop";
    return name;  // foreach is the default and stays unsaid
}

std::vector<std::string> optimizerNames() {
    std::vector<std::string> names;
    for (const std::string_view suffix : {"", "-fused", "-for-loop"})
        for (const OptimizerName& entry : kOptimizers) names.push_back(std::string(entry.name) + std::string(suffix));
    return names;
}

Result<Recompute> recomputeByName(std::string_view name) {
    const std::string spelling = canonical(name);
    if (spelling == "none" || spelling == "off" || spelling == "no") return Recompute::None;
    if (spelling == "selective") return Recompute::Selective;
    if (spelling == "selective-op" || spelling == "op") return Recompute::Operators;
    if (spelling == "full" || spelling == "on" || spelling == "block") return Recompute::Full;
    return badInput({}, unknownName("recompute mode", name, recomputeNames()));
}

namespace {

constexpr std::array kRecomputes{Recompute::None, Recompute::Selective, Recompute::Operators, Recompute::Full};
constexpr std::array kRecomputeModules{RecomputeModule::CoreAttention, RecomputeModule::ExpertActivation, RecomputeModule::LayerNorm, RecomputeModule::LatentUp,
                                       RecomputeModule::Mlp, RecomputeModule::Experts, RecomputeModule::SharedExperts};
constexpr std::array kAttentionKernels{AttentionKernel::Flash, AttentionKernel::Flash1, AttentionKernel::Flash3, AttentionKernel::Flash4, AttentionKernel::FusedSoftmax, AttentionKernel::Math};
constexpr std::array kFrameworks{Framework::PyTorch, Framework::HuggingFace, Framework::TransformerEngine, Framework::Profiled};
constexpr std::array kMemoryFormats{MemoryFormat::Contiguous, MemoryFormat::ChannelsLast};
constexpr std::array kLossKernels{LossKernel::Eager, LossKernel::Fused, LossKernel::FusedInPlace, LossKernel::FusedLinear};
constexpr std::array kGatedKernels{GatedKernel::Eager, GatedKernel::Fused, GatedKernel::FusedInPlace};
constexpr std::array kNormKernels{NormKernel::Fused, NormKernel::Eager};

template <class Word, std::size_t N>
std::vector<std::string> namesOf(const std::array<Word, N>& words) {
    std::vector<std::string> names;
    for (const Word word : words) names.emplace_back(nameOf(word));
    return names;
}

template <class Kernel, std::size_t N>
Result<Kernel> kernelByName(const char* what, std::string_view name, const std::array<Kernel, N>& kernels) {
    const std::string spelling = canonical(name);
    for (const Kernel kernel : kernels)
        if (spelling == nameOf(kernel)) return kernel;
    return badInput({}, unknownName(what, name, namesOf(kernels)));
}

}  // namespace

Result<RecomputeModule> recomputeModuleByName(std::string_view name) {
    for (const RecomputeModule module : kRecomputeModules)
        if (canonical(name) == canonical(nameOf(module))) return module;
    return badInput({}, unknownName("module", name, recomputeModuleNames()));
}

Result<LossKernel> lossKernelByName(std::string_view name) { return kernelByName("loss", name, kLossKernels); }
Result<GatedKernel> gatedKernelByName(std::string_view name) { return kernelByName("gated activation", name, kGatedKernels); }

std::vector<std::string> recomputeNames() { return namesOf(kRecomputes); }
std::vector<std::string> recomputeModuleNames() { return namesOf(kRecomputeModules); }
std::vector<std::string> attentionKernelNames() { return namesOf(kAttentionKernels); }
std::vector<std::string> frameworkNames() { return namesOf(kFrameworks); }
std::vector<std::string> lossKernelNames() { return namesOf(kLossKernels); }
std::vector<std::string> gatedKernelNames() { return namesOf(kGatedKernels); }
std::vector<std::string> normKernelNames() { return namesOf(kNormKernels); }
std::vector<std::string> memoryFormatNames() { return namesOf(kMemoryFormats); }
Result<NormKernel> normKernelByName(std::string_view name) { return kernelByName("RMS norm", name, kNormKernels); }

std::string_view nameOf(NormKernel kernel) { return kernel == NormKernel::Eager ? "eager" : "fused"; }

std::string_view nameOf(GatedKernel kernel) {
    switch (kernel) {
        case GatedKernel::Eager: return "eager";
        case GatedKernel::Fused: return "fused";
        case GatedKernel::FusedInPlace: return "fused-in-place";
    }
    return "?";
}

std::string_view nameOf(LossKernel kernel) {
    switch (kernel) {
        case LossKernel::Eager: return "eager";
        case LossKernel::Fused: return "fused";
        case LossKernel::FusedInPlace: return "fused-in-place";
        case LossKernel::FusedLinear: return "fused-linear";
    }
    return "?";
}

std::string_view nameOf(Recompute recompute) {
    switch (recompute) {
        case Recompute::None: return "none";
        case Recompute::Selective: return "selective";
        case Recompute::Operators: return "selective-op";
        case Recompute::Full: return "full";
    }
    return "?";
}

std::string_view nameOf(RecomputeModule module) {
    switch (module) {
        case RecomputeModule::CoreAttention: return "core_attn";
        case RecomputeModule::ExpertActivation: return "moe_act";
        case RecomputeModule::LayerNorm: return "layernorm";
        case RecomputeModule::LatentUp: return "mla_up_proj";
        case RecomputeModule::Mlp: return "mlp";
        case RecomputeModule::Experts: return "moe";
        case RecomputeModule::SharedExperts: return "shared_experts";
    }
    return "?";
}

bool TrainingConfig::recomputes(RecomputeModule module) const {
    return recompute == Recompute::Selective && std::find(recomputeModules.begin(), recomputeModules.end(), module) != recomputeModules.end();
}

Result<AttentionKernel> attentionKernelByName(std::string_view name) {
    const std::string spelling = canonical(name);
    if (spelling == "flash" || spelling == "sdpa" || spelling == "flash-attention" || spelling == "fused") return AttentionKernel::Flash;
    if (spelling == "flash1" || spelling == "triton") return AttentionKernel::Flash1;
    if (spelling == "flash3" || spelling == "cudnn") return AttentionKernel::Flash3;
    if (spelling == "flash4") return AttentionKernel::Flash4;
    if (spelling == "fused-softmax" || spelling == "megatron") return AttentionKernel::FusedSoftmax;
    if (spelling == "math" || spelling == "eager" || spelling == "unfused" || spelling == "torch") return AttentionKernel::Math;
    return badInput({}, unknownName("attention kernel", name, attentionKernelNames()));
}

Result<MemoryFormat> memoryFormatByName(std::string_view name) {
    const std::string spelling = canonical(name);
    if (spelling == "contiguous" || spelling == "nchw" || spelling == "channels-first") return MemoryFormat::Contiguous;
    if (spelling == "channels-last" || spelling == "nhwc") return MemoryFormat::ChannelsLast;
    return badInput({}, unknownName("memory format", name, memoryFormatNames()));
}

std::string_view nameOf(MemoryFormat format) {
    switch (format) {
        case MemoryFormat::Contiguous: return "contiguous";
        case MemoryFormat::ChannelsLast: return "channels_last";
    }
    return "?";
}

std::string_view nameOf(AttentionKernel kernel) {
    switch (kernel) {
        case AttentionKernel::Flash: return "flash";
        case AttentionKernel::Flash1: return "flash1";
        case AttentionKernel::Flash3: return "flash3";
        case AttentionKernel::Flash4: return "flash4";
        case AttentionKernel::FusedSoftmax: return "fused-softmax";
        case AttentionKernel::Math: return "math";
    }
    return "?";
}

Result<Framework> frameworkByName(std::string_view name) {
    const std::string spelling = canonical(name);
    if (spelling == "pytorch" || spelling == "torch") return Framework::PyTorch;
    if (spelling == "huggingface" || spelling == "hugging-face" || spelling == "transformers") return Framework::HuggingFace;
    if (spelling == "transformer-engine") return Framework::TransformerEngine;
    if (spelling == "profiled") return Framework::Profiled;
    return badInput({}, unknownName("framework", name, frameworkNames()));
}

std::string_view nameOf(Framework framework) {
    switch (framework) {
        case Framework::PyTorch: return "pytorch";
        case Framework::HuggingFace: return "huggingface";
        case Framework::TransformerEngine: return "transformer-engine";
        case Framework::Profiled: return "profiled";
    }
    return "?";
}

}  // namespace ringside
