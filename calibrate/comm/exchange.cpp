#include "calibrate/comm/exchange.h"

namespace ringside {
namespace {

const std::byte* partOf(const void* data, int rank, std::int64_t elements, DType dtype) { return static_cast<const std::byte*>(data) + rank * elements * sizeOf(dtype); }
std::byte* partOf(void* data, int rank, std::int64_t elements, DType dtype) { return static_cast<std::byte*>(data) + rank * elements * sizeOf(dtype); }

Result<void> copyHere(ComputeDevice& device, const StreamContext& stream, const void* from, void* to, std::int64_t elements, DType dtype) {
    if (from == to) return {};
    KernelCall copy;
    copy.op = KernelOp::Copy;
    copy.dtype = dtype;
    copy.in[0] = from;
    copy.out[0] = to;
    copy.dims[0] = elements;
    return device.run(stream, copy);
}

}  // namespace

// In round i ranks a and b meet where a + b = i (mod size). Of two, the lower sends first: nobody waits for one who waits for him.
Result<void> allToAllInRounds(Communicator& comm, ComputeDevice& device, const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype) {
    const int me = comm.rank(), size = comm.size();
    for (int round = 0; round < size; ++round) {
        const int other = (round - me + size) % size;
        const std::byte* out = partOf(input, other, elements, dtype);
        std::byte* in = partOf(output, other, elements, dtype);
        if (other == me) {
            TRY_VOID(copyHere(device, stream, out, in, elements, dtype));
        } else if (me < other) {
            TRY_VOID(comm.send(stream, out, elements, dtype, other));
            TRY_VOID(comm.receive(stream, in, elements, dtype, other));
        } else {
            TRY_VOID(comm.receive(stream, in, elements, dtype, other));
            TRY_VOID(comm.send(stream, out, elements, dtype, other));
        }
    }
    return {};
}

Result<void> gather(Communicator& comm, ComputeDevice& device, const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype, int root) {
    if (comm.rank() != root) return comm.send(stream, input, elements, dtype, root);
    for (int rank = 0; rank < comm.size(); ++rank) {
        std::byte* part = partOf(output, rank, elements, dtype);
        if (rank == root) TRY_VOID(copyHere(device, stream, input, part, elements, dtype));
        else TRY_VOID(comm.receive(stream, part, elements, dtype, rank));
    }
    return {};
}

Result<void> scatter(Communicator& comm, ComputeDevice& device, const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype, int root) {
    if (comm.rank() != root) return comm.receive(stream, output, elements, dtype, root);
    for (int rank = 0; rank < comm.size(); ++rank) {
        const std::byte* part = partOf(input, rank, elements, dtype);
        if (rank == root) TRY_VOID(copyHere(device, stream, part, output, elements, dtype));
        else TRY_VOID(comm.send(stream, part, elements, dtype, rank));
    }
    return {};
}

}  // namespace ringside
