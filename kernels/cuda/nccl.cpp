#include "kernels/cuda/nccl.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include "kernels/cuda/module_border.h"
#include "kernels/cuda/module_state.h"

struct RingsideCudaComm {
    int ordinal = 0, rank = 0, size = 0;
    std::mutex mutex;            ///< abort comes from any thread
    ncclComm_t comm = nullptr;   ///< null once aborted
    void* token = nullptr;       ///< what a barrier sums
};

namespace ringside::cuda {

static_assert(sizeof(ncclUniqueId) == RINGSIDE_UNIQUE_ID_BYTES);

namespace {

/// Of a communicator that goes on without blocking, "in progress" is no failure.
Result<void> ncclSucceeded(ncclResult_t status, const char* call, ncclComm_t comm) {
    if (status == ncclSuccess || status == ncclInProgress) return {};
    const char* last = ncclGetLastError(comm);
    return failure(ErrorCode::RuntimeFailure, call,
                   fmt::format("{} ({}){}{}", ncclGetErrorString(status), static_cast<int>(status), last != nullptr && *last != 0 ? "; NCCL says: " : "",
                               last != nullptr ? last : ""));
}

Result<ncclDataType_t> elementType(std::uint32_t dtype) {
    switch (static_cast<DType>(dtype)) {
        case DType::Fp64: return ncclFloat64;
        case DType::Fp32: case DType::Tf32: return ncclFloat32;
        case DType::Fp16: return ncclFloat16;
        case DType::Bf16: return ncclBfloat16;
        case DType::Fp8: return ncclFloat8e4m3;
        case DType::Int8: return ncclInt8;
        case DType::Int32: return ncclInt32;
        case DType::Int64: return ncclInt64;
        case DType::Bool: return ncclUint8;
    }
    return badInput("NCCL", fmt::format("there is no type {}", dtype));
}

const char* const kNames[] = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclReduce", "ncclSend", "ncclRecv", "ncclAllReduce"};

Result<void> enqueue(RingsideCudaComm& comm, cudaStream_t stream, const RingsideCollectiveCall& call) {
    if (call.kind > RingsideBarrier) return badInput("NCCL", fmt::format("there is no collective {}", call.kind));
    if (call.elements < 0) return badInput(kNames[call.kind], fmt::format("{} elements", call.elements));
    const bool hasPeer = call.kind >= RingsideBroadcast && call.kind <= RingsideReceive;
    if (hasPeer && (call.peer < 0 || call.peer >= comm.size))
        return badInput(kNames[call.kind], fmt::format("there is no rank {} in a group of {}", call.peer, comm.size));
    TRY(const ncclDataType_t type, elementType(call.dtype));
    const auto count = static_cast<std::size_t>(call.elements);
    const ncclRedOp_t sum = call.average != 0 ? ncclAvg : ncclSum;
    RINGSIDE_CALL(cudaSetDevice, comm.ordinal);
    const std::lock_guard lock(comm.mutex);
    if (comm.comm == nullptr) return failure(ErrorCode::RuntimeFailure, kNames[call.kind], "the communicator was aborted");
    ncclResult_t status = ncclSuccess;
    switch (static_cast<RingsideCollective>(call.kind)) {
        case RingsideAllReduce: status = ncclAllReduce(call.input, call.output, count, type, sum, comm.comm, stream); break;
        case RingsideAllGather: status = ncclAllGather(call.input, call.output, count, type, comm.comm, stream); break;
        case RingsideReduceScatter: status = ncclReduceScatter(call.input, call.output, count, type, sum, comm.comm, stream); break;
        case RingsideBroadcast: status = ncclBroadcast(call.input, call.output, count, type, call.peer, comm.comm, stream); break;
        case RingsideReduce: status = ncclReduce(call.input, call.output, count, type, sum, call.peer, comm.comm, stream); break;
        case RingsideSend: status = ncclSend(call.input, count, type, call.peer, comm.comm, stream); break;
        case RingsideReceive: status = ncclRecv(call.output, count, type, call.peer, comm.comm, stream); break;
        case RingsideBarrier: status = ncclAllReduce(comm.token, comm.token, 1, ncclFloat32, ncclSum, comm.comm, stream); break;
    }
    return ncclSucceeded(status, kNames[call.kind], comm.comm);
}

/// In progress, ready, or what went wrong in the background.
int query(RingsideCudaComm& comm, RingsideText* error) {
    const std::lock_guard lock(comm.mutex);
    if (comm.comm == nullptr) return reported(RingsideFailure, "the communicator was aborted", error);
    ncclResult_t state = ncclSuccess;
    const ncclResult_t status = ncclCommGetAsyncError(comm.comm, &state);
    const Result<void> result = ncclSucceeded(status != ncclSuccess ? status : state, "NCCL", comm.comm);
    if (!result) return reported(codeOf(result.error()), result.error().toString(), error);
    return state == ncclInProgress ? static_cast<int>(RingsideInProgress) : static_cast<int>(RingsideOk);
}

Result<void> abortComm(RingsideCudaComm& comm) {
    const std::lock_guard lock(comm.mutex);
    if (comm.comm == nullptr) return {};
    RINGSIDE_CALL(cudaSetDevice, comm.ordinal);
    const ncclComm_t handle = std::exchange(comm.comm, nullptr);
    return ncclSucceeded(ncclCommAbort(handle), "ncclCommAbort", nullptr);
}

/// Lets what is under way finish; what does not within a while is aborted, since a peer may be gone.
Result<void> destroyComm(RingsideCudaComm* owned) {
    const std::unique_ptr<RingsideCudaComm> comm(owned);
    RINGSIDE_CALL(cudaSetDevice, comm->ordinal);
    Result<void> result;
    if (comm->comm != nullptr) {
        ncclResult_t state = ncclCommFinalize(comm->comm);
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (state == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            if (const ncclResult_t status = ncclCommGetAsyncError(comm->comm, &state); status != ncclSuccess) state = status;
        }
        result = state == ncclSuccess ? ncclSucceeded(ncclCommDestroy(comm->comm), "ncclCommDestroy", nullptr)
                                      : ncclSucceeded(ncclCommAbort(comm->comm), "ncclCommAbort", nullptr);
    }
    const Result<void> freed = succeeded(cudaFree(comm->token), "cudaFree");
    return result ? freed : result;
}

int uniqueId(unsigned char* id, RingsideText* error) {
    return atBorder(error, [&]() -> Result<void> {
        ncclUniqueId made{};
        TRY_VOID(ncclSucceeded(ncclGetUniqueId(&made), "ncclGetUniqueId", nullptr));
        std::memcpy(id, &made, sizeof made);
        return {};
    });
}

int commCreate(RingsideCudaDevice* device, const unsigned char* id, int rank, int size, const char* name, RingsideCudaComm** comm, RingsideText* error) {
    return atBorder(error, [&]() -> Result<void> {
        RINGSIDE_CALL(cudaSetDevice, device->ordinal);
        auto made = std::make_unique<RingsideCudaComm>();
        made->ordinal = device->ordinal, made->rank = rank, made->size = size;
        RINGSIDE_CALL(cudaMalloc, &made->token, sizeof(float));
        ncclUniqueId copied{};
        std::memcpy(&copied, id, sizeof copied);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        config.commName = name;
        const Result<void> started = ncclSucceeded(ncclCommInitRankConfig(&made->comm, size, copied, rank, &config), "ncclCommInitRankConfig", nullptr);
        if (!started) {
            cudaFree(made->token);  // the error that is reported is the first
            return started;
        }
        *comm = made.release();
        return {};
    });
}

int commCollective(RingsideCudaComm* comm, void* stream, const RingsideCollectiveCall* call, RingsideText* error) {
    const int code = atBorder(error, [&] { return enqueue(*comm, static_cast<cudaStream_t>(stream), *call); });
    return code == RingsideOk ? query(*comm, error) : code;
}

int commQuery(RingsideCudaComm* comm, RingsideText* error) { return query(*comm, error); }
int commAbort(RingsideCudaComm* comm, RingsideText* error) { return atBorder(error, [&] { return abortComm(*comm); }); }
int commDestroy(RingsideCudaComm* comm, RingsideText* error) { return atBorder(error, [&] { return destroyComm(comm); }); }

}  // namespace

int ncclVersion() {
    int version = 0;
    return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

void addNccl(RingsideCudaModule& module) {
    module.uniqueId = uniqueId;
    module.commCreate = commCreate;
    module.commQuery = commQuery;
    module.commCollective = commCollective;
    module.commAbort = commAbort;
    module.commDestroy = commDestroy;
}

}  // namespace ringside::cuda
