// The module's table: devices, memory, streams and events. Kernels are in run.cpp, communicators in nccl.cpp.
#include <cmath>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include "kernels/cuda/module_border.h"
#include "kernels/cuda/module_state.h"
#include "kernels/cuda/nccl.h"

namespace ringside::cuda {

Result<void> succeeded(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return {};
    static_cast<void>(cudaGetLastError());  // so that it is not found again by the next call
    return failure(ErrorCode::RuntimeFailure, call, fmt::format("{} ({}, {})", cudaGetErrorString(status), cudaGetErrorName(status), static_cast<int>(status)));
}
Result<void> succeeded(cublasStatus_t status, const char* call) {
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return failure(ErrorCode::RuntimeFailure, call, fmt::format("{} ({})", cublasLtGetStatusName(status), static_cast<int>(status)));
}
Result<void> succeeded(cudnnStatus_t status, const char* call) {
    if (status == CUDNN_STATUS_SUCCESS) return {};
    return failure(ErrorCode::RuntimeFailure, call, fmt::format("{} ({})", cudnnGetErrorString(status), static_cast<int>(status)));
}

Result<void*> scratchFor(RingsideCudaDevice& device, cudaStream_t stream, std::size_t bytes) {
    Scratch& scratch = device.scratch[stream];
    if (scratch.bytes >= bytes) return scratch.memory;
    if (scratch.memory != nullptr) {
        RINGSIDE_CALL(cudaStreamSynchronize, stream);  // kernels may still use the old one
        RINGSIDE_CALL(cudaFree, scratch.memory);
        scratch = {};
    }
    RINGSIDE_CALL(cudaMalloc, &scratch.memory, bytes);
    scratch.bytes = bytes;
    return scratch.memory;
}

namespace {

Result<int> countDevices() {
    int count = 0;  // untouched where there is no driver
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return count;
    static_cast<void>(cudaGetLastError());
    if (status == cudaErrorInsufficientDriver)
        return failure(ErrorCode::MissingCapability, "CUDA", "no NVIDIA driver, or one that is too old for CUDA " + std::to_string(CUDART_VERSION / 1000) + "; install or update it");
    if (status == cudaSuccess || status == cudaErrorNoDevice) return failure(ErrorCode::MissingCapability, "CUDA", "no device found (is CUDA_VISIBLE_DEVICES empty?)");
    return failure(ErrorCode::MissingCapability, "CUDA", fmt::format("{} ({}, {})", cudaGetErrorString(status), cudaGetErrorName(status), static_cast<int>(status)));
}

/// Frees what there is; an error on the way out helps nobody, and the driver frees the rest with the process.
void destroy(RingsideCudaDevice* device) {
    if (device == nullptr) return;
    static_cast<void>(cudaSetDevice(device->ordinal));
    device->matmulPlans.reset();
    device->convolutionPlans.reset();
    for (auto& [stream, scratch] : device->scratch) static_cast<void>(cudaFree(scratch.memory));
    if (device->blas != nullptr) static_cast<void>(cublasLtDestroy(device->blas));
    if (device->dnn != nullptr) static_cast<void>(cudnnDestroy(device->dnn));
    delete device;
}

Result<RingsideCudaDevice*> create(int ordinal) {
    TRY(const int count, countDevices());
    if (ordinal < 0 || ordinal >= count)
        return failure(ErrorCode::MissingCapability, "CUDA", fmt::format("there is no device {}; this machine has {}, numbered from 0", ordinal, count));
    RINGSIDE_CALL(cudaSetDevice, ordinal);
    std::unique_ptr<RingsideCudaDevice, decltype(&destroy)> device(new RingsideCudaDevice, &destroy);
    device->ordinal = ordinal;
    RINGSIDE_CALL(cublasLtCreate, &device->blas);
    RINGSIDE_CALL(cudnnCreate, &device->dnn);
    return device.release();
}

/// 13000 as "13.0", 22809 as "2.28.9" by the library's own way of counting.
std::string dotted(std::size_t version, std::size_t major, std::size_t minor) {
    std::string text = fmt::format("{}.{}", version / major, version % major / minor);
    if (minor > 10 || version % minor != 0) text += fmt::format(".{}", version % minor);
    return text;
}

Result<void> describe(RingsideCudaDevice& device, RingsideDeviceInfo& info) {
    cudaDeviceProp properties{};
    RINGSIDE_CALL(cudaGetDeviceProperties, &properties, device.ordinal);
    int runtime = 0;
    RINGSIDE_CALL(cudaRuntimeGetVersion, &runtime);
    std::snprintf(info.name, sizeof info.name, "%s", properties.name);
    const std::string libraries = fmt::format("CUDA {}, cuBLASLt {}, cuDNN {}, NCCL {}", dotted(static_cast<std::size_t>(runtime), 1000, 10),
                                              dotted(cublasLtGetVersion(), 10000, 100), dotted(cudnnGetVersion(), 10000, 100),
                                              dotted(static_cast<std::size_t>(ncclVersion()), 10000, 100));
    std::snprintf(info.libraries, sizeof info.libraries, "%s", libraries.c_str());
    info.memoryBytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    return {};
}

/// A function of the table that selects the device and runs `body`.
template <class Body>
int on(RingsideCudaDevice* device, RingsideText* error, Body body) {
    return atBorder(error, [&]() -> Result<void> {
        RINGSIDE_CALL(cudaSetDevice, device->ordinal);
        return body();
    });
}

cudaStream_t streamOf(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t eventOf(void* handle) { return static_cast<cudaEvent_t>(handle); }

int deviceCount(int* count, RingsideText* error) {
    return atBorder(error, [&]() -> Result<void> {
        TRY(*count, countDevices());
        return {};
    });
}
int createDevice(int ordinal, RingsideCudaDevice** device, RingsideText* error) {
    return atBorder(error, [&]() -> Result<void> {
        TRY(*device, create(ordinal));
        return {};
    });
}
int deviceInfo(RingsideCudaDevice* device, RingsideDeviceInfo* info, RingsideText* error) {
    return on(device, error, [&] { return describe(*device, *info); });
}
int synchronize(RingsideCudaDevice* device, RingsideText* error) {
    return on(device, error, [] { return succeeded(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); });
}

int allocate(RingsideCudaDevice* device, std::int64_t bytes, void** memory, RingsideText* error) {
    bool full = false;
    const int code = on(device, error, [&]() -> Result<void> {
        void* made = nullptr;
        const cudaError_t status = cudaMalloc(&made, static_cast<std::size_t>(bytes));
        full = status == cudaErrorMemoryAllocation;
        TRY_VOID(succeeded(status, "cudaMalloc"));
        *memory = made;
        return {};
    });
    return full ? static_cast<int>(RingsideOutOfMemory) : code;
}
int release(RingsideCudaDevice* device, void* memory, RingsideText* error) {
    return on(device, error, [&] { return succeeded(cudaFree(memory), "cudaFree"); });
}

int createStream(RingsideCudaDevice* device, const char* name, void** stream, RingsideText* error) {
    return on(device, error, [&]() -> Result<void> {
        cudaStream_t made = nullptr;
        RINGSIDE_CALL(cudaStreamCreateWithFlags, &made, cudaStreamNonBlocking);
        nvtxNameCudaStreamA(made, name);
        *stream = made;
        return {};
    });
}
int destroyStream(RingsideCudaDevice* device, void* stream, RingsideText* error) {
    return on(device, error, [&]() -> Result<void> {
        const std::lock_guard lock(device->mutex);
        if (const auto found = device->scratch.find(streamOf(stream)); found != device->scratch.end()) {
            RINGSIDE_CALL(cudaStreamSynchronize, streamOf(stream));
            RINGSIDE_CALL(cudaFree, found->second.memory);
            device->scratch.erase(found);
        }
        RINGSIDE_CALL(cudaStreamDestroy, streamOf(stream));
        return {};
    });
}

int createEvent(RingsideCudaDevice* device, void** event, RingsideText* error) {
    return on(device, error, [&]() -> Result<void> {
        cudaEvent_t made = nullptr;
        RINGSIDE_CALL(cudaEventCreateWithFlags, &made, cudaEventDefault);
        *event = made;
        return {};
    });
}
int destroyEvent(RingsideCudaDevice* device, void* event, RingsideText* error) {
    return on(device, error, [&] { return succeeded(cudaEventDestroy(eventOf(event)), "cudaEventDestroy"); });
}
int recordEvent(RingsideCudaDevice* device, void* event, void* stream, RingsideText* error) {
    return on(device, error, [&] { return succeeded(cudaEventRecord(eventOf(event), streamOf(stream)), "cudaEventRecord"); });
}
int waitEvent(RingsideCudaDevice* device, void* stream, void* event, RingsideText* error) {
    return on(device, error, [&] { return succeeded(cudaStreamWaitEvent(streamOf(stream), eventOf(event), 0), "cudaStreamWaitEvent"); });
}
int waitEventOnHost(RingsideCudaDevice* device, void* event, RingsideText* error) {
    return on(device, error, [&] { return succeeded(cudaEventSynchronize(eventOf(event)), "cudaEventSynchronize"); });
}
int queryEvent(RingsideCudaDevice* device, void* event, RingsideText* error) {
    bool waiting = false;
    const int code = on(device, error, [&]() -> Result<void> {
        const cudaError_t status = cudaEventQuery(eventOf(event));
        waiting = status == cudaErrorNotReady;
        if (!waiting) return succeeded(status, "cudaEventQuery");
        static_cast<void>(cudaGetLastError());
        return {};
    });
    return waiting ? static_cast<int>(RingsideInProgress) : code;
}
int elapsed(RingsideCudaDevice* device, void* from, void* to, std::int64_t* nanoseconds, RingsideText* error) {
    return on(device, error, [&]() -> Result<void> {
        float milliseconds = 0;
        RINGSIDE_CALL(cudaEventElapsedTime, &milliseconds, eventOf(from), eventOf(to));
        *nanoseconds = std::llround(static_cast<double>(milliseconds) * 1e6);
        return {};
    });
}

int run(RingsideCudaDevice* device, void* stream, const RingsideKernel* kernel, RingsideText* error) {
    nvtxRangePushA(kernel->name);
    const int code = on(device, error, [&] { return runKernel(*device, streamOf(stream), *kernel); });
    nvtxRangePop();
    return code;
}
int copyIn(RingsideCudaDevice* device, void* stream, void* to, const void* from, std::int64_t bytes, RingsideText* error) {
    return on(device, error, [&] {
        return succeeded(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, streamOf(stream)), "cudaMemcpyAsync");
    });
}
int copyOut(RingsideCudaDevice* device, void* stream, void* to, const void* from, std::int64_t bytes, RingsideText* error) {
    return on(device, error, [&] {
        return succeeded(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, streamOf(stream)), "cudaMemcpyAsync");
    });
}
void pushRange(const char* name) { nvtxRangePushA(name); }
void popRange() { nvtxRangePop(); }

RingsideCudaModule makeTable() {
    RingsideCudaModule table{};
    table.version = RINGSIDE_CUDA_ABI_VERSION;
    table.size = sizeof table;
    table.deviceCount = deviceCount;
    table.createDevice = createDevice;
    table.destroyDevice = destroy;
    table.deviceInfo = deviceInfo;
    table.synchronize = synchronize;
    table.allocate = allocate;
    table.release = release;
    table.createStream = createStream;
    table.destroyStream = destroyStream;
    table.createEvent = createEvent;
    table.destroyEvent = destroyEvent;
    table.recordEvent = recordEvent;
    table.waitEvent = waitEvent;
    table.waitEventOnHost = waitEventOnHost;
    table.queryEvent = queryEvent;
    table.elapsed = elapsed;
    table.run = run;
    table.copyIn = copyIn;
    table.copyOut = copyOut;
    table.pushRange = pushRange;
    table.popRange = popRange;
    addNccl(table);
    return table;
}

}  // namespace

}  // namespace ringside::cuda

extern "C" __attribute__((visibility("default"))) const RingsideCudaModule* ringsideCudaModule() {
    static const RingsideCudaModule table = ringside::cuda::makeTable();
    return &table;
}
