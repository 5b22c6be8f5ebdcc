#include "calibrate/validate/torch_collectives.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "calibrate/fit/robust.h"

namespace ringside {
namespace {

struct Asked {
    CollectiveOp op;
    Bytes bytes;
    std::size_t times;
};

std::vector<Asked> asked() {
    std::vector<Asked> all;
    for (const auto& [bytes, times] : {std::pair<Bytes, std::size_t>{4 * kKiB, 35}, {64 * kKiB, 35}, {512 * kKiB, 35}, {4 * kMiB, 10}, {16 * kMiB, 7}})
        for (const CollectiveOp op : {CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter, CollectiveOp::Broadcast}) all.push_back({op, bytes, times});
    return all;
}

constexpr int kRuns = 3;  // of neighbours, whose means count

tl::unexpected<Error> unexpectedAnswer(const std::string& what) { return failure(ErrorCode::RuntimeFailure, "PyTorch's collectives", what); }

}  // namespace

Json torchCollectivesAsked() {
    Json out = Json::array();
    for (const Asked& one : asked()) out.push_back({nameOf(one.op), one.bytes, one.times});
    return out;
}

Result<std::vector<CollectiveTimings>> torchCollectivesOf(const std::vector<Json>& ranks, const std::string& link) {
    const std::vector<Asked> all = asked();
    using Spans = std::vector<std::vector<std::pair<double, double>>>;  // [asked][time]: begin and end
    std::vector<Spans> spans;
    for (const Json& rank : ranks) {
        const auto calls = rank.find("calls");
        try {
            if (calls != rank.end()) spans.push_back(calls->get<Spans>());
        } catch (const Json::exception& e) {
            return unexpectedAnswer(e.what());
        }
    }
    if (spans.empty() || spans.size() != ranks.size()) return unexpectedAnswer("a rank has not timed its calls");
    std::vector<CollectiveTimings> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        CollectiveTimings timings;
        timings.op = all[i].op;
        timings.bytes = all[i].bytes;
        timings.ranks = static_cast<std::int64_t>(ranks.size());
        timings.link = link;
        for (std::size_t t = 0; t < all[i].times; ++t) {
            double begin = -1, end = -1;
            for (const Spans& rank : spans) {
                if (i >= rank.size() || t >= rank[i].size()) return unexpectedAnswer(fmt::format("{} of {} bytes was not called {} times by every rank", nameOf(all[i].op), all[i].bytes, all[i].times));
                begin = std::max(begin, rank[i][t].first);
                end = std::max(end, rank[i][t].second);
            }
            timings.seconds.push_back(end - begin);
        }
        timings.seconds = blockMeans(timings.seconds, kRuns);
        out.push_back(std::move(timings));
    }
    return out;
}

Result<void> useTorchCollectives(Profile& profile, std::span<const CollectiveTimings> timings) {
    const std::vector<CollectiveCurve> ours = std::exchange(profile.collectives, {});
    TRY_VOID(addCollectiveTimings(profile, timings));
    for (CollectiveCurve& curve : profile.collectives) {
        const CollectiveOp op = curve.op == CollectiveOp::ReduceScatter ? CollectiveOp::AllReduce : curve.op;
        const auto same = std::find_if(ours.begin(), ours.end(), [&](const CollectiveCurve& one) {
            return one.backend == curve.backend && one.op == op && one.ranks == curve.ranks && (one.link == curve.link || one.link.empty());
        });
        if (same == ours.end()) continue;
        curve.cpuSecondsPerCall = same->cpuSecondsPerCall;
        curve.cpuSecondsPerByte = same->cpuSecondsPerByte;
        curve.computeSlowdown = same->computeSlowdown;
        curve.slowdownByCompute = same->slowdownByCompute;
    }
    return {};
}

}  // namespace ringside
