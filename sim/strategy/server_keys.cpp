#include "sim/strategy/server_keys.h"

#include "model/cost/optimizer_work.h"

namespace ringside {
namespace {

KernelWork addKernel(Bytes bytes) {
    KernelWork add;
    add.cls = KernelClass::Memory;
    add.bytes = 3 * static_cast<double>(bytes);  // read both, write one
    add.name = "add";
    return add;
}

std::uint32_t addTo(std::vector<KernelWork>& kernels, const KernelWork& work) {
    kernels.push_back(work);
    return static_cast<std::uint32_t>(kernels.size() - 1);
}

}  // namespace

void addServerKey(StepWriter& step, const ParameterKey& key, Bytes gradientBytes) {
    Schedule& schedule = step.schedule();
    const TrainingConfig& training = step.input().training;
    ServerKey server;
    server.sumBytes = addKernel(gradientBytes).bytes;
    server.sumKernel = addTo(schedule.kernels, addKernel(gradientBytes));
    std::vector<std::int64_t> elements;
    for (const std::uint32_t p : key.parameters) elements.push_back(step.parameters()[p].elements);
    server.firstApply = static_cast<std::uint32_t>(schedule.kernels.size());
    for (const KernelWork& work : optimizerStep(training.optimizer, training.precision, elements)) addTo(schedule.kernels, work);
    server.applyKernels = static_cast<std::uint32_t>(schedule.kernels.size()) - server.firstApply;
    Optimizer fused = training.optimizer;
    fused.implementation = OptimizerImplementation::Fused;
    for (const KernelWork& work : optimizerStep(fused, training.precision, elements)) server.applyBytes += work.bytes;
    schedule.servers.keys.push_back(server);
}

void addServerSum(StepWriter& step, Bytes bytes) {
    Schedule& schedule = step.schedule();
    ServerKey server;
    server.sumBytes = server.applyBytes = addKernel(bytes).bytes;
    server.sumKernel = server.firstApply = addTo(schedule.kernels, addKernel(bytes));
    server.applyKernels = 1;
    schedule.servers.keys.push_back(server);
}

}  // namespace ringside
