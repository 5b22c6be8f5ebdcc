#include "sim/strategy/zero3_trace.h"

#include <algorithm>
#include <limits>

namespace ringside {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct Use {
    std::uint32_t parameter;
    std::int64_t visit;
};

class Coordinator {
public:
    Coordinator(std::span<const Zero3Visit> visits, std::span<const std::int64_t> sizes, const std::vector<bool>& persistent, const Zero3TraceOptions& options)
        : visits_(visits), sizes_(sizes), persistent_(persistent), options_(options), available_(persistent), fetchedFor_(sizes.size(), -1), traversed_(visits.size() + 1, 0) {
        for (std::size_t v = 0; v < visits.size(); ++v) {
            traversed_[v + 1] = traversed_[v];
            for (const std::uint32_t p : visits[v].parameters) {
                queue_.push_back({p, static_cast<std::int64_t>(v)});
                traversed_[v + 1] += sizes[p];
            }
        }
        // The next visit that uses the same parameter, for each use.
        std::vector<std::int64_t> next(sizes.size(), kNever);
        nextUse_.resize(queue_.size());
        for (std::size_t u = queue_.size(); u-- > 0;) {
            nextUse_[u] = next[queue_[u].parameter];
            next[queue_[u].parameter] = queue_[u].visit;
        }
    }

    std::vector<Zero3VisitPlan> run() {
        std::vector<Zero3VisitPlan> plans(visits_.size());
        std::size_t firstUse = 0;  // of the visit, in trace order
        for (std::size_t v = 0; v < visits_.size(); ++v) {
            const auto visit = static_cast<std::int64_t>(v);
            for (const std::uint32_t p : visits_[v].parameters)
                if (!available_[p]) make(p, plans[v].fetch);
            if (options_.traced) {
                passOwnUses(visit);
                prefetch(plans[v].prefetch);
            }
            for (std::size_t i = 0; i < visits_[v].parameters.size(); ++i) {
                const std::uint32_t p = visits_[v].parameters[i];
                if (persistent_[p] || !available_[p] || (options_.traced && staysUntil(p, visit, nextUse_[firstUse + i]))) continue;
                available_[p] = false;
                live_ -= sizes_[p];
                plans[v].release.push_back(p);
            }
            firstUse += visits_[v].parameters.size();
        }
        return plans;
    }

private:
    void make(std::uint32_t p, std::vector<std::uint32_t>& list) {
        available_[p] = true;
        live_ += sizes_[p];
        list.push_back(p);
    }

    /// The uses of this very visit leave the queue, unless an earlier prefetch has taken them already.
    void passOwnUses(std::int64_t visit) {
        std::size_t missing = 0;
        for (const std::uint32_t p : visits_[static_cast<std::size_t>(visit)].parameters) missing += fetchedFor_[p] < visit;
        while (head_ < queue_.size() && missing > 0) {
            fetchedFor_[queue_[head_].parameter] = queue_[head_].visit;
            ++head_;
            --missing;
        }
    }

    void prefetch(std::vector<std::uint32_t>& list) {
        // max_live_parameters bounds what is prefetched; it never makes anything go.
        const std::int64_t most = std::min(options_.maxLiveElements - live_, options_.prefetchElements);
        std::int64_t taken = 0;
        while (head_ < queue_.size() && taken < most) {
            const Use& use = queue_[head_++];
            fetchedFor_[use.parameter] = std::max(fetchedFor_[use.parameter], use.visit);
            if (available_[use.parameter]) continue;
            make(use.parameter, list);
            taken += sizes_[use.parameter];
        }
    }

    /// A prefetch skipped its next use because it was there, or that use is within max_reuse_distance.
    bool staysUntil(std::uint32_t p, std::int64_t visit, std::int64_t next) const {
        if (fetchedFor_[p] > visit + 1) return true;
        return next != kNever && traversed_[static_cast<std::size_t>(next)] - traversed_[static_cast<std::size_t>(visit) + 1] < options_.maxReuseElements;
    }

    std::span<const Zero3Visit> visits_;
    std::span<const std::int64_t> sizes_;
    const std::vector<bool>& persistent_;
    Zero3TraceOptions options_;
    std::vector<bool> available_;
    std::vector<std::int64_t> fetchedFor_;  // per parameter: the latest visit that the queue has handed out for it
    std::vector<std::int64_t> traversed_;   // elements used by the visits before this one
    std::vector<Use> queue_;
    std::vector<std::int64_t> nextUse_;     // per entry of the queue
    std::size_t head_ = 0;
    std::int64_t live_ = 0;
};

}  // namespace

std::vector<Zero3VisitPlan> planZero3Pass(std::span<const Zero3Visit> visits, std::span<const std::int64_t> sizes, const std::vector<bool>& persistent,
                                          const Zero3TraceOptions& options) {
    return Coordinator(visits, sizes, persistent, options).run();
}

}  // namespace ringside
