#include "calibrate/measure/collective_bench.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include <fmt/format.h>

#include "calibrate/comm/exchange.h"
#include "calibrate/fit/robust.h"
#include "kernels/device.h"

namespace ringside {
namespace {

double processorSeconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double secondsNow() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

constexpr Bytes kPool = 48 * kMiB;  // beyond the caches

/// One rank's part of the bench. Ranks must do the same in the same order, so rank 0 decides how often.
class RankBench {
public:
    RankBench(ComputeDevice& device, Communicator& comm, const CollectiveBenchOptions& options, StreamIndex stream, StreamIndex compute, const RankContext& context)
        : device_(device), comm_(comm), options_(options), stream_(stream), compute_(compute), context_(context) {
        const Bytes most = *std::max_element(options.sizes.begin(), options.sizes.end());
        send_.assign(static_cast<std::size_t>(std::max<Bytes>(2 * most, kPool) / 4 + 16 * (comm.size() + 2)), 1.0f);
        receive_.assign(send_.size(), 0.0f);
    }

    Result<Json> run() {
        Json series = Json::array(), overlaps = Json::array();
        for (const CollectiveOp op : options_.ops)
            for (const Bytes bytes : options_.sizes) {
                TRY(const Json one, measure(op, bytes));
                series.push_back(one);
            }
        if (options_.overlap)
            for (const CollectiveOp op : options_.ops) {
                if (op == CollectiveOp::SendRecv) continue;
                TRY(const Json one, overlap(op));
                overlaps.push_back(one);
            }
        return Json{{"series", std::move(series)}, {"overlaps", std::move(overlaps)}};
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
            case CollectiveOp::AllToAll: return allToAll(comm_, device_, context, send_.data() + offset_, receive_.data() + offset_, part, DType::Fp32);
            case CollectiveOp::SendRecv:
                if (comm_.rank() == 0) return comm_.send(context, send_.data() + offset_, elements, DType::Fp32, 1);
                if (comm_.rank() == 1) return comm_.receive(context, receive_.data() + offset_, elements, DType::Fp32, 0);
                return {};
            default: return failure(ErrorCode::Usage, "bench", fmt::format("{} is not measured", nameOf(op)));
        }
    }

    struct Timed {
        double begin = 0, seconds = 0, cpu = 0;
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
            const double cpu = processorSeconds();
            out.begin = secondsNow();
            TRY_VOID(once(context, op, bytes));
            out.seconds = secondsNow() - out.begin;
            out.cpu = processorSeconds() - cpu;
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
        const auto wanted = static_cast<std::int64_t>(std::clamp(options_.seconds / std::max(spent, 1e-5), static_cast<double>(options_.minRepeats), static_cast<double>(options_.maxRepeats)));
        TRY(const std::int64_t repeats, agree(wanted));
        Json begins = Json::array(), seconds = Json::array(), cpu = Json::array();
        for (std::int64_t i = 0; i < repeats; ++i) {
            TRY(const Timed one, timed(op, bytes));
            begins.push_back(one.begin);
            seconds.push_back(one.seconds);
            cpu.push_back(one.cpu);
        }
        return Json{{"op", nameOf(op)}, {"bytes", bytes}, {"begins", std::move(begins)}, {"seconds", std::move(seconds)}, {"cpu", std::move(cpu)}};
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

    Result<Json> overlap(CollectiveOp op) {
        const Bytes bytes = options_.overlapBytes;
        constexpr int kRepeats = 9, kChunk = 2;
        Json alone = Json::array(), beside = Json::array(), collectiveAlone = Json::array(), collectiveBeside = Json::array();
        for (int repeat = 0; repeat < kRepeats; ++repeat) {
            begin(fmt::format("{} of {} bytes beside compute", nameOf(op), bytes));
            TRY(const Timed quiet, timed(op, bytes));
            collectiveAlone.push_back(quiet.seconds);
            // Enough products to outlast the collective even if it is slowed down a few times.
            WorkTimes one;
            device_.issue(compute_, [&](const StreamContext& context) { return products(context, kChunk); }, &one);
            TRY_VOID(device_.synchronize());
            alone.push_back(static_cast<double>(one.endNs - one.beginNs) * 1e-9);
            TRY(const std::int64_t chunks, agree(std::clamp<std::int64_t>(static_cast<std::int64_t>(3 * quiet.seconds / std::max(1e-6, alone.back().get<double>())) + 2, 4, 400)));
            std::vector<WorkTimes> times(static_cast<std::size_t>(chunks));
            WorkTimes collective;
            device_.issue(stream_, [&](const StreamContext& context) { return comm_.barrier(context); });
            TRY_VOID(device_.synchronize());
            device_.issue(stream_, [&](const StreamContext& context) { return once(context, op, bytes); }, &collective);
            for (WorkTimes& chunk : times) device_.issue(compute_, [&](const StreamContext& context) { return products(context, kChunk); }, &chunk);
            TRY_VOID(device_.synchronize());
            collectiveBeside.push_back(static_cast<double>(collective.endNs - collective.beginNs) * 1e-9);
            for (const WorkTimes& chunk : times)  // those that ran wholly beside it
                if (chunk.beginNs >= collective.beginNs && chunk.endNs <= collective.endNs) beside.push_back(static_cast<double>(chunk.endNs - chunk.beginNs) * 1e-9);
        }
        return Json{{"op", nameOf(op)}, {"kernel_alone", alone}, {"kernel_beside", beside}, {"collective_alone", collectiveAlone}, {"collective_beside", collectiveBeside}};
    }

    ComputeDevice& device_;
    Communicator& comm_;
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
        TRY(const StreamIndex stream, device->createStream("communication"));
        TRY(const StreamIndex compute, device->createStream("compute"));
        RankBench bench(*device, *comm, options, stream, compute, context);
        TRY(const Json json, bench.run());
        return json.dump();
    };
    TRY(const std::optional<std::vector<std::string>> results, runRanks(ranks, work));
    CollectiveBenchResult out;
    if (!results) return out;
    std::vector<Json> parts;
    for (const std::string& text : *results) parts.push_back(Json::parse(text));
    out.rankSeconds.assign(parts.size(), 0);
    const Json& first = parts.front();
    for (std::size_t s = 0; s < first["series"].size(); ++s) {
        CollectiveTimings& timings = out.timings.emplace_back();
        timings.op = opFrom(first["series"][s]["op"]);
        timings.ranks = static_cast<std::int64_t>(parts.size());
        timings.link = options.link;
        timings.bytes = first["series"][s]["bytes"].get<Bytes>();
        timings.seconds = first["series"][s]["seconds"].get<std::vector<double>>();
        timings.cpuSeconds = first["series"][s]["cpu"].get<std::vector<double>>();
        for (std::size_t r = 0; r < parts.size(); ++r) {
            const std::vector<double> seconds = parts[r]["series"][s]["seconds"].get<std::vector<double>>();
            const std::vector<double> cpu = parts[r]["series"][s]["cpu"].get<std::vector<double>>();
            for (std::size_t i = 0; i < timings.seconds.size() && i < seconds.size(); ++i) {
                timings.seconds[i] = std::max(timings.seconds[i], seconds[i]);
                timings.cpuSeconds[i] = std::max(timings.cpuSeconds[i], cpu[i]);
            }
            out.rankSeconds[r] += median(seconds);
        }
        if (ranks.localRanks == 0) continue;  // clocks of other machines cannot be compared
        for (std::size_t i = 0; i < timings.seconds.size(); ++i) {
            double begin = 0, end = 0;
            for (const Json& part : parts) {
                const Json& series = part["series"][s];
                begin = std::max(begin, series["begins"][i].get<double>());
                end = std::max(end, series["begins"][i].get<double>() + series["seconds"][i].get<double>());
            }
            timings.seconds[i] = std::max(1e-9, end - begin);
        }
    }
    for (std::size_t s = 0; s < first["overlaps"].size(); ++s) {
        OverlapSeries& overlap = out.overlaps.emplace_back();
        overlap.op = opFrom(first["overlaps"][s]["op"]);
        for (const Json& part : parts) {
            const auto take = [&](const char* key, std::vector<double>& to) {
                for (const Json& value : part["overlaps"][s][key]) to.push_back(value.get<double>());
            };
            take("kernel_alone", overlap.kernelAlone);
            take("kernel_beside", overlap.kernelBeside);
            take("collective_alone", overlap.collectiveAlone);
            take("collective_beside", overlap.collectiveBeside);
        }
    }
    return out;
}

}  // namespace ringside
