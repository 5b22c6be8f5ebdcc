// ComputeDevice: where kernels run: memory, streams, events and kernels. Two implementations: cpu/ (oneDNN and own loops; a stream is a
// worker thread) and cuda/ (a module that is loaded where it can be). docs/models/devices.md tells how they differ.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/kernel_call.h"
#include "model/base/result.h"
#include "model/base/units.h"

namespace ringside {

using StreamIndex = std::uint32_t;
using EventIndex = std::uint64_t;

/// What runs on a stream sees: the stream's native handle (a cudaStream_t; the CPU device's own otherwise).
struct StreamContext {
    void* native = nullptr;
};
/// Work for a stream. On a CPU it runs on the stream's thread, does the work and returns when that is done. On a GPU it runs at
/// once on the calling thread and only enqueues. Code that calls run() and a Communicator in it is the same for both.
using StreamWork = std::function<Result<void>(const StreamContext&)>;

/// Nanoseconds on a clock common to all streams of the process.
struct WorkTimes {
    std::int64_t beginNs = 0, endNs = 0;
};

struct DeviceInfo {
    std::string kind;         ///< "cpu", "cuda"
    std::string name;         ///< "AMD EPYC 9R14", "NVIDIA H100 80GB HBM3"
    Bytes memoryBytes = 0;
    std::string libraries;    ///< "oneDNN 2.6.3", "CUDA 13.0, cuBLAS …, cuDNN …, NCCL …"
    bool pinned = false;      ///< its threads are bound to the cores that were asked for
};

class ComputeDevice {
public:
    virtual ~ComputeDevice() = default;

    virtual const DeviceInfo& info() const = 0;

    /// Device memory, aligned to 64 bytes; contents undefined. Fails (runtime failure) when there is not enough, naming how much
    /// was asked for, is in use and there is.
    virtual Result<void*> allocate(Bytes bytes) = 0;
    virtual void free(void* memory) = 0;
    virtual Bytes bytesInUse() const = 0;

    virtual Result<StreamIndex> createStream(const std::string& name) = 0;
    /// Runs `work` after everything issued to the stream before and after the events it was told to wait for. `times` (may be
    /// null) is filled when it is done and may be read after synchronize().
    virtual void issue(StreamIndex stream, StreamWork work, WorkTimes* times = nullptr) = 0;
    /// Marks this point of the stream. Events are cheap; they live until the next synchronize().
    virtual EventIndex record(StreamIndex stream) = 0;
    /// What is issued to the stream from here on waits for the event.
    virtual void wait(StreamIndex stream, EventIndex event) = 0;
    /// The calling thread waits for the event.
    virtual Result<void> waitOnHost(EventIndex event) = 0;
    /// Waits for all streams. The first error that work returned since the last call, if any; work after it was skipped.
    virtual Result<void> synchronize() = 0;

    /// One kernel, inside StreamWork. Fails (bad input) on shapes, types or operands that the op does not take, naming them.
    virtual Result<void> run(const StreamContext& stream, const KernelCall& call) = 0;
    /// `bytes` between host memory and device memory, inside StreamWork.
    virtual Result<void> copyIn(const StreamContext& stream, void* device, const void* host, Bytes bytes) = 0;
    virtual Result<void> copyOut(const StreamContext& stream, void* host, const void* device, Bytes bytes) = 0;
};

struct CpuDeviceOptions {
    int threads = 1;        ///< of a kernel
    int firstCore = -1;     ///< pin to cores from here on; −1: do not pin
    Bytes memoryLimit = 0;  ///< allocate() fails beyond it; 0: what the machine has
};
Result<std::unique_ptr<ComputeDevice>> makeCpuDevice(const CpuDeviceOptions& options = {});

/// "oneDNN 2.6.3, own loops with AVX-512": what the CPU device computes with. Starts no thread.
std::string cpuLibraries();

/// Loads ringside-cuda.so from beside the program, from `module`, or from RINGSIDE_CUDA_MODULE. Fails (missing capability) with
/// the reason: no module, no driver, no device.
Result<std::unique_ptr<ComputeDevice>> makeCudaDevice(int ordinal, const std::string& module = {});

}  // namespace ringside
