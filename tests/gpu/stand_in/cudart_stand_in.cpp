// Stand-in for libcudart (no GPU): memory of the host, streams that do everything at once, events that read a clock.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include "tests/gpu/stand_in/stand_in.h"

struct CUstream_st {
    int number = 0;
    std::atomic<bool> held = false;  // let go by an abort from any thread
};
struct CUevent_st {
    int number = 0;
    CUstream_st* stream = nullptr;
    std::int64_t ns = -1;
};

namespace {

struct State {
    std::mutex mutex;
    std::string log, shown;
    int devices = 1, streams = 0, events = 0;
    std::int64_t memory = std::int64_t{1} << 30, inUse = 0;
    std::map<void*, std::int64_t> blocks;
    std::map<std::string, int> failures;
    std::set<CUstream_st*> living;
    CUstream_st defaultStream;
    dim3 grid, block;
    std::size_t shared = 0;
    cudaStream_t launchStream = nullptr;
    cudaError_t last = cudaSuccess;
};
State& state() {
    static State instance;
    return instance;
}

CUstream_st* streamOf(cudaStream_t stream) { return stream != nullptr ? stream : &state().defaultStream; }

cudaError_t kept(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady) state().last = error;
    return error;
}

/// Logs the call; whether it is to fail.
bool fails(const char* function, const std::string& arguments, cudaError_t* error) {
    standInNote((std::string(function) + (arguments.empty() ? "" : " ") + arguments).c_str());
    int code = 0;
    if (!standInFails(function, &code)) return false;
    *error = kept(static_cast<cudaError_t>(code));
    return true;
}
#define LOGGED(arguments)                                    \
    if (cudaError_t injected; fails(__func__, arguments, &injected)) return injected

std::string streamText(cudaStream_t stream) { return "stream " + std::to_string(streamOf(stream)->number); }
std::string eventText(cudaEvent_t event) { return "event " + std::to_string(event->number); }
bool pending(cudaEvent_t event) { return event->stream != nullptr && state().living.contains(event->stream) && event->stream->held; }

}  // namespace

extern "C" {

const char* standInLog() {
    const std::lock_guard lock(state().mutex);
    state().shown = state().log;
    return state().shown.c_str();
}
void standInClearLog() {
    const std::lock_guard lock(state().mutex);
    state().log.clear();
}
void standInNote(const char* line) {
    const std::lock_guard lock(state().mutex);
    state().log += line;
    state().log += '\n';
}
void standInSetDevices(int count) { state().devices = count; }
void standInSetMemory(std::int64_t bytes) { state().memory = bytes; }
std::int64_t standInMemoryInUse() { return state().inUse; }
void standInFailNext(const char* function, int code) { state().failures[function] = code; }
bool standInFails(const char* function, int* code) {
    const auto found = state().failures.find(function);
    if (found == state().failures.end()) return false;
    *code = found->second;
    state().failures.erase(found);
    return true;
}
void standInHold(void* stream) { streamOf(static_cast<cudaStream_t>(stream))->held = true; }
void standInLetGo(void* stream) { streamOf(static_cast<cudaStream_t>(stream))->held = false; }
int standInStreamNumber(void* stream) { return streamOf(static_cast<cudaStream_t>(stream))->number; }

cudaError_t cudaGetDeviceCount(int* count) {
    LOGGED("");
    if (state().devices < 0) return kept(cudaErrorInsufficientDriver);  // and the count stays as it is
    *count = state().devices;
    return state().devices == 0 ? kept(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    LOGGED("");
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "stand-in (no GPU)");
    properties->totalGlobalMem = static_cast<std::size_t>(state().memory);
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(state().last, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) { return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stand-in"; }
const char* cudaGetErrorName(cudaError_t error) { return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorOfTheStandIn"; }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
    LOGGED(std::to_string(bytes));
    if (static_cast<std::int64_t>(bytes) > state().memory - state().inUse) return kept(cudaErrorMemoryAllocation);
    *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    state().blocks[*memory] = static_cast<std::int64_t>(bytes);
    state().inUse += static_cast<std::int64_t>(bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
    LOGGED("");
    if (memory == nullptr) return cudaSuccess;
    const auto found = state().blocks.find(memory);
    if (found == state().blocks.end()) return kept(cudaErrorInvalidValue);
    state().inUse -= found->second;
    state().blocks.erase(found);
    std::free(memory);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
    LOGGED(std::to_string(bytes) + " " + streamText(stream));
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t toPitch, const void* from, std::size_t fromPitch, std::size_t width, std::size_t height, cudaMemcpyKind, cudaStream_t stream) {
    LOGGED(streamText(stream));
    if (toPitch < width || fromPitch < width) return kept(cudaErrorInvalidPitchValue);
    for (std::size_t row = 0; row < height; ++row) std::memcpy(static_cast<char*>(to) + row * toPitch, static_cast<const char*>(from) + row * fromPitch, width);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
    LOGGED(std::to_string(bytes) + " " + streamText(stream));
    std::memset(memory, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    LOGGED("");
    *stream = new CUstream_st{++state().streams};
    state().living.insert(*stream);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    LOGGED(streamText(stream));
    state().living.erase(stream);
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    LOGGED(streamText(stream));
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    LOGGED(streamText(stream) + " " + eventText(event));
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
    LOGGED("");
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    LOGGED("");
    *event = new CUevent_st{++state().events, nullptr, -1};
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    LOGGED(eventText(event) + " " + streamText(stream));
    event->stream = streamOf(stream);
    event->ns = std::chrono::steady_clock::now().time_since_epoch().count();
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    LOGGED(eventText(event));
    return pending(event) ? kept(cudaErrorLaunchTimeout) : cudaSuccess;  // it would wait for ever
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return pending(event) ? cudaErrorNotReady : cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
    LOGGED(eventText(from) + " " + eventText(to));
    if (from->ns < 0 || to->ns < 0) return kept(cudaErrorInvalidResourceHandle);
    *milliseconds = static_cast<float>(static_cast<double>(to->ns - from->ns) * 1e-6);
    return cudaSuccess;
}

// What nvcc's code calls: kernels are registered when the module is loaded, and launched here to nowhere.

void** __cudaRegisterFatBinary(void*) {
    static void* handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
    return cudaSuccess;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
    state().grid = grid, state().block = block, state().shared = shared, state().launchStream = stream;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
    *grid = state().grid, *block = state().block, *shared = state().shared;
    *static_cast<cudaStream_t*>(stream) = state().launchStream;
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3 grid, dim3 block, void**, std::size_t, cudaStream_t stream) {
    const std::string text = std::to_string(grid.x) + " blocks of " + std::to_string(block.x) + " " + streamText(stream);
    standInNote(("launch " + text).c_str());
    int code = 0;
    return standInFails("cudaLaunchKernel", &code) ? kept(static_cast<cudaError_t>(code)) : cudaSuccess;
}
}
