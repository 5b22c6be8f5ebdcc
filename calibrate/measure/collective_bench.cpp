#include "calibrate/measure/collective_bench.h"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "calibrate/comm/prompt_thread.h"
#include "calibrate/fit/robust.h"
#include "calibrate/measure/both_ways.h"
#include "kernels/device.h"

namespace ringside {
namespace {

double secondsNow() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

constexpr Bytes kPool = 48 * kMiB;  // beyond the caches

/// One rank's part of the bench. Ranks must do the same in the same order, so rank 0 decides how often.
class RankBench {
public:
    RankBench(ComputeDevice& device, Communicator& comm, BothWays* bothWays, const CollectiveBenchOptions& options, StreamIndex stream, StreamIndex compute, const RankContext& context)
        : device_(device), comm_(comm), bothWays_(bothWays), options_(options), stream_(stream), compute_(compute), context_(context) {
        const Bytes most = *std::max_element(options.sizes.begin(), options.sizes.end());
        send_.assign(static_cast<std::size_t>(std::max<Bytes>(2 * most, kPool) / 4 + 16 * (comm.size() + 2)), 1.0f);
        receive_.assign(send_.size(), 0.0f);
    }

    Result<Json> run() {
        Json series = Json::array();
        for (const CollectiveOp op : options_.ops)
            for (const Bytes bytes : options_.sizes) {
                TRY(const Json one, measure(op, bytes));
                series.push_back(one);
            }
        return series;
    }

private:
    Result<void> once(const StreamContext& context, CollectiveOp op, Bytes bytes) {
        const std::int64_t elements = std::max<std::int64_t>(1, bytes / 4), part = std::max<std::int64_t>(1, elements / comm_.size());
        switch (op) {
            case CollectiveOp::AllReduce: return comm_.allReduce(context, send_.data() + offset_, elements, DType::Fp32, Reduction::Sum);
            case CollectiveOp::AllGather: return comm_.allGather(context, send_.data() + offset_, receive_.data() + offset_, part, DType::Fp32);
            case CollectiveOp::ReduceScatter: return comm_.reduceScatter(context, send_.data() + offset_, receive_.data() + offset_, part, DType::Fp32, Reduction::Sum);
            case CollectiveOp::Broadcast: return comm_.broadcast(context, send_.data() + offset_, elements, DType::Fp32, 0);
            case CollectiveOp::Reduce: return comm_.reduce(context, send_.data() + offset_, elements, DType::Fp32, 0, Reduction::Sum);
            case CollectiveOp::AllToAll: return comm_.allToAll(context, send_.data() + offset_, receive_.data() + offset_, part, DType::Fp32);
            case CollectiveOp::SendRecv:
                if (bothWays_) return bothWays_->exchange(context, send_.data() + offset_, receive_.data() + offset_, std::max<std::int64_t>(1, elements / (comm_.size() - 1)));
                if (comm_.rank() == 0) return comm_.send(context, send_.data() + offset_, elements, DType::Fp32, 1);
                if (comm_.rank() == 1) return comm_.receive(context, receive_.data() + offset_, elements, DType::Fp32, 0);
                return {};
            default: return failure(ErrorCode::Usage, "bench", fmt::format("{} is not measured", nameOf(op)));
        }
    }

    struct Timed {
        double begin = 0, seconds = 0;
    };
    /// As in a step: ranks have computed since they last talked, so the network's threads sleep, and the data is not in the caches.
    /// A broadcast at its root ends early; what counts is from when the last rank came to when the last one was done.
    Result<Timed> timed(CollectiveOp op, Bytes bytes) {
        Timed out;
        const std::size_t step = (static_cast<std::size_t>(std::max<std::int64_t>(1, bytes / 4)) + 15) / 16 * 16;
        offset_ = offset_ + 2 * step + static_cast<std::size_t>(comm_.size()) * 16 > send_.size() ? 0 : offset_ + step;
        device_.issue(stream_, [&](const StreamContext& context) -> Result<void> {
            TRY_VOID(comm_.barrier(context));
            TRY_VOID(products(context, 3));
            out.begin = secondsNow();
            TRY_VOID(once(context, op, bytes));
            out.seconds = secondsNow() - out.begin;
            return {};
        });
        TRY_VOID(device_.synchronize());
        return out;
    }

    /// What rank 0 says.
    Result<std::int64_t> agree(std::int64_t value) {
        device_.issue(stream_, [&](const StreamContext& context) { return comm_.broadcast(context, &value, 1, DType::Int64, 0); });
        TRY_VOID(device_.synchronize());
        return value;
    }

    void begin(const std::string& task) const {
        if (context_.progress) context_.progress(task);
    }

    Result<Json> measure(CollectiveOp op, Bytes bytes) {
        begin(fmt::format("{} of {} bytes", nameOf(op), bytes));
        double spent = 0;
        for (int i = 0; i < options_.warmUp; ++i) {
            TRY(const Timed warm, timed(op, bytes));
            spent = warm.seconds;
        }
        constexpr double kLong = 0.25;  // of these a few tell as much
        const double fewest = spent > kLong ? 3 : options_.minRepeats;
        const auto wanted = static_cast<std::int64_t>(std::clamp(options_.seconds / std::max(spent, 1e-5), fewest, static_cast<double>(options_.maxRepeats)));
        TRY(const std::int64_t repeats, agree(wanted));
        Json begins = Json::array(), seconds = Json::array();
        std::vector<double> alone;
        for (std::int64_t i = 0; i < repeats; ++i) {
            TRY(const Timed one, timed(op, bytes));
            begins.push_back(one.begin);
            seconds.push_back(one.seconds);
            alone.push_back(one.seconds);
        }
        Json out{{"op", nameOf(op)}, {"bytes", bytes}, {"begins", std::move(begins)}, {"seconds", std::move(seconds)}};
        if (options_.beside) TRY_VOID(besideKernels(op, bytes, median(alone), out));
        return out;
    }

    /// A stretch of matrix products.
    Result<void> products(const StreamContext& context, int count) {
        constexpr std::int64_t n = 256;
        a_.resize(n * n, 0.5f), b_.resize(n * n, 0.5f), c_.resize(n * n);
        KernelCall call;
        call.op = KernelOp::Matmul;
        call.in = {a_.data(), b_.data(), nullptr};
        call.out = {c_.data()};
        call.dims = {1, n, n, n, 0, 0};
        call.scalars = {1, 0};
        for (int i = 0; i < count; ++i) TRY_VOID(device_.run(context, call));
        return {};
    }

    /// From now until `count` stretches of products are done; with a collective issued before them, or without.
    Result<double> stretch(std::int64_t count, const StreamWork* collective, WorkTimes* times) {
        const double begin = secondsNow();
        WorkTimes last;
        if (collective) device_.issue(stream_, *collective, times);
        for (std::int64_t i = 0; i < count; ++i) device_.issue(compute_, [&](const StreamContext& context) { return products(context, 1); }, &last);
        TRY_VOID(device_.synchronize());
        return static_cast<double>(last.endNs) * 1e-9 - begin;
    }

    /// The same kernels with and without the collective: what they take longer is what it takes from them. And how long it takes itself,
    /// among them. Kernels outlast it, or nearly.
    Result<void> besideKernels(CollectiveOp op, Bytes bytes, double aloneSeconds, Json& out) {
        constexpr double kLongest = 0.2;  // a slow link's long ones say nothing new
        TRY(const std::int64_t microseconds, agree(static_cast<std::int64_t>(aloneSeconds * 1e6)));
        const double expected = static_cast<double>(microseconds) * 1e-6;
        if (expected > kLongest) return {};
        begin(fmt::format("{} of {} bytes beside kernels", nameOf(op), bytes));
        constexpr std::int64_t kTrial = 8;
        TRY(const double trial, stretch(kTrial, nullptr, nullptr));
        TRY(const std::int64_t count, agree(std::max<std::int64_t>(4, static_cast<std::int64_t>((2 * expected + 1e-3) / (trial / kTrial)))));
        TRY(const std::int64_t repeats, agree(std::clamp<std::int64_t>(static_cast<std::int64_t>(options_.seconds / (3 * expected + 1e-3)), 5, 15)));
        const StreamWork collective = [&](const StreamContext& context) { return once(context, op, bytes); };
        const StreamWork meet = [&](const StreamContext& context) { return comm_.barrier(context); };
        Json begins = Json::array(), seconds = Json::array();
        std::vector<double> without, with;
        for (std::int64_t i = 0; i < repeats; ++i) {
            TRY(without.emplace_back(), stretch(count, nullptr, nullptr));
            device_.issue(stream_, meet);
            TRY_VOID(device_.synchronize());
            WorkTimes times;
            TRY(with.emplace_back(), stretch(count, &collective, &times));
            begins.push_back(static_cast<double>(times.beginNs) * 1e-9);
            seconds.push_back(static_cast<double>(times.endNs - times.beginNs) * 1e-9);
        }
        Json taken = Json::array();
        const double usual = median(without);
        for (const double one : with) taken.push_back(std::max(0.0, one - usual));
        out["taken"] = std::move(taken);
        out["beside_begins"] = std::move(begins);
        out["beside_seconds"] = std::move(seconds);
        return {};
    }

    ComputeDevice& device_;
    Communicator& comm_;
    BothWays* bothWays_;  // null: send/recv is one way
    const CollectiveBenchOptions& options_;
    StreamIndex stream_, compute_;
    const RankContext& context_;
    std::vector<float> send_, receive_, a_, b_, c_;
    std::size_t offset_ = 0;  // into send_ and receive_: another place each time
};

CollectiveOp opFrom(const Json& name) {
    for (const CollectiveOp op : {CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter, CollectiveOp::Broadcast, CollectiveOp::Reduce, CollectiveOp::AllToAll, CollectiveOp::SendRecv})
        if (name == nameOf(op)) return op;
    return CollectiveOp::AllReduce;
}

std::vector<double> mostOfAnyRank(const std::vector<const Json*>& ranks, const char* key) {
    std::vector<double> most = (*ranks.front())[key].get<std::vector<double>>();
    for (const Json* rank : ranks)
        for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], (*rank)[key][i].get<double>());
    return most;
}

/// From when the last rank came to when the last one was done; where clocks cannot be compared, the longest that a rank took.
std::vector<double> ofTheSlowest(const std::vector<const Json*>& ranks, const char* begins, const char* seconds, bool oneClock) {
    std::vector<double> out = mostOfAnyRank(ranks, seconds);
    if (!oneClock) return out;
    for (std::size_t i = 0; i < out.size(); ++i) {
        double begin = 0, end = 0;
        for (const Json* rank : ranks) {
            const double came = (*rank)[begins][i].get<double>();
            begin = std::max(begin, came);
            end = std::max(end, came + (*rank)[seconds][i].get<double>());
        }
        out[i] = std::max(1e-9, end - begin);
    }
    return out;
}

}  // namespace

Result<CollectiveBenchResult> benchCollectives(const RunRanksOptions& ranks, const CollectiveBenchOptions& options) {
    const auto work = [&](RankContext& context) -> Result<std::string> {
        CpuDeviceOptions cpu;
        cpu.threads = ranks.threads;
        cpu.firstCore = context.firstCore;
        TRY(const std::unique_ptr<ComputeDevice> device, makeCpuDevice(cpu));
        std::vector<int> all(static_cast<std::size_t>(context.world->size()));
        std::iota(all.begin(), all.end(), 0);
        TRY(const std::unique_ptr<Communicator> comm, context.world->createGroup("bench", all));
        std::optional<BothWays> bothWays;
        if (options.bothWays) {
            TRY(bothWays, BothWays::connect(*context.world));
        }
        TRY(const StreamIndex stream, device->createStream("communication"));
        TRY(const StreamIndex compute, device->createStream("compute"));
        device->issue(stream, [](const StreamContext&) { return stayPrompt(), Result<void>(); });
        RankBench bench(*device, *comm, bothWays ? &*bothWays : nullptr, options, stream, compute, context);
        TRY(const Json json, bench.run());
        return json.dump();
    };
    TRY(const std::optional<std::vector<std::string>> results, runRanks(ranks, work));
    CollectiveBenchResult out;
    if (!results) return out;
    std::vector<Json> parts;
    for (const std::string& text : *results) parts.push_back(Json::parse(text));
    out.rankSeconds.assign(parts.size(), 0);
    const bool oneClock = ranks.localRanks > 0;
    for (std::size_t s = 0; s < parts.front().size(); ++s) {
        std::vector<const Json*> series;
        for (const Json& part : parts) series.push_back(&part[s]);
        CollectiveTimings& timings = out.timings.emplace_back();
        timings.op = opFrom((*series.front())["op"]);
        timings.ranks = static_cast<std::int64_t>(parts.size());
        timings.link = options.link;
        timings.bytes = (*series.front())["bytes"].get<Bytes>();
        timings.seconds = ofTheSlowest(series, "begins", "seconds", oneClock);
        for (std::size_t r = 0; r < series.size(); ++r) out.rankSeconds[r] += median((*series[r])["seconds"].get<std::vector<double>>());
        if (!series.front()->contains("taken")) continue;
        timings.besideSeconds = ofTheSlowest(series, "beside_begins", "beside_seconds", oneClock);
        timings.cpuSeconds = mostOfAnyRank(series, "taken");
    }
    return out;
}

}  // namespace ringside
