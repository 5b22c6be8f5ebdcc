#include "calibrate/comm/nccl_communicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "calibrate/comm/exchange.h"
#include "model/base/check.h"

namespace ringside {

namespace {

using Clock = std::chrono::steady_clock;

std::string secondsText(std::chrono::milliseconds time) { return formatSeconds(static_cast<double>(time.count()) * 1e-3); }

class NcclCommunicator final : public Communicator {
public:
    NcclCommunicator(CudaDevice& device, RingsideCudaComm* comm, std::string name, int rank, int size, std::chrono::milliseconds timeout)
        : device_(device), module_(device.module()), comm_(comm), name_(std::move(name)), rank_(rank), size_(size), timeout_(timeout) {
        monitor_ = device_.addMonitor([this] { return lookAfter(); });
    }
    ~NcclCommunicator() override {
        device_.removeMonitor(monitor_);
        RingsideText text{};
        for (const Pending& operation : pending_) module_.destroyEvent(device_.handle(), operation.event, &text);
        for (void* event : idle_) module_.destroyEvent(device_.handle(), event, &text);
        module_.commDestroy(comm_, &text);
    }
    NcclCommunicator(const NcclCommunicator&) = delete;
    NcclCommunicator& operator=(const NcclCommunicator&) = delete;

    int rank() const override { return rank_; }
    int size() const override { return size_; }

    Result<void> allReduce(const StreamContext& stream, void* data, std::int64_t elements, DType dtype, Reduction reduction) override {
        return enqueue(stream, "all-reduce", {RingsideAllReduce, number(dtype), data, data, elements, 0, reduction == Reduction::Average});
    }
    Result<void> allGather(const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype) override {
        return enqueue(stream, "all-gather", {RingsideAllGather, number(dtype), input, output, elements, 0, 0});
    }
    Result<void> reduceScatter(const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype, Reduction reduction) override {
        return enqueue(stream, "reduce-scatter", {RingsideReduceScatter, number(dtype), input, output, elements, 0, reduction == Reduction::Average});
    }
    Result<void> broadcast(const StreamContext& stream, void* data, std::int64_t elements, DType dtype, int root) override {
        return enqueue(stream, "broadcast", {RingsideBroadcast, number(dtype), data, data, elements, root, 0});
    }
    Result<void> reduce(const StreamContext& stream, void* data, std::int64_t elements, DType dtype, int root, Reduction reduction) override {
        return enqueue(stream, "reduce", {RingsideReduce, number(dtype), data, data, elements, root, reduction == Reduction::Average});
    }
    Result<void> allToAll(const StreamContext& stream, const void* input, void* output, std::int64_t elements, DType dtype) override {
        return allToAllInRounds(*this, device_, stream, input, output, elements, dtype);
    }
    Result<void> send(const StreamContext& stream, const void* data, std::int64_t elements, DType dtype, int to) override {
        return enqueue(stream, "send", {RingsideSend, number(dtype), data, nullptr, elements, to, 0});
    }
    Result<void> receive(const StreamContext& stream, void* data, std::int64_t elements, DType dtype, int from) override {
        return enqueue(stream, "receive", {RingsideReceive, number(dtype), nullptr, data, elements, from, 0});
    }
    Result<void> barrier(const StreamContext& stream) override {
        return enqueue(stream, "barrier", {RingsideBarrier, number(DType::Fp32), nullptr, nullptr, 0, 0, 0});
    }
    void abort() override {
        RingsideText text{};
        module_.commAbort(comm_, &text);
    }

private:
    struct Pending {
        void* event = nullptr;  ///< right behind the operation on its stream
        const char* operation = "";
        Bytes bytes = 0;
    };

    static std::uint32_t number(DType dtype) { return static_cast<std::uint32_t>(dtype); }

    std::string describe(const char* operation, Bytes bytes) const {
        return fmt::format("{} of {} in group '{}' (rank {} of {})", operation, formatBytes(bytes), name_, rank_, size_);
    }

    /// Without blocking, NCCL may still be at an operation when its call returns; the next one waits for that.
    Result<void> ready(const char* operation, Bytes bytes) {
        RingsideText text{};
        const Clock::time_point deadline = Clock::now() + timeout_;
        while (true) {
            const int code = module_.commQuery(comm_, &text);
            if (code != RingsideInProgress) return fromModule(code, text, describe(operation, bytes));
            if (Clock::now() > deadline) return fail(fmt::format("{}: NCCL did not take it within {}", describe(operation, bytes), secondsText(timeout_)));
            std::this_thread::yield();
        }
    }

    Result<void> enqueue(const StreamContext& stream, const char* operation, const RingsideCollectiveCall& call) {
        if (error_) return tl::unexpected<Error>(*error_);
        const Bytes bytes = call.elements * sizeOf(static_cast<DType>(call.dtype));
        RingsideText text{};
        const int code = module_.commCollective(comm_, stream.native, &call, &text);
        TRY_VOID(fromModule(code, text, describe(operation, bytes)));
        if (code == RingsideInProgress) TRY_VOID(ready(operation, bytes));
        return watch(stream, operation, bytes);
    }

    Result<void> watch(const StreamContext& stream, const char* operation, Bytes bytes) {
        RingsideText text{};
        void* event = nullptr;
        if (!idle_.empty()) {
            event = idle_.back();
            idle_.pop_back();
        } else {
            TRY_VOID(fromModule(module_.createEvent(device_.handle(), &event, &text), text));
        }
        if (pending_.empty()) progress_ = Clock::now();
        pending_.push_back({event, operation, bytes});
        return fromModule(module_.recordEvent(device_.handle(), event, stream.native, &text), text, describe(operation, bytes));
    }

    /// Called while the host waits. Operations end in their order or not at all, so the first one tells.
    Result<void> lookAfter() {
        if (error_) return tl::unexpected<Error>(*error_);
        RingsideText text{};
        while (!pending_.empty()) {
            const int code = module_.queryEvent(device_.handle(), pending_.front().event, &text);
            if (code == RingsideInProgress) break;
            if (code != RingsideOk) return fail(fmt::format("{}: {}", describe(pending_.front().operation, pending_.front().bytes), text.text));
            idle_.push_back(pending_.front().event);
            pending_.pop_front();
            progress_ = Clock::now();
        }
        const std::string what = pending_.empty() ? fmt::format("group '{}' (rank {} of {})", name_, rank_, size_) : describe(pending_.front().operation, pending_.front().bytes);
        const int state = module_.commQuery(comm_, &text);
        if (state != RingsideOk && state != RingsideInProgress) return fail(fmt::format("{}: {}", what, text.text));
        if (!pending_.empty() && Clock::now() - progress_ > timeout_)
            return fail(fmt::format("{}: not done within {}; a rank of the group has stopped or is far behind", what, secondsText(timeout_)));
        return {};
    }

    /// Ends what NCCL has on the streams, so that nobody waits for it any more.
    Result<void> fail(const std::string& message) {
        abort();
        error_ = Error{ErrorCode::RuntimeFailure, message, "NCCL"};
        return tl::unexpected<Error>(*error_);
    }

    CudaDevice& device_;
    const RingsideCudaModule& module_;
    RingsideCudaComm* comm_;
    std::string name_;
    int rank_, size_;
    std::chrono::milliseconds timeout_;
    int monitor_ = 0;
    std::deque<Pending> pending_;
    std::vector<void*> idle_;
    Clock::time_point progress_;  ///< when an operation last ended, or the first of those pending was enqueued
    std::optional<Error> error_;
};

class NcclWorld final : public CommWorld {
public:
    explicit NcclWorld(NcclWorldOptions options) : options_(std::move(options)) {}

    int rank() const override { return options_.rank; }
    int size() const override { return options_.size; }

    Result<std::unique_ptr<Communicator>> createGroup(const std::string& name, std::span<const int> ranks) override {
        const auto own = std::find(ranks.begin(), ranks.end(), options_.rank);
        CHECK(own != ranks.end() && std::is_sorted(ranks.begin(), ranks.end()));
        const int rank = static_cast<int>(own - ranks.begin()), size = static_cast<int>(ranks.size());
        const Clock::time_point deadline = Clock::now() + options_.timeout;
        TRY(const std::string id, exchangeId(name, ranks, rank, deadline));
        return connect(name, ranks, rank, size, id, deadline);
    }

private:
    static std::string keyOf(const std::string& name, int rank) { return fmt::format("nccl/{}/rank {}", name, rank); }

    Result<std::string> exchangeId(const std::string& name, std::span<const int> ranks, int rank, Clock::time_point deadline) {
        const std::string key = fmt::format("nccl/{}/id", name);
        if (rank == 0) {
            std::array<unsigned char, RINGSIDE_UNIQUE_ID_BYTES> bytes{};
            RingsideText text{};
            TRY_VOID(fromModule(options_.device->module().uniqueId(bytes.data(), &text), text, fmt::format("group '{}'", name)));
            TRY_VOID(options_.store.set(key, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
        }
        TRY_VOID(options_.store.set(keyOf(name, options_.rank), "here"));
        while (true) {
            TRY(const std::optional<std::string> id, options_.store.get(key));
            if (id && id->size() == RINGSIDE_UNIQUE_ID_BYTES) return *id;
            if (id) return failure(ErrorCode::RuntimeFailure, "NCCL", fmt::format("group '{}': the id in the store has {} bytes; expected {}", name, id->size(), RINGSIDE_UNIQUE_ID_BYTES));
            if (Clock::now() > deadline) return missing(name, ranks);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    Result<std::unique_ptr<Communicator>> connect(const std::string& name, std::span<const int> ranks, int rank, int size, const std::string& id,
                                                  Clock::time_point deadline) {
        const RingsideCudaModule& module = options_.device->module();
        std::array<unsigned char, RINGSIDE_UNIQUE_ID_BYTES> bytes{};
        std::memcpy(bytes.data(), id.data(), bytes.size());
        RingsideText text{};
        RingsideCudaComm* comm = nullptr;
        TRY_VOID(fromModule(module.commCreate(options_.device->handle(), bytes.data(), rank, size, name.c_str(), &comm, &text), text, fmt::format("group '{}'", name)));
        int code = module.commQuery(comm, &text);
        while (code == RingsideInProgress && Clock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            code = module.commQuery(comm, &text);
        }
        if (code == RingsideOk) return std::make_unique<NcclCommunicator>(*options_.device, comm, name, rank, size, options_.timeout);
        RingsideText ignored{};
        module.commAbort(comm, &ignored);
        module.commDestroy(comm, &ignored);
        if (code == RingsideInProgress) return missing(name, ranks);
        return tl::unexpected<Error>(fromModule(code, text, fmt::format("group '{}'", name)).error());
    }

    tl::unexpected<Error> missing(const std::string& name, std::span<const int> ranks) {
        std::vector<int> absent;
        for (const int rank : ranks)
            if (const auto here = options_.store.get(keyOf(name, rank)); !here || !*here) absent.push_back(rank);
        const std::string who = absent.empty() ? "all have come, but NCCL could not connect them (NCCL_DEBUG=INFO says more)"
                                               : fmt::format("rank{} {} {} missing", absent.size() == 1 ? "" : "s", fmt::join(absent, ", "), absent.size() == 1 ? "is" : "are");
        return failure(ErrorCode::RuntimeFailure, "NCCL", fmt::format("group '{}' of {} ranks was not complete within {}: {}", name, ranks.size(), secondsText(options_.timeout), who));
    }

    NcclWorldOptions options_;
};

}  // namespace

Result<std::unique_ptr<CommWorld>> makeNcclWorld(const NcclWorldOptions& options) {
    CHECK(options.device != nullptr && options.store.set && options.store.get);
    CHECK(options.rank >= 0 && options.rank < options.size);
    return std::make_unique<NcclWorld>(options);
}

}  // namespace ringside
