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
    static constexpr std::uint64_t kNoOrigin = ~std::uint64_t{0};

    void setTitle(std::string title) { trace_.title = std::move(title); }
    void setWorldSize(std::int64_t worldSize) { trace_.worldSize = worldSize; }
    void reserve(std::size_t slices) { slices_.reserve(slices); }

    /// Returns the track's index, which is also its index in the Trace.
    std::uint32_t addTrack(Track track);
    std::uint32_t addTrack(std::int64_t rank, std::int64_t stream, TrackKind kind, std::string name);
    /// To change its names and numbers until build(). REQUIRES: index is from addTrack.
    Track& track(std::uint32_t index) { return trace_.tracks[index]; }
    /// One hash lookup; callers that repeat a name keep its id.
    std::uint32_t internName(std::string_view name);
    /// What slices of one collective point to.
    std::int32_t addCollective(CollectiveDetails details);

    /// Returns the slice's id for addFlow. REQUIRES: track and nameId are from this builder, duration ≥ 0, collective is −1
    /// or from this builder.
    std::uint32_t addSlice(std::uint32_t track, Time start, Time duration, SliceCategory category, std::uint32_t nameId,
                           std::int64_t task = -1, std::int32_t collective = -1, std::uint64_t origin = kNoOrigin) {
        slices_.push_back({start, duration, task, origin, track, nameId, collective, category});
        hasOrigins_ |= origin != kNoOrigin;
        return static_cast<std::uint32_t>(slices_.size() - 1);
    }
    /// From the end of one slice to the start of another, by the ids of addSlice.
    void addFlow(std::uint32_t from, std::uint32_t to, Flow::Kind kind = Flow::Kind::Dependency) { trace_.flows.push_back({from, to, kind}); }
    /// REQUIRES: values.size() = at.size() × series.size().
    void addCounter(CounterSeries counter);
    /// REQUIRES: track and nameId are from this builder.
    void addInstant(std::uint32_t track, Time at, std::uint32_t nameId) { trace_.instants.push_back({at, track, nameId}); }
    /// REQUIRES: name and category are from internName, begin ≤ end.
    void addAllocation(Allocation allocation) { trace_.allocations.push_back(allocation); }

    std::size_t sliceCount() const { return slices_.size(); }

    /// Track t becomes track newIndex[t]. REQUIRES: newIndex is a permutation of the tracks. O(slices).
    void reorderTracks(const std::vector<std::uint32_t>& newIndex);

    /// Slices by track, then start, then the longer first (a parent comes before its children), then the order of adding.
    /// Instants by track and time, allocations by rank and begin. The builder is as new afterwards. O(n) when the slices of each track came in order, else O(n log n).
    /// `newIds`, if given, becomes the slices' places in the Trace by the ids of addSlice.
    Trace build(std::vector<std::uint32_t>* newIds = nullptr);

private:
    struct Slice {
        Time start, duration;
        std::int64_t task;
        std::uint64_t origin;
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
    bool hasOrigins_ = false;
    std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> nameIds_;
};

}  // namespace ringside
