#include "model/workload/compiled.h"

#include <algorithm>

namespace ringside {

void fuseElementwise(LayerType& layer) {
    const auto bytesOf = [&](int value) { return static_cast<double>(layer.values[static_cast<std::size_t>(value)].bytes()); };
    for (std::size_t o = 0; o < layer.ops.size(); ++o) {
        Op& op = layer.ops[o];
        for (KernelWork& kernel : op.backward)
            if (kernel.name == "gradient add") kernel.bytes /= 3;
        const bool oneKernel = op.kind == OpKind::Norm && op.attributes[3] == 0;
        if (!oneKernel) continue;
        std::erase_if(op.backward, [](const KernelWork& kernel) { return kernel.name == "norm weight gradient"; });
        if (o > 0 && layer.ops[o - 1].kind == OpKind::Add && layer.ops[o - 1].outputs.front() == op.inputs.front()) op.forward.back().bytes -= bytesOf(op.inputs.front());
    }
}

}  // namespace ringside
