// Trace: when things happened. One neutral, columnar form for what the simulator predicts, what the executor measures and
// what other tools recorded. Immutable once built (TraceBuilder fills it, everything else reads it).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"

namespace ringside {

/// What a slice's time counts as in a breakdown.
enum class SliceCategory : std::uint8_t { Compute, Optimizer, Communication, Copy, Host, Wait, Marker };
std::string_view nameOf(SliceCategory category);   ///< "compute", "optimizer", …

enum class TrackKind : std::uint8_t { Host, Compute, Communication, Copy };
std::string_view nameOf(TrackKind kind);            ///< "host", "compute", …

/// One row of the timeline: a stream of a rank.
struct Track {
    std::int64_t rank = 0;
    std::int64_t stream = 0;
    TrackKind kind = TrackKind::Compute;
    std::string name;
};

/// What a collective slice carries, by Kineto's names.
struct CollectiveDetails {
    std::string op;          ///< "allreduce", "_allgather_base", …
    std::int64_t elements = 0;  ///< of the whole buffer: an all-gather's output, a reduce-scatter's input
    std::string dtype;       ///< "Float", "BFloat16", …
    Bytes bytes = 0;         ///< of the whole buffer
    std::int64_t groupSize = 0;
    std::int64_t sequence = 0;  ///< of its process group, the same on every rank of it; −1 if the file does not say
    std::string algorithm, protocol;  ///< "RING", "LL128"; empty if not known
    std::string group = {};           ///< the process group's description; empty: the default group of all ranks
    std::vector<std::int64_t> ranks = {};  ///< of the group; empty: all ranks, or not known
};

/// A flow arrow from the end of one slice to the start of another.
struct Flow {
    std::uint32_t from = 0, to = 0;  ///< slices
    enum class Kind : std::uint8_t { Launch, Dependency, Collective } kind = Kind::Dependency;
};

struct CounterSeries {
    std::int64_t rank = 0;
    std::string name;                       ///< "allocated", "reserved", …
    std::vector<std::string> series;        ///< "parameters", "activations", …
    std::vector<Time> at;
    std::vector<Bytes> values;              ///< at.size() × series.size(), row by row
    Bytes limit = 0;                        ///< a line to draw above them, as the device's capacity; 0: none
};

/// Something that happened at one instant on a track.
struct Instant {
    Time at;
    std::uint32_t track = 0;
    std::uint32_t name = 0;                 ///< index into `names`
};

/// A tensor or other piece of memory, and how long it lived. What was there before the trace begins at its start, what was
/// never freed ends at Time::max().
struct Allocation {
    std::int64_t rank = 0;
    Time begin, end;
    Bytes bytes = 0;
    std::uint32_t name = 0;                 ///< index into `names`: the tensor, or the operator that asked for it
    std::uint32_t category = 0;             ///< index into `names`: "activations", …
};

class Trace {
public:
    // Columns, one entry per slice, sorted by track and then by start.
    std::vector<std::uint32_t> track;
    std::vector<Time> start, duration;
    std::vector<SliceCategory> category;
    std::vector<std::uint32_t> name;        ///< index into `names`
    std::vector<std::int64_t> task;         ///< the Schedule's task id, or −1
    std::vector<std::int32_t> collective;   ///< index into `collectives`, or −1
    std::vector<std::uint64_t> origin;      ///< where a reader found the slice (traces/import/read_trace.h); empty if from no file

    std::vector<Track> tracks;
    std::vector<std::string> names;
    std::vector<CollectiveDetails> collectives;
    std::vector<Flow> flows;
    std::vector<CounterSeries> counters;
    std::vector<Instant> instants;          ///< by track, then time
    std::vector<Allocation> allocations;    ///< by rank, then begin; empty if not known
    std::map<std::int64_t, std::string> rankNames;  ///< what to call a rank that is not one of a training job ("python 4711"); mostly empty
    std::string title;
    std::int64_t worldSize = 1;

    std::size_t size() const { return start.size(); }
    Time end() const;                       ///< of the last slice to end; zero without slices. O(size)
    /// Slices of track t are [firstSlice(t), firstSlice(t + 1)). O(log size). REQUIRES: t ≤ tracks.size().
    std::size_t firstSlice(std::size_t t) const;
};

}  // namespace ringside
