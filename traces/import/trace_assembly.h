// TraceAssembly: makes a Trace of the events of one file. What an event is, on which track it belongs and how slices are joined
// is decided here and in event_kinds, collective_args, memory_events and trace_links.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/import/event_values.h"
#include "traces/import/memory_events.h"
#include "traces/import/read_trace.h"
#include "traces/import/trace_events.h"
#include "traces/import/trace_links.h"
#include "traces/trace_builder.h"

namespace ringside {

/// Handles the events of one file; finish() gives what they make. `name` is the file's path: it stands in notes, and in its last
/// part the rank is looked for if the file does not say it.
class TraceAssembly : public TraceEventHandler {
public:
    /// `fileIndex` goes into Trace::origin; `contentSize`, a guess of the file's length, saves memory while it grows.
    TraceAssembly(std::string name, std::size_t fileIndex, std::uint64_t contentSize, const ReadTraceOptions& options);

    void event(const TraceEvent& event) override;
    void member(std::string_view key, std::string_view text) override;
    void fault(const char* what, std::uint64_t offset, std::uint64_t eventNumber) override;
    bool goOn(double fraction) override;

    /// Fails (bad input) where there is no slice at all.
    Result<ImportedTrace> finish();

private:
    static constexpr std::uint32_t kNoTrack = 0xffffffffU;
    /// Pids and tids that are words get keys up to here, far below any number that a process or thread has.
    static constexpr std::int64_t kFirstNumber = std::numeric_limits<std::int64_t>::min() + 1000000;

    /// A slice that has begun and not ended (`B`, `b`).
    struct Open {
        ExactMicroseconds at;
        std::uint32_t name = 0;
        SliceCategory category = SliceCategory::Host;
        std::uint64_t offset = 0, number = 0;
    };
    /// One (pid, tid).
    struct Row {
        std::int64_t pid = 0, tid = 0;
        std::uint32_t track = kNoTrack;
        std::vector<Open> open;
        // What runs there: decides the kind of its track.
        Time compute, communication, copy;
        bool onDevice = false, gloo = false, operators = false, isSpan = false, isAsync = false;
    };
    struct RowNames {
        std::string name;
        std::int64_t sortIndex = 0;
        bool gloo = false;
    };
    struct Process {
        std::string name, labels;
        std::int64_t sortIndex = 0;
        bool hasSortIndex = false;
    };
    struct PairHash {
        std::size_t operator()(const std::pair<std::int64_t, std::int64_t>& key) const {
            return std::hash<std::uint64_t>{}(static_cast<std::uint64_t>(key.first) * 0x9e3779b97f4a7c15ULL ^ static_cast<std::uint64_t>(key.second));
        }
    };
    struct Group {
        std::string name, description;
        std::vector<std::int64_t> ranks;
    };

    // The parts of event().
    void slice(const TraceEvent& event);
    void begin(const TraceEvent& event);
    void end(const TraceEvent& event);
    void asyncEvent(const TraceEvent& event);
    void instant(const TraceEvent& event);
    void ourAllocation(const TraceEvent& event, Time at);
    void counter(const TraceEvent& event);
    void flow(const TraceEvent& event);
    void metadata(const TraceEvent& event);

    void fault(const char* what, const TraceEvent& event) { fault(what, event.offset, event.number); }
    std::int64_t keyOf(const JsonToken& token);            ///< of a pid or tid: a number, also in quotes, or a word
    std::string keyText(std::int64_t key) const;
    std::uint32_t rowOf(const TraceEvent& event);
    std::uint32_t rowOf(std::int64_t pid, std::int64_t tid);
    std::uint32_t trackOf(std::uint32_t row);              ///< made with the first thing on it
    std::uint32_t nameOf(const JsonToken& token);
    bool timeOf(const TraceEvent& event, const JsonToken& token, Time& time);
    std::int32_t collectiveOf(const TraceEvent& event, std::string_view name, bool isKernel, bool& vague);
    void account(Row& row, SliceCategory category, Time duration);
    SliceCategory categoryOf(const TraceEvent& event, std::string_view name, Row& row);

    // The parts of finish().
    void closeOpen();
    TraceFormat formatOf() const;
    std::int64_t ownRank();
    void nameTracks(TraceFormat format, std::int64_t rank);
    void orderTracks(const std::vector<std::array<std::int64_t, 4>>& sortKeys);
    void shiftToZero(ImportedTrace& out, TraceFormat format) const;
    void addCounters(ImportedTrace& out, std::int64_t rank, TraceFormat format);
    void readDistributedInfo();
    void settleCollectives(Trace& trace, TraceFormat format) const;
    void link(ImportedTrace& out, const std::vector<std::uint32_t>& newIds, std::int64_t rank, TraceFormat format);
    void describe(ImportedTrace& out, std::int64_t rank);

    std::string name_;
    std::size_t fileIndex_;
    std::uint64_t contentSize_;
    const ReadTraceOptions& options_;
    TraceBuilder builder_;
    ImportNotes notes_;

    bool isOurs_ = false, sawKineto_ = false, sawDevice_ = false, hasBase_ = false, reserved_ = false;
    std::int64_t base_ = 0;  ///< whole microseconds that all times are relative to
    Time latest_;
    std::uint64_t lastOffset_ = 0;

    std::vector<Row> rows_;
    std::unordered_map<std::pair<std::int64_t, std::int64_t>, std::uint32_t, PairHash> rowIds_;
    std::map<std::pair<std::int64_t, std::int64_t>, RowNames> rowNames_;
    std::map<std::int64_t, Process> processes_;
    std::map<std::int64_t, std::string> rankNames_;
    std::vector<std::string> words_;                       ///< pids and tids that are no numbers
    std::uint32_t lastRow_ = 0;
    std::string lastPid_, lastTid_;
    std::map<std::int64_t, std::uint32_t> ourTracks_;      ///< of our own export: its track number → track

    std::unordered_map<std::uint64_t, std::vector<std::pair<std::uint32_t, Open>>> async_;
    std::vector<Correlated> calls_, launched_;
    std::vector<FlowEnd> flowEnds_;                        ///< `track` is the row until they are linked
    std::unordered_map<std::int64_t, std::uint32_t> ourSlices_;
    std::vector<Flow> ourFlows_;                           ///< by the ids of our own export
    std::unordered_map<std::int64_t, std::int32_t> ourCollectives_;
    std::map<std::int64_t, Allocation> ourAllocations_;    ///< by the number in our own export
    std::vector<std::string> groupNames_;                  ///< per collective
    std::vector<std::uint32_t> vague_;                     ///< communication kernels of which only the name is known
    std::vector<MemoryEvent> memory_;                      ///< `track` is the row until they are added
    std::map<std::pair<std::int64_t, std::string>, CounterSeries> counters_;
    std::vector<std::pair<std::int64_t, std::string>> counterOrder_;
    std::map<std::pair<std::int64_t, std::string>, Bytes> counterLimits_;

    std::vector<std::pair<std::string, std::string>> members_;
    std::string distributedInfo_, deviceProperties_, title_;
    std::optional<std::int64_t> infoRank_, baseNanoseconds_;
    std::string backend_;
    std::int64_t worldSize_ = 0;
    std::vector<Group> groups_;
};

}  // namespace ringside
