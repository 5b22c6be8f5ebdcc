#include "calibrate/execute/synthetic_data.h"

#include <cmath>
#include <cstring>

#include "model/base/random.h"

namespace ringside {
namespace {

constexpr std::uint64_t kInputs = 1, kLabels = 2, kPatterns = 3, kParameters = 16;

/// The number of classes of the loss.
std::int64_t classesOf(const Workload& workload) {
    const LayerType& head = workload.types[static_cast<std::size_t>(workload.layers.back().type)];
    for (const Op& op : head.ops)
        if (op.kind == OpKind::CrossEntropy) return op.attributes[0];
    return 1;
}

std::int64_t labelsPerSample(const Workload& workload) { return workload.tokensPerSample > 0 ? workload.tokensPerSample : 1; }

}  // namespace

std::vector<std::byte> SyntheticData::batch(std::int64_t firstSample) const {
    const Value& input = workload_.typeOf(0).values[0];
    const std::int64_t samples = workload_.samples, perSample = elementCount(input.shape) / samples, classes = classesOf(whole_);
    std::vector<std::byte> out(static_cast<std::size_t>(workload_.inputBytes));
    auto* labels = reinterpret_cast<std::int64_t*>(out.data() + input.bytes());
    const CounterRandom values(seed_, kInputs), choices(seed_, kLabels), patterns(seed_, kPatterns);
    for (std::int64_t i = 0; i < samples; ++i) {
        const auto sample = static_cast<std::uint64_t>(firstSample + i);
        if (input.dtype == DType::Int64) {
            // Each token follows from the one before it, but for one in eight, which is any.
            auto* tokens = reinterpret_cast<std::int64_t*>(out.data()) + i * perSample;
            std::int64_t token = static_cast<std::int64_t>(choices.bits(sample) % static_cast<std::uint64_t>(classes));
            for (std::int64_t t = 0; t < perSample; ++t) {
                tokens[t] = token;
                const std::uint64_t draw = values.bits(sample * 0x10000 + static_cast<std::uint64_t>(t));
                token = draw % 8 == 0 ? static_cast<std::int64_t>((draw >> 8) % static_cast<std::uint64_t>(classes)) : (token * 5 + 3) % classes;
                labels[i * perSample + t] = token;
            }
            continue;
        }
        const std::int64_t label = static_cast<std::int64_t>(choices.bits(sample) % static_cast<std::uint64_t>(classes));
        for (std::int64_t l = 0; l < labelsPerSample(workload_); ++l) labels[i * labelsPerSample(workload_) + l] = label;
        auto* x = reinterpret_cast<float*>(out.data()) + i * perSample;
        for (std::int64_t j = 0; j < perSample; ++j) {
            const auto place = static_cast<std::uint64_t>(j);
            const double pattern = patterns.uniform(static_cast<std::uint64_t>(label) * 0x100000 + place) - 0.5;
            x[j] = static_cast<float>(2 * pattern + values.uniform(sample * 0x1000000 + place) - 0.5);
        }
    }
    return out;
}

void SyntheticData::initialise(std::size_t layer, int parameter, std::int64_t first, std::int64_t count, float* out) const {
    const Parameter& p = workload_.typeOf(layer).parameters[static_cast<std::size_t>(parameter)];
    if (p.shape.size() <= 1) {
        const float value = p.name.ends_with("weight") ? 1.0f : 0.0f;
        std::fill(out, out + count, value);
        return;
    }
    const double fanIn = static_cast<double>(p.elements()) / static_cast<double>(p.shape[0]);
    const double reach = 1 / std::sqrt(fanIn);
    const CounterRandom random(seed_, kParameters + layer * 0x1000 + static_cast<std::uint64_t>(parameter));
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(reach * (2 * random.uniform(static_cast<std::uint64_t>(first + i)) - 1));
}

}  // namespace ringside
