// Communicator: collectives among a group of ranks, one interface over Gloo (CPU) and NCCL (GPU).
//
// Calls stand inside StreamWork (kernels/device.h): with Gloo they block until this rank's part is done; with NCCL they enqueue
// on the stream's native handle. All ranks of the group call the same operations in the same order.
// Counts: `elements` is what this rank passes to or gets from one peer, as each comment says; sums are over ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/device.h"
#include "model/base/dtype.h"
#include "model/base/result.h"

namespace ringside {

enum class Reduction : std::uint8_t { Sum, Average };

class Communicator {
public:
    virtual ~Communicator() = default;

    virtual int rank() const = 0;  ///< in the group
    virtual int size() const = 0;

    /// In place, `elements` in all.
    virtual Result<void> allReduce(const StreamContext& stream, void* data, std::int64_t elements, DType dtype, Reduction reduction) = 0;
    /// `elements` of every rank; `output` holds size() × elements, in rank order. `input` may be this rank's place in it.
    virtual Result<void> allGather(const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype) = 0;
    /// `input` holds size() × elements; this rank's part of the sum goes to `output`, which may be that part of `input`.
    virtual Result<void> reduceScatter(const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype, Reduction reduction) = 0;
    virtual Result<void> broadcast(const StreamContext& stream, void* data, std::int64_t elements, DType dtype, int root) = 0;
    /// The sum ends up in the root's `data`; the others' is left undefined.
    virtual Result<void> reduce(const StreamContext& stream, void* data, std::int64_t elements, DType dtype, int root, Reduction reduction) = 0;
    /// `input` holds `elements` for every rank, `output` takes as many from each, in rank order; they do not overlap.
    virtual Result<void> allToAll(const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype) = 0;
    virtual Result<void> send(const StreamContext& stream, const void* data, std::int64_t elements, DType dtype, int to) = 0;
    virtual Result<void> receive(const StreamContext& stream, void* data, std::int64_t elements, DType dtype, int from) = 0;
    virtual Result<void> barrier(const StreamContext& stream) = 0;
    /// Ends what is under way with an error, from any thread; the communicator is of no use after it.
    virtual void abort() = 0;
};

/// How ranks find each other and make groups.
class CommWorld {
public:
    virtual ~CommWorld() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// A communicator among `ranks` (ascending, this one in it). Every one of them calls this with the same name and ranks;
    /// names are unique. Fails (runtime failure) when they have not all come within the time-out, naming who is missing.
    virtual Result<std::unique_ptr<Communicator>> createGroup(const std::string& name, std::span<const int> ranks) = 0;
};

}  // namespace ringside
