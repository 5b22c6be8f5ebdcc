#include "traces/trace_builder.h"

#include <algorithm>
#include <utility>

#include "model/base/check.h"

namespace ringside {

std::uint32_t TraceBuilder::addTrack(Track track) {
    trace_.tracks.push_back(std::move(track));
    return static_cast<std::uint32_t>(trace_.tracks.size() - 1);
}

std::uint32_t TraceBuilder::addTrack(std::int64_t rank, std::int64_t stream, TrackKind kind, std::string name) {
    return addTrack(Track{rank, stream, kind, std::move(name)});
}

std::uint32_t TraceBuilder::internName(std::string_view name) {
    if (const auto it = nameIds_.find(name); it != nameIds_.end()) return it->second;
    const auto id = static_cast<std::uint32_t>(trace_.names.size());
    trace_.names.emplace_back(name);
    nameIds_.emplace(std::string(name), id);
    return id;
}

std::int32_t TraceBuilder::addCollective(CollectiveDetails details) {
    trace_.collectives.push_back(std::move(details));
    return static_cast<std::int32_t>(trace_.collectives.size() - 1);
}

void TraceBuilder::addCounter(CounterSeries counter) {
    CHECK(counter.values.size() == counter.at.size() * counter.series.size());
    trace_.counters.push_back(std::move(counter));
}

void TraceBuilder::reorderTracks(const std::vector<std::uint32_t>& newIndex) {
    CHECK(newIndex.size() == trace_.tracks.size());
    std::vector<Track> tracks(trace_.tracks.size());
    for (std::size_t t = 0; t < newIndex.size(); ++t) tracks.at(newIndex[t]) = std::move(trace_.tracks[t]);
    trace_.tracks = std::move(tracks);
    for (Slice& slice : slices_) slice.track = newIndex[slice.track];
    for (Instant& instant : trace_.instants) instant.track = newIndex[instant.track];
}

std::vector<std::uint32_t> TraceBuilder::sortedOrder() const {
    // Slices of a track mostly arrive in time order, so: deal them out by track, then sort only tracks that need it.
    std::vector<std::uint32_t> begin(trace_.tracks.size() + 1, 0);
    for (const Slice& slice : slices_) {
        CHECK(slice.track < trace_.tracks.size());
        ++begin[slice.track + 1];
    }
    for (std::size_t t = 1; t < begin.size(); ++t) begin[t] += begin[t - 1];
    std::vector<std::uint32_t> order(slices_.size());
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t i = 0; i < slices_.size(); ++i) order[next[slices_[i].track]++] = i;

    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        if (slices_[a].start != slices_[b].start) return slices_[a].start < slices_[b].start;
        return slices_[a].duration > slices_[b].duration;
    };
    for (std::size_t t = 0; t + 1 < begin.size(); ++t) {
        const auto first = order.begin() + begin[t], last = order.begin() + begin[t + 1];
        if (!std::is_sorted(first, last, before)) std::stable_sort(first, last, before);
    }
    return order;
}

Trace TraceBuilder::build(std::vector<std::uint32_t>* newIds) {
    const std::vector<std::uint32_t> order = sortedOrder();
    const std::size_t n = order.size();
    Trace trace = std::exchange(trace_, Trace{});
    trace.track.resize(n);
    trace.start.resize(n);
    trace.duration.resize(n);
    trace.category.resize(n);
    trace.name.resize(n);
    trace.task.resize(n);
    trace.collective.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        const Slice& slice = slices_[order[i]];
        CHECK(slice.name < trace.names.size() && slice.duration >= Time{} &&
              slice.collective < static_cast<std::int32_t>(trace.collectives.size()));
        trace.track[i] = slice.track;
        trace.start[i] = slice.start;
        trace.duration[i] = slice.duration;
        trace.category[i] = slice.category;
        trace.name[i] = slice.name;
        trace.task[i] = slice.task;
        trace.collective[i] = slice.collective;
    }
    if (hasOrigins_) {
        trace.origin.resize(n);
        for (std::size_t i = 0; i < n; ++i) trace.origin[i] = slices_[order[i]].origin;
    }
    std::vector<std::uint32_t> ownIds;
    std::vector<std::uint32_t>& newId = newIds ? *newIds : ownIds;
    if (newIds || !trace.flows.empty()) {
        newId.resize(n);
        for (std::uint32_t i = 0; i < n; ++i) newId[order[i]] = i;
    }
    for (Flow& flow : trace.flows) {
        CHECK(flow.from < n && flow.to < n);
        flow.from = newId[flow.from];
        flow.to = newId[flow.to];
    }
    std::stable_sort(trace.instants.begin(), trace.instants.end(),
                     [](const Instant& a, const Instant& b) { return a.track != b.track ? a.track < b.track : a.at < b.at; });
    std::stable_sort(trace.allocations.begin(), trace.allocations.end(),
                     [](const Allocation& a, const Allocation& b) { return a.rank != b.rank ? a.rank < b.rank : a.begin < b.begin; });
    std::vector<Slice>().swap(slices_);
    hasOrigins_ = false;
    nameIds_.clear();
    return trace;
}

}  // namespace ringside
