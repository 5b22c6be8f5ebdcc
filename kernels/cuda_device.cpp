#include "kernels/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "kernels/kernel_signature.h"
#include "model/base/check.h"

namespace ringside {

namespace {

std::int64_t hostNs() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr std::int64_t kSecondNs = 1'000'000'000;
/// CUDA gives times between events as fp32 milliseconds, so a far anchor costs digits: one second is good to 60 ns.
constexpr std::int64_t kAnchorAgeNs = kSecondNs;
/// How long streams may take to end after a monitor has seen to it that they do.
constexpr std::int64_t kDrainNs = 30 * kSecondNs;

}  // namespace

Result<std::unique_ptr<ComputeDevice>> makeCudaDevice(int ordinal, const std::string& module) {
    TRY(const RingsideCudaModule* opened, openCudaModule(module));
    TRY(std::unique_ptr<CudaDevice> device, CudaDevice::make(*opened, ordinal));
    return device;
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::make(const RingsideCudaModule& module, int ordinal) {
    RingsideText text{};
    RingsideCudaDevice* handle = nullptr;
    TRY_VOID(fromModule(module.createDevice(ordinal, &handle, &text), text));
    std::unique_ptr<CudaDevice> device(new CudaDevice(module, handle));
    TRY_VOID(device->start());
    return device;
}

Result<void> CudaDevice::start() {
    RingsideText text{};
    RingsideDeviceInfo found{};
    TRY_VOID(fromModule(module_.deviceInfo(handle_, &found, &text), text));
    info_ = {"cuda", found.name, found.memoryBytes, found.libraries};
    return anchorClock();
}

CudaDevice::~CudaDevice() {
    RingsideText text{};
    static_cast<void>(synchronize());  // nobody is left to hear of an error
    for (const auto& [memory, bytes] : sizes_) module_.release(handle_, memory, &text);
    if (anchor_ != nullptr) idleEvents_.push_back(anchor_);
    for (void* event : idleEvents_) module_.destroyEvent(handle_, event, &text);
    for (const Stream& stream : streams_) module_.destroyStream(handle_, stream.native, &text);
    module_.destroyDevice(handle_);
}

Result<void*> CudaDevice::allocate(Bytes bytes) {
    CHECK(bytes >= 0);
    RingsideText text{};
    void* memory = nullptr;
    // Nothing at all still gets an address of its own.
    const int code = module_.allocate(handle_, std::max<Bytes>(bytes, 1), &memory, &text);
    if (code == RingsideOutOfMemory)
        return failure(ErrorCode::RuntimeFailure, info_.name,
                       fmt::format("out of memory: asked for {}, {} are in use of {}", formatBytes(bytes), formatBytes(bytesInUse_), formatBytes(info_.memoryBytes)));
    TRY_VOID(fromModule(code, text));
    sizes_[memory] = bytes;
    bytesInUse_ += bytes;
    return memory;
}

void CudaDevice::free(void* memory) {
    if (memory == nullptr) return;
    const auto found = sizes_.find(memory);
    CHECK(found != sizes_.end());
    bytesInUse_ -= found->second;
    sizes_.erase(found);
    RingsideText text{};
    const int code = module_.release(handle_, memory, &text);
    keep(fromModule(code, text));
}

Result<StreamIndex> CudaDevice::createStream(const std::string& name) {
    RingsideText text{};
    Stream stream{name, nullptr};
    TRY_VOID(fromModule(module_.createStream(handle_, name.c_str(), &stream.native, &text), text));
    streams_.push_back(std::move(stream));
    return static_cast<StreamIndex>(streams_.size() - 1);
}

/// The first error counts; what comes after it is its consequence.
void CudaDevice::keep(const Result<void>& result) {
    if (!result && !error_) error_ = result.error();
}

Result<void*> CudaDevice::takeEvent() {
    if (!idleEvents_.empty()) {
        void* const event = idleEvents_.back();
        idleEvents_.pop_back();
        return event;
    }
    RingsideText text{};
    void* event = nullptr;
    TRY_VOID(fromModule(module_.createEvent(handle_, &event, &text), text));
    return event;
}

Result<void*> CudaDevice::recordedEvent(void* stream) {
    TRY(void* event, takeEvent());
    RingsideText text{};
    const Result<void> recorded = fromModule(module_.recordEvent(handle_, event, stream, &text), text);
    if (recorded) return event;
    idleEvents_.push_back(event);
    return tl::unexpected<Error>(recorded.error());
}

Result<void> CudaDevice::timed(const Stream& stream, const StreamWork& work, WorkTimes* times) {
    if (times == nullptr) return work(StreamContext{stream.native});
    TRY(void* begin, recordedEvent(stream.native));
    timed_.push_back({begin, nullptr, nullptr});  // from here on it is given back with the others
    TRY_VOID(work(StreamContext{stream.native}));
    TRY(timed_.back().end, recordedEvent(stream.native));
    timed_.back().times = times;
    return {};
}

void CudaDevice::issue(StreamIndex stream, StreamWork work, WorkTimes* times) {
    CHECK(stream < streams_.size());
    if (error_) return;
    module_.pushRange(streams_[stream].name.c_str());
    keep(timed(streams_[stream], work, times));
    module_.popRange();
}

EventIndex CudaDevice::record(StreamIndex stream) {
    CHECK(stream < streams_.size());
    Result<void*> event = recordedEvent(streams_[stream].native);
    if (!event) keep(tl::unexpected<Error>(event.error()));
    events_.push_back(event ? *event : nullptr);
    return firstEvent_ + events_.size() - 1;
}

void CudaDevice::wait(StreamIndex stream, EventIndex event) {
    CHECK(stream < streams_.size() && event < firstEvent_ + events_.size());
    if (event < firstEvent_) return;  // long since over
    void* const recorded = events_[event - firstEvent_];
    if (recorded == nullptr) return;  // could not be recorded, which synchronize() reports
    RingsideText text{};
    keep(fromModule(module_.waitEvent(handle_, streams_[stream].native, recorded, &text), text));
}

/// Blocks in CUDA where nobody has to be looked after; else looks at the events and asks the monitors in turn.
Result<void> CudaDevice::waitFor(const std::vector<void*>& events) {
    RingsideText text{};
    if (monitors_.empty()) {
        for (void* event : events) TRY_VOID(fromModule(module_.waitEventOnHost(handle_, event, &text), text));
        return {};
    }
    std::optional<Error> failed;
    std::int64_t failedNs = 0;
    const std::int64_t startNs = hostNs();
    for (std::size_t next = 0; next < events.size();) {
        const int code = module_.queryEvent(handle_, events[next], &text);
        if (code == RingsideOk) {
            ++next;
            continue;
        }
        if (code != RingsideInProgress) {
            if (failed) return tl::unexpected<Error>(*failed);
            return fromModule(code, text);
        }
        const std::int64_t now = hostNs();
        for (auto monitor = monitors_.begin(); monitor != monitors_.end() && !failed; ++monitor)
            if (const Result<void> state = monitor->second(); !state) failed = state.error(), failedNs = now;
        if (failed && now - failedNs > kDrainNs) break;
        if (now - startNs > kSecondNs / 1000) std::this_thread::sleep_for(std::chrono::microseconds(20));
        else std::this_thread::yield();
    }
    // What went wrong while the last kernels ended counts too.
    for (auto monitor = monitors_.begin(); monitor != monitors_.end() && !failed; ++monitor)
        if (const Result<void> state = monitor->second(); !state) failed = state.error();
    if (failed) return tl::unexpected<Error>(*failed);
    return {};
}

Result<void> CudaDevice::waitOnHost(EventIndex event) {
    CHECK(event < firstEvent_ + events_.size());
    if (event < firstEvent_) return {};
    void* const recorded = events_[event - firstEvent_];
    const Result<void> waited = recorded != nullptr ? waitFor({recorded}) : Result<void>();
    keep(waited);
    if (error_) return tl::unexpected<Error>(*error_);
    return {};
}

Result<void> CudaDevice::anchorClock() {
    if (anchor_ == nullptr) {
        TRY(anchor_, takeEvent());
    }
    RingsideText text{};
    // On the default stream of an idle device the event is reached at once, so that the host's clock can be read beside it.
    TRY_VOID(fromModule(module_.recordEvent(handle_, anchor_, nullptr, &text), text));
    TRY_VOID(fromModule(module_.waitEventOnHost(handle_, anchor_, &text), text));
    anchorNs_ = hostNs();
    return {};
}

Result<void> CudaDevice::resolveTimes() {
    RingsideText text{};
    for (const Timed& task : timed_) {
        if (task.times == nullptr) continue;
        std::int64_t begin = 0, end = 0;
        TRY_VOID(fromModule(module_.elapsed(handle_, anchor_, task.begin, &begin, &text), text));
        TRY_VOID(fromModule(module_.elapsed(handle_, anchor_, task.end, &end, &text), text));
        *task.times = {anchorNs_ + begin, anchorNs_ + end};
    }
    return {};
}

Result<void> CudaDevice::synchronize() {
    std::vector<void*> last;
    for (const Stream& stream : streams_) {
        if (monitors_.empty()) break;
        const Result<void*> event = recordedEvent(stream.native);
        if (event) last.push_back(*event);
        else keep(tl::unexpected<Error>(event.error()));
    }
    const Result<void> watched = waitFor(last);
    keep(watched);
    // When streams do not end though a monitor has failed, waiting for the device would hang.
    RingsideText text{};
    if (watched) keep(fromModule(module_.synchronize(handle_, &text), text));
    if (!error_) keep(resolveTimes());

    idleEvents_.insert(idleEvents_.end(), last.begin(), last.end());
    for (const Timed& task : timed_)
        for (void* event : {task.begin, task.end})
            if (event != nullptr) idleEvents_.push_back(event);
    timed_.clear();
    for (void* event : events_)
        if (event != nullptr) idleEvents_.push_back(event);
    firstEvent_ += events_.size();
    events_.clear();
    if (!error_ && hostNs() - anchorNs_ > kAnchorAgeNs) keep(anchorClock());

    const std::optional<Error> error = std::exchange(error_, std::nullopt);
    if (error) return tl::unexpected<Error>(*error);
    return {};
}

Result<void> CudaDevice::run(const StreamContext& stream, const KernelCall& call) {
    TRY_VOID(checkOperands(call));
    const std::string name(nameOf(call.op));
    RingsideKernel kernel{};
    kernel.op = static_cast<std::uint32_t>(call.op);
    kernel.dtype = static_cast<std::uint32_t>(call.dtype);
    kernel.name = name.c_str();
    std::copy(call.in.begin(), call.in.end(), kernel.in);
    std::copy(call.out.begin(), call.out.end(), kernel.out);
    std::copy(call.dims.begin(), call.dims.end(), kernel.dims);
    std::copy(call.scalars.begin(), call.scalars.end(), kernel.scalars);
    RingsideText text{};
    return fromModule(module_.run(handle_, stream.native, &kernel, &text), text);
}

Result<void> CudaDevice::copyIn(const StreamContext& stream, void* device, const void* host, Bytes bytes) {
    RingsideText text{};
    return bytes == 0 ? Result<void>() : fromModule(module_.copyIn(handle_, stream.native, device, host, bytes, &text), text);
}

Result<void> CudaDevice::copyOut(const StreamContext& stream, void* host, const void* device, Bytes bytes) {
    RingsideText text{};
    return bytes == 0 ? Result<void>() : fromModule(module_.copyOut(handle_, stream.native, host, device, bytes, &text), text);
}

int CudaDevice::addMonitor(Monitor monitor) {
    monitors_.emplace(nextMonitor_, std::move(monitor));
    return nextMonitor_++;
}

void CudaDevice::removeMonitor(int id) { monitors_.erase(id); }

}  // namespace ringside
