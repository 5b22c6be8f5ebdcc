// CudaDevice: the ComputeDevice that drives ringside-cuda.so. Work is enqueued on the calling thread; one thread uses it at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/cuda_module.h"
#include "kernels/device.h"

namespace ringside {

class CudaDevice final : public ComputeDevice {
public:
    /// Fails (missing capability) where there is no driver or no such device.
    static Result<std::unique_ptr<CudaDevice>> make(const RingsideCudaModule& module, int ordinal);
    /// Waits for what runs, then frees everything.
    ~CudaDevice() override;
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    const DeviceInfo& info() const override { return info_; }
    Result<void*> allocate(Bytes bytes) override;
    void free(void* memory) override;
    Bytes bytesInUse() const override { return bytesInUse_; }
    Result<StreamIndex> createStream(const std::string& name) override;
    void issue(StreamIndex stream, StreamWork work, WorkTimes* times) override;
    EventIndex record(StreamIndex stream) override;
    void wait(StreamIndex stream, EventIndex event) override;
    Result<void> waitOnHost(EventIndex event) override;
    Result<void> synchronize() override;
    Result<void> run(const StreamContext& stream, const KernelCall& call) override;
    Result<void> copyIn(const StreamContext& stream, void* device, const void* host, Bytes bytes) override;
    Result<void> copyOut(const StreamContext& stream, void* host, const void* device, Bytes bytes) override;

    // For communicators, which share the module and have to be looked after while the host waits.

    const RingsideCudaModule& module() const { return module_; }
    RingsideCudaDevice* handle() const { return handle_; }
    /// Asked again and again while waitOnHost() and synchronize() wait. Once it fails it is not asked again until the next wait;
    /// its error is what synchronize() returns, so it must see to it that what the streams wait for ends.
    using Monitor = std::function<Result<void>()>;
    int addMonitor(Monitor monitor);
    void removeMonitor(int id);

private:
    struct Stream {
        std::string name;
        void* native = nullptr;
    };
    struct Timed {
        void *begin = nullptr, *end = nullptr;
        WorkTimes* times = nullptr;
    };

    CudaDevice(const RingsideCudaModule& module, RingsideCudaDevice* handle) : module_(module), handle_(handle) {}

    Result<void> start();
    Result<void*> takeEvent();
    Result<void*> recordedEvent(void* stream);
    Result<void> anchorClock();
    Result<void> resolveTimes();
    Result<void> waitFor(const std::vector<void*>& events);
    Result<void> timed(const Stream& stream, const StreamWork& work, WorkTimes* times);
    void keep(const Result<void>& result);

    const RingsideCudaModule& module_;
    RingsideCudaDevice* handle_;
    DeviceInfo info_;
    Bytes bytesInUse_ = 0;
    std::unordered_map<void*, Bytes> sizes_;
    std::vector<Stream> streams_;
    std::vector<void*> idleEvents_;
    std::vector<void*> events_;       ///< since the last synchronize(); index 0 is firstEvent_
    EventIndex firstEvent_ = 0;
    std::vector<Timed> timed_;
    std::optional<Error> error_;      ///< the first since the last synchronize()
    std::map<int, Monitor> monitors_;
    int nextMonitor_ = 0;
    void* anchor_ = nullptr;          ///< an event, and when it was on the host's clock
    std::int64_t anchorNs_ = 0;
};

}  // namespace ringside
