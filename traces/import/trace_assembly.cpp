#include "traces/import/trace_assembly.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "traces/import/collective_args.h"
#include "traces/import/event_kinds.h"

namespace ringside {
namespace {

constexpr std::int64_t kFirstWord = std::numeric_limits<std::int64_t>::min() + 1;

std::uint64_t flowKey(std::string_view category, std::string_view id) {
    return std::hash<std::string_view>{}(category) * 0x9e3779b97f4a7c15ULL ^ std::hash<std::string_view>{}(id);
}

std::string_view asText(const JsonToken& token, std::string& scratch) {
    if (token.kind != JsonToken::Kind::String || !token.escaped) return token.text;
    scratch = unescape(token.text);
    return scratch;
}

}  // namespace

TraceAssembly::TraceAssembly(std::string name, std::size_t fileIndex, std::uint64_t contentSize, const ReadTraceOptions& options)
    : name_(std::move(name)), fileIndex_(fileIndex), contentSize_(contentSize), options_(options) {}

void TraceAssembly::fault(const char* what, std::uint64_t offset, std::uint64_t eventNumber) {
    notes_.add(what, fmt::format("{}: event {} (byte {})", name_, eventNumber, offset));
}

bool TraceAssembly::goOn(double fraction) {
    // Columns that double when they are full would for a moment take three times what they need.
    if (!reserved_ && lastOffset_ > (2 << 20)) {
        const double perByte = static_cast<double>(builder_.sliceCount()) / static_cast<double>(lastOffset_);
        builder_.reserve(static_cast<std::size_t>(perByte * 1.1 * static_cast<double>(contentSize_)) + 1024);
        reserved_ = true;
    }
    if (options_.progress) options_.progress(fraction);
    return !(options_.cancel && options_.cancel->load(std::memory_order_relaxed));
}

void TraceAssembly::member(std::string_view key, std::string_view text) {
    const std::string_view unquoted = text.size() >= 2 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
    if (key == "distributedInfo") {
        distributedInfo_ = std::string(text);
        readDistributedInfo();
    }
    else if (key == "deviceProperties") deviceProperties_ = std::string(text);
    else if (key == "baseTimeNanoseconds") baseNanoseconds_ = wholeNumber({JsonToken::Kind::Scalar, false, text});
    else if (key == "traceName") title_ = unescape(unquoted);
    else if (key == "producer" && unquoted == "ringside") isOurs_ = true;
    if (key == "distributedInfo" || key == "deviceProperties" || key == "schemaVersion" || key == "baseTimeNanoseconds") sawKineto_ = true;
    if (key != "deviceProperties" && key != "traceName" && members_.size() < 1000) members_.emplace_back(std::string(key), std::string(text.substr(0, 1024)));
}

// ---- who and when ------------------------------------------------------------------------------------------------------

std::int64_t TraceAssembly::keyOf(const JsonToken& token) {
    if (token.kind == JsonToken::Kind::None) return 0;
    if (!token.text.empty())
        if (const auto number = wholeNumber(token); number && *number > kFirstNumber) return *number;
    const std::string word = textOf(token);
    if (words_.size() >= 500000) return kFirstWord;
    auto it = std::find(words_.begin(), words_.end(), word);
    if (it == words_.end()) it = words_.insert(words_.end(), word);
    return kFirstWord + (it - words_.begin());
}

std::string TraceAssembly::keyText(std::int64_t key) const {
    if (key > kFirstNumber) return std::to_string(key);
    const auto word = static_cast<std::size_t>(key - kFirstWord);
    return word < words_.size() ? words_[word] : std::string();
}

std::uint32_t TraceAssembly::rowOf(const TraceEvent& event) {
    // Events of one row come in runs.
    if (!rows_.empty() && event.pid.text == lastPid_ && event.tid.text == lastTid_) return lastRow_;
    lastRow_ = rowOf(keyOf(event.pid), keyOf(event.tid));
    lastPid_ = std::string(event.pid.text);
    lastTid_ = std::string(event.tid.text);
    return lastRow_;
}

std::uint32_t TraceAssembly::rowOf(std::int64_t pid, std::int64_t tid) {
    const auto [it, isNew] = rowIds_.try_emplace({pid, tid}, static_cast<std::uint32_t>(rows_.size()));
    if (isNew) {
        Row row;
        row.pid = pid;
        row.tid = tid;
        rows_.push_back(std::move(row));
    }
    return it->second;
}

std::uint32_t TraceAssembly::trackOf(std::uint32_t row) {
    if (rows_[row].track == kNoTrack) rows_[row].track = builder_.addTrack(0, 0, TrackKind::Host, {});
    return rows_[row].track;
}

std::uint32_t TraceAssembly::nameOf(const JsonToken& token) {
    std::string scratch;
    return builder_.internName(asText(token, scratch));
}

bool TraceAssembly::timeOf(const TraceEvent& event, const JsonToken& token, Time& time) {
    const auto exact = exactMicroseconds(token);
    if (!exact) {
        fault("an event without a time ('ts' is missing or no number); left out", event);
        return false;
    }
    if (!hasBase_) {
        // Ours begin at 0 and stay there; other files may count from 1970.
        base_ = isOurs_ ? 0 : exact->whole;
        hasBase_ = true;
    }
    time = exact->since(base_);
    if (time >= Time::max() || Time{} - time >= Time::max()) {
        fault("an event more than 50 days from the first; left out", event);
        return false;
    }
    return true;
}

// ---- events ------------------------------------------------------------------------------------------------------------

void TraceAssembly::event(const TraceEvent& event) {
    lastOffset_ = event.offset;
    switch (event.phase) {
        case 'X': return slice(event);
        case 'B': return begin(event);
        case 'E': return end(event);
        case 'b': case 'e': case 'n': case 'S': case 'T': case 'p': case 'F': return asyncEvent(event);
        case 'i': case 'I': case 'R': return instant(event);
        case 'C': return counter(event);
        case 's': case 't': case 'f': return flow(event);
        case 'M': return metadata(event);
        case 0: return fault("an event without a phase ('ph'); left out", event);
        default: return fault("an event of a kind that is not shown (object, sample, clock, memory dump, …)", event);
    }
}

SliceCategory TraceAssembly::categoryOf(const TraceEvent& event, std::string_view name, Row& row) {
    if (isOurs_) {
        SliceCategory category = SliceCategory::Host;
        categoryFromName(event.countsAs.text, category);
        return category;
    }
    const EventKind kind = eventKindOf(event.category.text, name);
    if (kind != EventKind::Unknown) sawKineto_ = true;
    if (isOnDevice(kind)) {
        row.onDevice = true;
        sawDevice_ = sawDevice_ || kind == EventKind::Kernel;
    }
    switch (kind) {
        case EventKind::Kernel: return isCommunicationKernel(name) ? SliceCategory::Communication : SliceCategory::Compute;
        case EventKind::Memcpy: case EventKind::Memset: return SliceCategory::Copy;
        case EventKind::DeviceMark: return SliceCategory::Marker;
        case EventKind::DeviceSync: case EventKind::RuntimeSync: return SliceCategory::Wait;
        case EventKind::Operator: row.operators = true; return SliceCategory::Host;
        case EventKind::Runtime: case EventKind::Python: case EventKind::Overhead: return SliceCategory::Host;
        case EventKind::Mark:
            row.gloo = row.gloo || isGlooRange(name);
            return isGlooRange(name) ? SliceCategory::Communication : SliceCategory::Marker;
        case EventKind::Span: row.isSpan = true; return SliceCategory::Marker;
        case EventKind::Unknown: return isCommunicationKernel(name) ? SliceCategory::Communication : SliceCategory::Host;
    }
    return SliceCategory::Host;
}

void TraceAssembly::account(Row& row, SliceCategory category, Time duration) {
    if (category == SliceCategory::Compute) row.compute += duration;
    else if (category == SliceCategory::Communication) row.communication += duration;
    else if (category == SliceCategory::Copy) row.copy += duration;
}

std::int32_t TraceAssembly::collectiveOf(const TraceEvent& event, std::string_view name, bool isKernel, bool& vague) {
    std::string groupName;
    std::optional<CollectiveDetails> details;
    if (event.collectiveName.kind == JsonToken::Kind::String) details = collectiveFromArgs(event.args.text, &groupName);
    if (!details) {
        if (isGlooRange(name)) details = collectiveFromGlooRange(name, event.args.text, worldSize_);
        else if (isKernel) {
            details = collectiveFromKernelName(name);
            vague = true;
        } else {
            return -1;
        }
    } else if (isKernel && !isOurs_ && details->algorithm.empty()) {
        CollectiveDetails named = collectiveFromKernelName(name);
        details->algorithm = std::move(named.algorithm);
        details->protocol = std::move(named.protocol);
    }
    groupNames_.push_back(std::move(groupName));
    return builder_.addCollective(std::move(*details));
}

void TraceAssembly::slice(const TraceEvent& event) {
    // Our export adds calls and marks that other readers want; they are no slices of the trace.
    if (isOurs_ && !event.isWritten) return;
    Time start, duration;
    if (!timeOf(event, event.ts, start)) return;
    if (const auto length = exactMicroseconds(event.dur)) duration = length->since(0);
    else fault("a slice without a duration ('dur' is missing or no number); shown with none", event);
    if (duration < Time{}) {
        fault("a slice of negative duration; shown with none", event);
        duration = Time{};
    }
    if (start + duration >= Time::max()) return fault("an event more than 50 days from the first; left out", event);

    std::string scratch;
    const JsonToken& label = isOurs_ && event.label.kind == JsonToken::Kind::String ? event.label : event.name;
    const std::string_view name = asText(label, scratch);
    const std::uint32_t row = rowOf(event);
    const SliceCategory category = categoryOf(event, name, rows_[row]);
    account(rows_[row], category, duration);
    bool vague = false;
    std::int32_t collective = -1;
    if (isOurs_) {
        if (event.collectiveName.kind == JsonToken::Kind::String) {
            std::int64_t comm = -1;
            forEachMember(event.args.text, [&](std::string_view key, const JsonToken& value) {
                if (key == "Comms Id") comm = wholeNumber(value).value_or(-1);
            });
            const auto known = comm >= 0 ? ourCollectives_.find(comm) : ourCollectives_.end();
            collective = known != ourCollectives_.end() ? known->second : collectiveOf(event, name, false, vague);
            if (comm >= 0) ourCollectives_.try_emplace(comm, collective);
        }
    } else if (category == SliceCategory::Communication || event.collectiveName.kind == JsonToken::Kind::String) {
        collective = collectiveOf(event, name, category == SliceCategory::Communication, vague);
    }
    const std::uint32_t id = builder_.addSlice(trackOf(row), start, duration, category, builder_.internName(name), wholeNumber(event.task).value_or(-1), collective,
                                               originValue(fileIndex_, event.offset));
    latest_ = std::max(latest_, start + duration);
    if (vague) vague_.push_back(id);
    if (isOurs_) {
        if (const auto own = wholeNumber(event.correlation.kind != JsonToken::Kind::None ? event.correlation : event.externalId)) ourSlices_.try_emplace(*own, id);
        return;
    }
    if (event.correlation.kind == JsonToken::Kind::None) return;
    if (const auto correlation = wholeNumber(event.correlation); correlation && *correlation != 0)
        (rows_[row].onDevice ? launched_ : calls_).push_back({*correlation, id});
}

void TraceAssembly::begin(const TraceEvent& event) {
    Time time;
    if (!timeOf(event, event.ts, time)) return;
    Row& row = rows_[rowOf(event)];
    std::string scratch;
    const std::string_view name = asText(event.name, scratch);
    row.open.push_back({*exactMicroseconds(event.ts), builder_.internName(name), categoryOf(event, name, row), event.offset, event.number});
}

void TraceAssembly::end(const TraceEvent& event) {
    Time time;
    if (!timeOf(event, event.ts, time)) return;
    const std::uint32_t rowId = rowOf(event);
    Row& row = rows_[rowId];
    if (row.open.empty()) return fault("an end ('E') without a begin; left out", event);
    const Open open = row.open.back();
    row.open.pop_back();
    const Time start = open.at.since(base_);
    if (time < start) return fault("an end ('E') before its begin; left out", event);
    account(row, open.category, time - start);
    builder_.addSlice(trackOf(rowId), start, time - start, open.category, open.name, -1, -1, originValue(fileIndex_, open.offset));
    latest_ = std::max(latest_, time);
}

void TraceAssembly::asyncEvent(const TraceEvent& event) {
    Time time;
    if (!timeOf(event, event.ts, time)) return;
    std::string_view id = event.id.text;
    std::string local;
    if (event.id2.kind == JsonToken::Kind::Object)
        forEachMember(event.id2.text, [&](std::string_view key, const JsonToken& value) {
            local = key == "local" ? fmt::format("{} {}", event.pid.text, value.text) : std::string(value.text);
            id = local;
        });
    const std::uint64_t key = flowKey(event.category.text, id);
    JsonToken rowName{JsonToken::Kind::String, false, {}};
    const std::string word = fmt::format("async {}", event.category.text.empty() ? event.name.text : event.category.text);
    rowName.text = word;
    const std::uint32_t rowId = rowOf(keyOf(event.pid), keyOf(rowName));
    rows_[rowId].isAsync = true;
    const bool begins = event.phase == 'b' || event.phase == 'S', ends = event.phase == 'e' || event.phase == 'F';
    if (begins) {
        std::string scratch;
        const std::string_view name = asText(event.name, scratch);
        async_[key].emplace_back(rowId, Open{*exactMicroseconds(event.ts), builder_.internName(name), categoryOf(event, name, rows_[rowId]), event.offset, event.number});
        return;
    }
    if (!ends) return builder_.addInstant(trackOf(rowId), time, nameOf(event.name));
    const auto it = async_.find(key);
    if (it == async_.end() || it->second.empty()) return fault("an asynchronous end without a begin; left out", event);
    const auto [beginRow, open] = it->second.back();
    it->second.pop_back();
    const Time start = open.at.since(base_);
    if (time < start) return fault("an asynchronous end before its begin; left out", event);
    account(rows_[beginRow], open.category, time - start);
    builder_.addSlice(trackOf(beginRow), start, time - start, open.category, open.name, -1, -1, originValue(fileIndex_, open.offset));
    latest_ = std::max(latest_, time);
}

void TraceAssembly::instant(const TraceEvent& event) {
    Time time;
    if (!timeOf(event, event.ts, time)) return;
    if (isOurs_ && event.name.text == "[memory]") return ourAllocation(event, time);
    const std::uint32_t row = rowOf(event);
    if (event.name.text == "[memory]" && event.args.kind == JsonToken::Kind::Object) {
        MemoryEvent memory = memoryEventFromArgs(event.args.text);
        memory.at = time;
        memory.track = row;
        memory_.push_back(memory);
        return;
    }
    builder_.addInstant(trackOf(row), time, nameOf(event.name));
}

/// Ours say the tensor with its allocation; the release is found by its number.
void TraceAssembly::ourAllocation(const TraceEvent& event, Time at) {
    const MemoryEvent memory = memoryEventFromArgs(event.args.text);
    if (memory.bytes < 0) {
        const auto it = ourAllocations_.find(memory.address);
        if (it != ourAllocations_.end()) it->second.end = at;
        return;
    }
    Allocation allocation{keyOf(event.pid), at, Time::max(), memory.bytes, 0, 0};
    allocation.name = allocation.category = builder_.internName("allocation");
    forEachMember(event.args.text, [&](std::string_view key, const JsonToken& value) {
        if (key == "tensor") allocation.name = nameOf(value);
        else if (key == "memory category") allocation.category = nameOf(value);
    });
    ourAllocations_.try_emplace(memory.address, allocation);
}

void TraceAssembly::counter(const TraceEvent& event) {
    Time time;
    if (!timeOf(event, event.ts, time)) return;
    const std::pair<std::int64_t, std::string> key{keyOf(event.pid), textOf(event.name) + (event.id.kind == JsonToken::Kind::None ? "" : " " + textOf(event.id))};
    const auto [it, isNew] = counters_.try_emplace(key);
    CounterSeries& series = it->second;
    if (isNew) counterOrder_.push_back(key);
    if (event.args.kind != JsonToken::Kind::Object) return fault("a counter without values; left out", event);
    const std::size_t rows = series.at.size();
    series.at.push_back(time);
    series.values.resize(series.at.size() * series.series.size(), 0);
    forEachMember(event.args.text, [&](std::string_view name, const JsonToken& value) {
        const auto number = realNumber(value);
        if (!number || std::fabs(*number) > 9e18) return fault("a counter with a value that is no number; taken as 0", event);
        const auto whole = wholeNumber(value);
        if (static_cast<double>(*whole) != std::floor(*number) || *number != std::floor(*number)) fault("a counter with a fraction; rounded to whole numbers", event);
        const auto found = std::find(series.series.begin(), series.series.end(), name);
        const auto column = static_cast<std::size_t>(found - series.series.begin());
        if (found == series.series.end()) {
            // A new series: the rows so far get a column more.
            std::vector<Bytes> wider((rows + 1) * (series.series.size() + 1), 0);
            for (std::size_t r = 0; r <= rows; ++r)
                for (std::size_t s = 0; s < series.series.size(); ++s) wider[r * (series.series.size() + 1) + s] = series.values[r * series.series.size() + s];
            series.values = std::move(wider);
            series.series.emplace_back(name);
        }
        series.values[rows * series.series.size() + column] = *number == std::floor(*number) ? *whole : std::llround(*number);
    });
    latest_ = std::max(latest_, time);
}

void TraceAssembly::flow(const TraceEvent& event) {
    if (isOurs_ && event.args.kind == JsonToken::Kind::Object) {
        // Ours name the slices; each pair does so twice.
        if (event.phase != 's') return;
        std::int64_t from = -1, to = -1;
        forEachMember(event.args.text, [&](std::string_view key, const JsonToken& value) {
            if (key == "from") from = wholeNumber(value).value_or(-1);
            if (key == "to") to = wholeNumber(value).value_or(-1);
        });
        if (from < 0 || to < 0 || from > 0xfffffffeLL || to > 0xfffffffeLL) return fault("a flow that names no slices; left out", event);
        const Flow::Kind kind = event.category.text == "ac2g" ? Flow::Kind::Launch : event.category.text == "collective" ? Flow::Kind::Collective : Flow::Kind::Dependency;
        ourFlows_.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to), kind});
        return;
    }
    Time time;
    if (!timeOf(event, event.ts, time)) return;
    FlowEnd end;
    end.key = flowKey(event.category.text, event.id.text);
    end.at = time;
    end.track = rowOf(event);
    end.role = event.phase == 's' ? FlowEnd::Role::Start : event.phase == 't' ? FlowEnd::Role::Step : FlowEnd::Role::End;
    end.toNext = event.phase == 'f' && event.binding.text != "e";
    const bool isLaunch = event.category.text == "ac2g" || (event.category.text == "async" && event.name.text == "launch");
    end.kind = isLaunch ? Flow::Kind::Launch : event.category.text == "collective" ? Flow::Kind::Collective : Flow::Kind::Dependency;
    flowEnds_.push_back(end);
}

void TraceAssembly::metadata(const TraceEvent& event) {
    if (event.args.kind != JsonToken::Kind::Object) return;
    const std::int64_t pid = keyOf(event.pid), tid = keyOf(event.tid);
    const std::string_view what = event.name.text;
    std::string kind, counter;
    std::int64_t ourTrack = -1, stream = 0, limit = 0;
    forEachMember(event.args.text, [&](std::string_view key, const JsonToken& value) {
        if (what == "process_name" && key == "name") processes_[pid].name = textOf(value);
        else if (what == "process_labels" && key == "labels") processes_[pid].labels = textOf(value);
        else if (what == "process_sort_index" && key == "sort_index") {
            processes_[pid].sortIndex = wholeNumber(value).value_or(0);
            processes_[pid].hasSortIndex = true;
        } else if (what == "thread_name" && key == "name") {
            RowNames& names = rowNames_[{pid, tid}];
            const std::string text = textOf(value);
            const bool gloo = text.find("pt_gloo_runloop") != std::string::npos;
            // A thread that PyTorch names twice keeps the name that says more.
            if (!names.gloo) names.name = text;
            names.gloo = names.gloo || gloo;
        } else if (what == "thread_sort_index" && key == "sort_index") rowNames_[{pid, tid}].sortIndex = wholeNumber(value).value_or(0);
        else if (key == "kind") kind = textOf(value);
        else if (key == "track") ourTrack = wholeNumber(value).value_or(-1);
        else if (key == "stream") stream = wholeNumber(value).value_or(0);
        else if (key == "counter") counter = textOf(value);
        else if (key == "limit") limit = wholeNumber(value).value_or(0);
    });
    if (what == "counter_limit") counterLimits_[{pid, counter}] = limit;
    if (!isOurs_ || what != "thread_name" || ourTrack < 0) return;
    // Rows of one track, which overlapping slices were spread over, become one again.
    const std::uint32_t row = rowOf(pid, tid);
    const auto [it, isNew] = ourTracks_.try_emplace(ourTrack, 0);
    if (isNew) {
        TrackKind trackKind = TrackKind::Compute;
        trackKindFromName(kind, trackKind);
        it->second = builder_.addTrack(pid, stream, trackKind, rowNames_[{pid, tid}].name);
    }
    rows_[row].track = it->second;
}

}  // namespace ringside
