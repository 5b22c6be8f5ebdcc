// Stand-in for libnccl (no GPU, no network): one process stands for all ranks, as if each passed what this one passes. fp32 only.
#include <cstring>
#include <string>

#include <nccl.h>

#include "tests/gpu/stand_in/stand_in.h"

struct ncclComm {
    int rank = 0, size = 0;
    int busy = 0;  ///< queries that still answer "in progress"
    bool broken = false;
    void* held = nullptr;
    bool holds = false;
};

namespace {

int g_mode = StandInNcclWorks;

ncclResult_t called(const char* function, ncclComm_t comm, std::size_t count, ncclDataType_t type, cudaStream_t stream, int average = 0) {
    standInNote((std::string(function) + " " + std::to_string(count) + (average != 0 ? " average" : "") + " type " + std::to_string(static_cast<int>(type)) + " rank " +
                 std::to_string(comm->rank) + " of " + std::to_string(comm->size) + " stream " + std::to_string(standInStreamNumber(stream)))
                    .c_str());
    int code = 0;
    if (standInFails(function, &code)) return static_cast<ncclResult_t>(code);
    if (g_mode == StandInNcclNeverFinishes || g_mode == StandInNcclFailsLater) {
        standInHold(stream);
        comm->held = stream, comm->holds = true;
        comm->broken = g_mode == StandInNcclFailsLater;
        return ncclSuccess;
    }
    if (g_mode == StandInNcclSlowToTake) comm->busy = 3;
    return comm->busy > 0 ? ncclInProgress : ncclSuccess;
}

/// to = factor · from: the sum over ranks that all pass the same, or its mean.
void scaled(const void* from, void* to, std::size_t count, float factor) {
    for (std::size_t i = 0; i < count; ++i) static_cast<float*>(to)[i] = factor * static_cast<const float*>(from)[i];
}
float factorOf(ncclRedOp_t op, ncclComm_t comm) { return op == ncclAvg ? 1.0F : static_cast<float>(comm->size); }

}  // namespace

extern "C" {

void standInSetNccl(int mode) { g_mode = mode; }

ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    int code = 0;
    if (standInFails("ncclGetUniqueId", &code)) return static_cast<ncclResult_t>(code);
    std::memset(id, 7, sizeof *id);
    return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
    standInNote(("ncclCommInitRankConfig rank " + std::to_string(rank) + " of " + std::to_string(size) + " blocking " + std::to_string(config->blocking)).c_str());
    if (id.internal[0] != 7) return ncclInvalidArgument;
    *comm = new ncclComm{rank, size};
    (*comm)->busy = 2;
    return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
    if (comm->broken) *state = ncclRemoteError;
    else if (g_mode == StandInNcclNeverConnects || comm->busy > 0) *state = ncclInProgress;
    else *state = ncclSuccess;
    if (comm->busy > 0) --comm->busy;
    return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) {
    standInNote("ncclCommFinalize");
    return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    standInNote("ncclCommDestroy");
    delete comm;
    return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    standInNote("ncclCommAbort");
    if (comm->holds) standInLetGo(comm->held);
    delete comm;
    return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "an error of the stand-in"; }
const char* ncclGetLastError(ncclComm_t) { return "a peer of the stand-in is gone"; }

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    const ncclResult_t result = called("ncclAllReduce", comm, count, type, stream, op == ncclAvg);
    scaled(from, to, count, factorOf(op, comm));
    return result;
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
    const ncclResult_t result = called("ncclAllGather", comm, count, type, stream);
    for (int rank = 0; rank < comm->size; ++rank) std::memmove(static_cast<float*>(to) + static_cast<std::size_t>(rank) * count, from, count * 4);
    return result;
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    const ncclResult_t result = called("ncclReduceScatter", comm, count, type, stream, op == ncclAvg);
    scaled(static_cast<const float*>(from) + static_cast<std::size_t>(comm->rank) * count, to, count, factorOf(op, comm));
    return result;
}
ncclResult_t ncclBroadcast(const void*, void*, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
    standInNote(("root " + std::to_string(root)).c_str());
    return called("ncclBroadcast", comm, count, type, stream);
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    standInNote(("root " + std::to_string(root)).c_str());
    const ncclResult_t result = called("ncclReduce", comm, count, type, stream, op == ncclAvg);
    if (root == comm->rank) scaled(from, to, count, factorOf(op, comm));
    return result;
}
ncclResult_t ncclSend(const void*, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    standInNote(("peer " + std::to_string(peer)).c_str());
    return called("ncclSend", comm, count, type, stream);
}
ncclResult_t ncclRecv(void*, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    standInNote(("peer " + std::to_string(peer)).c_str());
    return called("ncclRecv", comm, count, type, stream);
}
}
