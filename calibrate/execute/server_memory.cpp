#include "calibrate/execute/server_memory.h"

#include <algorithm>

#include "calibrate/execute/optimizer_kernels.h"
#include "model/base/check.h"

namespace ringside {
namespace {

/// The initial values of elements [part.first, …) of the key's line.
void initialise(const SyntheticData& data, const RankProgram& program, const std::vector<std::uint32_t>& parameters, const KeyPart& part, float* line) {
    std::int64_t at = 0;
    for (const std::uint32_t p : parameters) {
        const ProgramParameter& parameter = program.parameters[p];
        const std::int64_t begin = std::max(at, part.first), end = std::min(at + parameter.elements, part.first + part.elements);
        if (begin < end) data.initialise(static_cast<std::size_t>(parameter.layer), parameter.index, begin - at, end - begin, line + (begin - part.first));
        at += parameter.elements;
    }
}

bool keepsState(const Optimizer& optimizer) { return optimizer.kind != OptimizerKind::Sgd; }

/// Keys that are only added to (elastic averaging's centre) have one kernel, which adds.
bool hasOptimizer(const Schedule& schedule, const ServerKey& key) { return schedule.kernels[key.firstApply].name != "add"; }

}  // namespace

Result<std::unique_ptr<ServerMemory>> ServerMemory::allocate(const Schedule& schedule, const ServerPlan& plan, std::int64_t server, const TrainingConfig& training, ComputeDevice& device,
                                                             const SyntheticData& data) {
    std::unique_ptr<ServerMemory> memory(new ServerMemory(&device));
    TRY(const bool twoMoments, hasTwoMoments(training.optimizer));
    const auto take = [&](std::int64_t elements) -> Result<float*> {
        TRY(void* const place, device.allocate(std::max<std::int64_t>(elements, 1) * 4));
        memory->owned_.push_back(place);
        std::fill_n(static_cast<float*>(place), elements, 0.0f);
        return static_cast<float*>(place);
    };
    for (std::uint32_t k = 0; k < plan.elements.size(); ++k) {
        const KeyPart part = plan.partOf(k, server);
        ServerKeyMemory& key = memory->keys_.emplace_back();
        key.elements = part.elements;
        TRY(key.line, take(part.elements));
        initialise(data, schedule.programs.front(), plan.parameters[k], part, key.line);
        if (schedule.servers.discipline == ServerDiscipline::Sync) {
            TRY(key.sum, take(part.elements));
        }
        ServerTensor all{0, part.elements, key.line, nullptr, nullptr};
        if (hasOptimizer(schedule, schedule.servers.keys[k]) && keepsState(training.optimizer)) {
            TRY(all.first, take(part.elements));
            if (twoMoments) {
                TRY(all.second, take(part.elements));
            }
        }
        key.tensors.push_back(all);
    }
    return memory;
}

Result<std::unique_ptr<ServerMemory>> ServerMemory::in(const Schedule& schedule, const ServerPlan& plan, const TrainingConfig& training, const RankProgram& program, const TensorStore& store,
                                                       const SyntheticData& data) {
    std::unique_ptr<ServerMemory> memory(new ServerMemory(nullptr));
    TRY(const bool twoMoments, hasTwoMoments(training.optimizer));
    const bool onHost = schedule.servers.placement == ServerPlacement::Host;
    const auto find = [&](BufferRole role, std::int32_t layer, std::int32_t index) -> float* {
        for (BufferId b = 0; b < program.buffers.size(); ++b) {
            const Buffer& buffer = program.buffers[b];
            if (buffer.persistent && buffer.role == role && buffer.layer == layer && buffer.index == index) return static_cast<float*>(store.at(b));
        }
        return nullptr;
    };
    for (std::uint32_t k = 0; k < plan.elements.size(); ++k) {
        ServerKeyMemory& key = memory->keys_.emplace_back();
        key.elements = plan.elements[k];
        key.sum = find(BufferRole::Bucket, -1, static_cast<std::int32_t>(k));
        CHECK(key.sum != nullptr);
        if (onHost) {
            key.line = find(BufferRole::Shard, -1, static_cast<std::int32_t>(k));
            CHECK(key.line != nullptr);
            initialise(data, program, plan.parameters[k], {0, key.elements}, key.line);
        }
        std::int64_t at = 0;
        for (const std::uint32_t p : plan.parameters[k]) {
            const ProgramParameter& parameter = program.parameters[p];
            ServerTensor tensor{at, parameter.elements, onHost ? key.line + at : find(BufferRole::Parameter, parameter.layer, parameter.index), nullptr, nullptr};
            tensor.first = find(BufferRole::OptimizerState, parameter.layer, parameter.index);
            if (twoMoments && tensor.first) tensor.second = tensor.first + parameter.elements;
            key.tensors.push_back(tensor);
            at += parameter.elements;
        }
    }
    return memory;
}

ServerMemory::~ServerMemory() {
    for (void* place : owned_) device_->free(place);
}

}  // namespace ringside
