// TraceBuilder: fills a Trace. Slices come in any order; build() sorts them by track and start and renames flows with them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/trace.h"

namespace ringside {

class TraceBuilder {
public:
    void setTitle(std::string title) { trace_.title = std::move(title); }
    void setWorldSize(std::int64_t worldSize) { trace_.worldSize = worldSize; }
    void reserve(std::size_t slices) { slices_.reserve(slices); }

    /// Returns the track's index, which is also its index in the Trace.
    std::uint32_t addTrack(Track track);
    std::uint32_t addTrack(std::int64_t rank, std::int64_t stream, TrackKind kind, std::string name);
    /// One hash lookup; callers that repeat a name keep its id.
    std::uint32_t internName(std::string_view name);
    /// What slices of one collective point to.
    std::int32_t addCollective(CollectiveDetails details);

    /// Returns the slice's id for addFlow. REQUIRES: track and nameId are from this builder, duration ≥ 0, collective is −1
    /// or from this builder.
    std::uint32_t addSlice(std::uint32_t track, Time start, Time duration, SliceCategory category, std::uint32_t nameId,
                           std::int64_t task = -1, std::int32_t collective = -1) {
        slices_.push_back({start, duration, task, track, nameId, collective, category});
        return static_cast<std::uint32_t>(slices_.size() - 1);
    }
    /// From the end of one slice to the start of another, by the ids of addSlice.
    void addFlow(std::uint32_t from, std::uint32_t to, Flow::Kind kind = Flow::Kind::Dependency) { trace_.flows.push_back({from, to, kind}); }
    /// REQUIRES: values.size() = at.size() × series.size().
    void addCounter(CounterSeries counter);

    std::size_t sliceCount() const { return slices_.size(); }

    /// Slices by track, then start, then the longer first (a parent comes before its children), then the order of adding.
    /// The builder is as new afterwards. O(n) when the slices of each track came in order, else O(n log n).
    Trace build();

private:
    struct Slice {
        Time start, duration;
        std::int64_t task;
        std::uint32_t track, name;
        std::int32_t collective;
        SliceCategory category;
    };
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };

    std::vector<std::uint32_t> sortedOrder() const;

    Trace trace_;
    std::vector<Slice> slices_;
    std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> nameIds_;
};

}  // namespace ringside
