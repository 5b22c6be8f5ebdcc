// The CPU device: streams are worker threads, an event is a stream and a ticket, memory is the host's.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/device_memory.h"
#include "kernels/cpu/openmp_threads.h"
#include "kernels/cpu/stream_worker.h"
#include "kernels/device.h"
#include "model/base/check.h"

namespace ringside {

namespace {

// An event needs no memory: the stream in the upper bits, the ticket in the lower.
constexpr int kTicketBits = 48;
constexpr std::size_t kMaxStreams = std::size_t{1} << 15;

std::string processorName() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
    return "CPU";
}

Bytes physicalMemory() { return static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(sysconf(_SC_PAGESIZE)); }

/// Restricts the calling thread, and those that it starts, to the cores; false where the host does not allow it.
bool pinTo(int firstCore, int count) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int core = firstCore; core < firstCore + count; ++core)
        if (core < CPU_SETSIZE) CPU_SET(core, &cores);
    return sched_setaffinity(0, sizeof cores, &cores) == 0;
}

int coresOfThisThread() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

class CpuDevice final : public ComputeDevice {
public:
    explicit CpuDevice(const CpuDeviceOptions& options)
        : options_(options), memory_(options.memoryLimit > 0 ? options.memoryLimit : physicalMemory()), hostThread_(shared_, options.threads) {
        info_.kind = "cpu";
        info_.name = processorName();
        info_.memoryBytes = options.memoryLimit > 0 ? options.memoryLimit : physicalMemory();
        info_.libraries = cpuLibraries();
        info_.pinned = options.firstCore >= 0 && canPin();
        const int cores = info_.pinned ? options.threads : coresOfThisThread();
        spin_ = cores > 1;
    }

    ~CpuDevice() override {
        // Workers may wait for one another: all are done before the first one goes.
        for (const auto& stream : streams_) stream->worker->await(stream->worker->lastTicket());
    }

    const DeviceInfo& info() const override { return info_; }

    Result<void*> allocate(Bytes bytes) override { return memory_.allocate(bytes); }
    void free(void* memory) override { memory_.free(memory); }
    Bytes bytesInUse() const override { return memory_.inUse(); }

    Result<StreamIndex> createStream(const std::string& name) override {
        const std::unique_lock lock(streamsMutex_);
        if (streams_.size() >= kMaxStreams) return badInput("stream " + name, fmt::format("there are {} streams already", streams_.size()));
        auto stream = std::make_unique<Stream>();
        Stream* made = stream.get();
        const auto start = [this, made]() -> void* {
            if (info_.pinned) pinTo(options_.firstCore, options_.threads);
            setOpenMpThreads(options_.threads);
            made->kernels = std::make_unique<KernelThread>(shared_, options_.threads);
            return made->kernels.get();
        };
        stream->worker = std::make_unique<StreamWorker>(StreamWorker::Options{name, spin_, start}, failure_);
        streams_.push_back(std::move(stream));
        return static_cast<StreamIndex>(streams_.size() - 1);
    }

    void issue(StreamIndex stream, StreamWork work, WorkTimes* times) override { worker(stream).issue(std::move(work), times); }

    EventIndex record(StreamIndex stream) override { return (static_cast<EventIndex>(stream) << kTicketBits) | worker(stream).lastTicket(); }

    void wait(StreamIndex stream, EventIndex event) override { worker(stream).waitFor(worker(streamOf(event)), ticketOf(event)); }

    Result<void> waitOnHost(EventIndex event) override {
        worker(streamOf(event)).await(ticketOf(event));
        if (!failure_.failed()) return {};
        return tl::unexpected<Error>(*failure_.first());
    }

    Result<void> synchronize() override {
        for (StreamIndex i = 0; i < streamCount(); ++i) worker(i).await(worker(i).lastTicket());
        if (std::optional<Error> error = failure_.take()) return tl::unexpected<Error>(std::move(*error));
        return {};
    }

    Result<void> run(const StreamContext& stream, const KernelCall& call) override {
        if (stream.native != nullptr) return runKernel(*static_cast<KernelThread*>(stream.native), call);
        // Not on a stream of ours: one caller at a time.
        const std::lock_guard lock(hostMutex_);
        setOpenMpThreads(options_.threads);
        return runKernel(hostThread_, call);
    }

    Result<void> copyIn(const StreamContext&, void* device, const void* host, Bytes bytes) override { return copyBytes("copy in", device, host, bytes); }
    Result<void> copyOut(const StreamContext&, void* host, const void* device, Bytes bytes) override { return copyBytes("copy out", host, device, bytes); }

private:
    struct Stream {
        std::unique_ptr<KernelThread> kernels;  // made and used by the worker; goes after it
        std::unique_ptr<StreamWorker> worker;
    };

    static Result<void> copyBytes(const char* what, void* to, const void* from, Bytes bytes) {
        if (bytes < 0) return badInput(what, fmt::format("{} bytes; expected at least 0", bytes));
        if (bytes == 0) return {};
        if (to == nullptr || from == nullptr) return badInput(what, "there is no memory to copy");
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
        return {};
    }

    static StreamIndex streamOf(EventIndex event) { return static_cast<StreamIndex>(event >> kTicketBits); }
    static std::uint64_t ticketOf(EventIndex event) { return event & ((std::uint64_t{1} << kTicketBits) - 1); }

    StreamWorker& worker(StreamIndex stream) {
        const std::lock_guard lock(streamsMutex_);
        CHECK(stream < streams_.size());
        return *streams_[stream]->worker;
    }
    StreamIndex streamCount() {
        const std::lock_guard lock(streamsMutex_);
        return static_cast<StreamIndex>(streams_.size());
    }

    /// Tried on a thread of its own, so that the caller's stays where it may run.
    bool canPin() const {
        bool pinned = false;
        std::thread([&] { pinned = pinTo(options_.firstCore, options_.threads); }).join();
        return pinned;
    }

    const CpuDeviceOptions options_;
    DeviceInfo info_;
    bool spin_ = false;
    DeviceMemory memory_;
    SharedKernelState shared_;
    std::mutex hostMutex_;
    KernelThread hostThread_;
    StreamFailure failure_;
    std::mutex streamsMutex_;
    std::vector<std::unique_ptr<Stream>> streams_;  // last: they use all of the above
};

}  // namespace

std::string cpuLibraries() { return fmt::format("{}, own loops with {}", OneDnn::version(), vectorLoops().instructions); }

Result<std::unique_ptr<ComputeDevice>> makeCpuDevice(const CpuDeviceOptions& options) {
    if (options.threads < 1) return badInput("CPU device", fmt::format("threads is {}; expected at least 1", options.threads));
    if (options.memoryLimit < 0) return badInput("CPU device", fmt::format("the memory limit is {} bytes; expected at least 0", options.memoryLimit));
    try {
        return std::unique_ptr<ComputeDevice>(std::make_unique<CpuDevice>(options));
    } catch (const dnnl::error& error) {
        return failure(ErrorCode::RuntimeFailure, "CPU device", fmt::format("oneDNN does not start: {}", error.what()));
    }
}

}  // namespace ringside
