// ServerMemory: where a parameter server keeps each key: the sum of the pushes, the parameters, and the optimizer's state.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "calibrate/execute/server_plan.h"
#include "calibrate/execute/synthetic_data.h"
#include "calibrate/execute/tensor_store.h"
#include "kernels/device.h"
#include "model/training/training_config.h"

namespace ringside {

/// Elements that are updated together; state is null where the optimizer has none.
struct ServerTensor {
    std::int64_t at = 0, elements = 0;  ///< in the key's line
    float *parameter = nullptr, *first = nullptr, *second = nullptr;
};

struct ServerKeyMemory {
    std::int64_t elements = 0;
    float* sum = nullptr;   ///< null where every push is applied by itself
    float* line = nullptr;  ///< the parameters in one line; null where they lie in several tensors
    std::vector<ServerTensor> tensors;
};

class ServerMemory {
public:
    /// A dedicated server's part of every key, in memory of its own.
    static Result<std::unique_ptr<ServerMemory>> allocate(const Schedule& schedule, const ServerPlan& plan, std::int64_t server, const TrainingConfig& training, ComputeDevice& device,
                                                          const SyntheticData& data);
    /// The server on rank 0's device or in its host's memory: the buffers that rank 0's program declares for it. Borrows them.
    static Result<std::unique_ptr<ServerMemory>> in(const Schedule& schedule, const ServerPlan& plan, const TrainingConfig& training, const RankProgram& program, const TensorStore& store,
                                                    const SyntheticData& data);
    ~ServerMemory();

    const ServerKeyMemory& key(std::uint32_t k) const { return keys_[k]; }

private:
    explicit ServerMemory(ComputeDevice* device) : device_(device) {}

    ComputeDevice* device_;       // of what it owns
    std::vector<void*> owned_;
    std::vector<ServerKeyMemory> keys_;
};

}  // namespace ringside
