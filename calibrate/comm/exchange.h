// Collectives that are made of sends and receives: all-to-all, gather and scatter, over any Communicator.
//
// They stand inside StreamWork, as the Communicator's own. `device` copies what stays on this rank.
#pragma once

#include <cstdint>

#include "calibrate/comm/communicator.h"
#include "kernels/device.h"

namespace ringside {

/// As Communicator::allToAll, for one whose sends and receives come one after another: in each round every rank exchanges with one other.
Result<void> allToAllInRounds(Communicator& comm, ComputeDevice& device, const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype);
/// `elements` of every rank; the root's `output` takes them in rank order. The others' may be null.
Result<void> gather(Communicator& comm, ComputeDevice& device, const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype, int root);
/// The root's `input` holds `elements` for every rank; each one's part goes to its `output`, which at the root may be in its place.
Result<void> scatter(Communicator& comm, ComputeDevice& device, const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype, int root);

}  // namespace ringside
