#include "calibrate/comm/gloo_communicator.h"

#include <atomic>
#include <cstring>

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/reduce.h>
#include <gloo/types.h>

#include "calibrate/comm/element_sum.h"
#include "calibrate/comm/gloo_group.h"
#include "calibrate/comm/interruptible_context.h"
#include "calibrate/comm/prompt_thread.h"
#include "calibrate/comm/ring_all_gather.h"
#include "calibrate/comm/ring_reduce_scatter.h"
#include "model/base/check.h"

namespace ringside {
namespace {

// Gloo's own prefixes end at 0x08.
constexpr std::uint8_t kReduceScatterPrefix = 0x41, kPointToPointPrefix = 0x42, kAllGatherPrefix = 0x43;

class GlooCommunicator : public Communicator {
public:
    GlooCommunicator(GlooGroup group, std::shared_ptr<InterruptibleContext> context) : group_(std::move(group)), context_(std::move(context)) {}
    ~GlooCommunicator() override {
        const PromptScope closing;
        context_.reset();
    }

    int rank() const override { return group_.rank; }
    int size() const override { return group_.size; }

    Result<void> allReduce(const StreamContext&, void* data, std::int64_t elements, DType dtype, Reduction reduction) override {
        TRY_VOID(checkSum(dtype));
        return attempt("all-reduce", elements, dtype, [&](std::size_t bytes) {
            gloo::AllreduceOptions options(context_);
            const SumFunction sum = sumFunctionOf(dtype);
            // Gloo wants to know the size of an element, not its type.
            withElementOf(sizeOf(dtype), [&](auto element) {
                using Element = decltype(element);
                options.setOutput(static_cast<Element*>(data), bytes / sizeof(Element));
            });
            options.setReduceFunction([sum](void* out, const void* a, const void* b, std::size_t n) { sum(out, a, b, n); });
            options.setTag(nextTag());
            options.setTimeout(group_.timeout);
            gloo::allreduce(options);
            if (reduction == Reduction::Average) divideBy(size(), data, static_cast<std::size_t>(elements), dtype);
        });
    }

    Result<void> allGather(const StreamContext&, const void* input, void* output, std::int64_t elements, DType dtype) override {
        const std::size_t bytes = bytesOf(elements, dtype);
        auto* own = static_cast<std::byte*>(output) + bytes * static_cast<std::size_t>(rank());
        if (bytes > 0 && input != own) std::memmove(own, input, bytes);
        return attempt("all-gather", elements, dtype, [&](std::size_t) {
            RingAllGatherOptions options;
            options.context = context_;
            options.output = output;
            options.blockBytes = bytes;
            options.slot = gloo::Slot::build(kAllGatherPrefix, nextTag());
            options.timeout = group_.timeout;
            ringAllGather(options);
        });
    }

    Result<void> reduceScatter(const StreamContext&, const void* input, void* output, std::int64_t elements, DType dtype,
                               Reduction reduction) override {
        TRY_VOID(checkSum(dtype));
        const std::size_t bytes = bytesOf(elements, dtype);
        if (size() == 1 && bytes > 0 && input != output) std::memmove(output, input, bytes);
        return attempt("reduce-scatter", elements, dtype, [&](std::size_t) {
            RingReduceScatterOptions options;
            options.context = context_;
            options.input = input;
            options.output = output;
            options.elements = static_cast<std::size_t>(elements);
            options.elementBytes = static_cast<std::size_t>(sizeOf(dtype));
            options.sum = sumFunctionOf(dtype);
            options.slot = gloo::Slot::build(kReduceScatterPrefix, nextTag());
            options.timeout = group_.timeout;
            ringReduceScatter(options);
            if (reduction == Reduction::Average) divideBy(size(), output, static_cast<std::size_t>(elements), dtype);
        });
    }

    Result<void> broadcast(const StreamContext&, void* data, std::int64_t elements, DType dtype, int root) override {
        CHECK(root >= 0 && root < size());
        return attempt("broadcast", elements, dtype, [&](std::size_t bytes) {
            gloo::BroadcastOptions options(context_);
            options.setOutput(static_cast<std::uint8_t*>(data), bytes);
            options.setRoot(root);
            options.setTag(nextTag());
            options.setTimeout(group_.timeout);
            gloo::broadcast(options);
        });
    }

    Result<void> reduce(const StreamContext&, void* data, std::int64_t elements, DType dtype, int root, Reduction reduction) override {
        CHECK(root >= 0 && root < size());
        TRY_VOID(checkSum(dtype));
        return attempt("reduce", elements, dtype, [&](std::size_t bytes) {
            gloo::ReduceOptions options(context_);
            const SumFunction sum = sumFunctionOf(dtype);
            withElementOf(sizeOf(dtype), [&](auto element) {
                using Element = decltype(element);
                options.setOutput(static_cast<Element*>(data), bytes / sizeof(Element));
            });
            options.setReduceFunction([sum](void* out, const void* a, const void* b, std::size_t n) { sum(out, a, b, n); });
            options.setRoot(root);
            options.setTag(nextTag());
            options.setTimeout(group_.timeout);
            gloo::reduce(options);
            if (reduction == Reduction::Average && rank() == root) divideBy(size(), data, static_cast<std::size_t>(elements), dtype);
        });
    }

    Result<void> allToAll(const StreamContext&, const void* input, void* output, std::int64_t elements, DType dtype) override {
        const std::size_t part = bytesOf(elements, dtype), bytes = part * static_cast<std::size_t>(size());
        if (size() == 1 && part > 0) std::memcpy(output, input, part);
        return attempt("all-to-all", elements, dtype, [&](std::size_t) {
            gloo::AlltoallOptions options(context_);
            options.setInput(static_cast<std::uint8_t*>(const_cast<void*>(input)), bytes);
            options.setOutput(static_cast<std::uint8_t*>(output), bytes);
            options.setTag(nextTag());
            options.setTimeout(group_.timeout);
            gloo::alltoall(options);
        });
    }

    Result<void> send(const StreamContext&, const void* data, std::int64_t elements, DType dtype, int to) override {
        CHECK(to >= 0 && to < size() && to != rank());
        return attempt("send", elements, dtype, [&](std::size_t bytes) {
            const auto buffer = context_->createUnboundBuffer(const_cast<void*>(data), bytes);
            buffer->send(to, pointToPointSlot());
            buffer->waitSend(group_.timeout);
        });
    }

    Result<void> receive(const StreamContext&, void* data, std::int64_t elements, DType dtype, int from) override {
        CHECK(from >= 0 && from < size() && from != rank());
        return attempt("receive", elements, dtype, [&](std::size_t bytes) {
            const auto buffer = context_->createUnboundBuffer(data, bytes);
            buffer->recv(from, pointToPointSlot());
            buffer->waitRecv(group_.timeout);
        });
    }

    Result<void> barrier(const StreamContext&) override {
        return attempt("barrier", 1, DType::Int8, [&](std::size_t) {
            gloo::BarrierOptions options(context_);
            options.setTag(nextTag());
            options.setTimeout(group_.timeout);
            gloo::barrier(options);
        });
    }

    void abort() override {
        aborted_ = true;
        if (!context_) return;
        const PromptScope closing;
        try {
            context_->interrupt();
        } catch (const std::exception&) {
            // A connection that broke by itself meanwhile is as good as closed.
        }
    }

private:
    static std::size_t bytesOf(std::int64_t elements, DType dtype) {
        CHECK(elements >= 0);
        return static_cast<std::size_t>(elements) * static_cast<std::size_t>(sizeOf(dtype));
    }
    static Result<void> checkSum(DType dtype) {
        if (!canSum(dtype)) return badInput("dtype", fmt::format("found {}, of which sums are not defined here; expected fp64, fp32, fp16, bf16 or an integer", nameOf(dtype)));
        return {};
    }
    /// Of a collective: these come in the same order on all ranks, so that the same one has the same tag everywhere.
    std::uint32_t nextTag() { return nextTag_.fetch_add(1); }
    /// Messages between two ranks keep their order in one slot.
    static std::uint64_t pointToPointSlot() { return gloo::Slot::build(kPointToPointPrefix, 0); }

    template <class Work>
    static void withElementOf(Bytes bytes, const Work& work) {
        switch (bytes) {
            case 8: return work(std::uint64_t{});
            case 4: return work(std::uint32_t{});
            case 2: return work(std::uint16_t{});
            default: return work(std::uint8_t{});
        }
    }

    /// Runs one operation: nothing to do for one rank or no element; exceptions turned into errors.
    template <class Work>
    Result<void> attempt(const char* operation, std::int64_t elements, DType dtype, const Work& work) {
        const std::size_t bytes = bytesOf(elements, dtype);
        std::string reason;
        if (!aborted_) {
            if (size() == 1 || bytes == 0) return {};
            const PromptScope prompt;
            try {
                work(bytes);
                return {};
            } catch (const std::exception& exception) {
                reason = plainMessageOf(exception);
            }
        }
        if (aborted_) reason = "it was aborted";
        return failure(ErrorCode::RuntimeFailure, fmt::format("group '{}'", group_.name),
                       fmt::format("{} of {} bytes failed at rank {} of {}: {}", operation, bytes, rank(), size(), reason));
    }

    GlooGroup group_;
    std::shared_ptr<InterruptibleContext> context_;
    std::atomic<std::uint32_t> nextTag_{0};
    std::atomic<bool> aborted_{false};
};

}  // namespace

std::unique_ptr<Communicator> makeGlooCommunicator(GlooGroup group, std::shared_ptr<InterruptibleContext> context) {
    return std::make_unique<GlooCommunicator>(std::move(group), std::move(context));
}

std::string plainMessageOf(const std::exception& exception) {
    std::string message = exception.what();
    if (message.starts_with("[")) {
        if (const std::size_t end = message.find("] "); end != std::string::npos) message.erase(0, end + 2);
    }
    return message;
}

}  // namespace ringside
