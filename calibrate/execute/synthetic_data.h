// SyntheticData: what the executor trains on, made up but learnable, and the parameters it starts from. Both are pure functions
// of the seed: every rank makes its own part, and any split of a batch over ranks is the same batch.
#pragma once

#include <cstdint>
#include <vector>

#include "model/workload/workload.h"

namespace ringside {

class SyntheticData {
public:
    /// Borrows both workloads: the part of the model at hand, and the one whose loss tells the classes.
    SyntheticData(const Workload& workload, const Workload& whole, std::uint64_t seed) : workload_(workload), whole_(whole), seed_(seed) {}

    /// Samples [first, first + workload.samples) as they are copied to the device: inputs, then labels (int64). Images and vectors
    /// are a pattern per class with noise; tokens follow each other by a rule with some noise.
    std::vector<std::byte> batch(std::int64_t firstSample) const;
    /// Elements [first, first + count) of a parameter's initial value: norms 1, biases 0, others uniform by their fan-in.
    void initialise(std::size_t layer, int parameter, std::int64_t first, std::int64_t count, float* out) const;

private:
    const Workload& workload_;
    const Workload& whole_;
    std::uint64_t seed_;
};

}  // namespace ringside
