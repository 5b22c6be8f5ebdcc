// Trace events: the events of a Chrome or Kineto JSON file one by one, as they stand in the text, without holding the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "model/base/result.h"
#include "traces/import/byte_source.h"
#include "traces/import/json_scan.h"

namespace ringside {

/// One event. The tokens point into a buffer that lives until the handler returns.
struct TraceEvent {
    std::uint64_t offset = 0, number = 0;  ///< of its opening bracket in the content; which of the events it is
    char phase = 0;                        ///< 'X', 'B', …; 0 if it has none
    JsonToken name, category, pid, tid, ts, dur, id, id2, binding, args;
    /// Members of `args` that most events have or that decide what an event is.
    JsonToken externalId, correlation, stream, device, task, countsAs, label, collectiveName;
    bool isWritten = false;  ///< an event of ours that stands for a slice (it has "category")
};

/// What a reader does with the parts of a file.
class TraceEventHandler {
public:
    virtual ~TraceEventHandler() = default;
    virtual void event(const TraceEvent& event) = 0;
    /// A member of the top level besides the events: `text` is its JSON.
    virtual void member(std::string_view key, std::string_view text) = 0;
    /// Something that is wrong with the text: what, and at which byte.
    virtual void fault(const char* what, std::uint64_t offset, std::uint64_t eventNumber) = 0;
    /// Between two pieces of the file; false ends the reading.
    virtual bool goOn(double fraction) = 0;
};

/// Reads `source` to its end. Broken events are stepped over, up to the next thing that looks like one. Fails (bad input) where
/// the content is no JSON of trace events at all. False: the handler ended it. Holds about 1 MiB, more only for longer events.
Result<bool> readTraceEvents(ByteSource& source, const std::string& name, TraceEventHandler& handler);

}  // namespace ringside
