// Collective args: what an event says about the collective that it is, in Kineto's words or by its kernel's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/trace.h"

namespace ringside {

/// From the members of `args` ("Collective name", "In msg nelems", …). `groupName`, if given, becomes the process group's name, by
/// which distributedInfo knows it. Bytes as nccl-tests counts: the output of an all-gather, the input of the rest. Empty without
/// a "Collective name".
std::optional<CollectiveDetails> collectiveFromArgs(std::string_view args, std::string* groupName = nullptr);

/// From "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)" or "ncclKernel_AllReduce_RING_LL_Sum_float(…)": operation, type, algorithm,
/// protocol; nothing about sizes. NCCL builds only some kernels, so that algorithm and protocol are a hint.
CollectiveDetails collectiveFromKernelName(std::string_view name);

/// From a Gloo range's "Input Dims" and "Input type": an all-gather's input is one rank's part, so that it is times `groupSize`.
CollectiveDetails collectiveFromGlooRange(std::string_view name, std::string_view args, std::int64_t groupSize);

}  // namespace ringside
