#include "traces/export/chrome_json.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "model/base/json_cursor.h"
#include "traces/analysis/lanes.h"
#include "traces/collective_names.h"
#include "traces/export/atomic_file.h"

namespace ringside {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

std::string jsonString(const std::string& text) {
    // Names may come from other people's files: bytes that are not UTF-8 become U+FFFD instead of broken JSON.
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// "[0, 1, 2]"; of more than 30 ranks the middle is left out, so that big groups do not fill the file.
std::string ranksText(const std::vector<std::int64_t>& ranks) {
    std::string text = "[";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks.size() > 30 && i == 29) {
            text += ", ...";
            i = ranks.size() - 1;
        }
        fmt::format_to(std::back_inserter(text), "{}{}", i == 0 ? "" : ", ", ranks[i]);
    }
    return text + "]";
}

struct ProcessGroup {
    std::string description;
    std::int64_t size = 0;
    std::vector<std::int64_t> ranks;
};

/// One row of the written file.
struct Row {
    std::int64_t tid = 0;
    std::string name;
    int sortIndex = 0;
};

class Writer {
public:
    Writer(const Trace& trace, const ChromeTraceOptions& options) : trace_(trace), options_(options) {}

    std::string write() {
        collectRanks();
        layOutRows();
        collectGroups();
        prepareNames();
        findLaunches();
        out_.reserve(4096 + trace_.size() * 400);
        header();
        for (const std::int64_t rank : ranks_) processMetadata(rank);
        for (std::size_t t = 0; t < trace_.tracks.size(); ++t)
            if (wanted(t)) threadMetadata(t);
        for (const std::int64_t rank : ranks_) profilerStep(rank);
        for (std::size_t i = 0; i < trace_.size(); ++i)
            if (wanted(trace_.track[i])) slice(i);
        flows();
        for (const Instant& at : trace_.instants)
            if (wanted(at.track)) instant(at);
        allocations();
        for (const CounterSeries& counter : trace_.counters)
            if (!options_.rank || counter.rank == *options_.rank) counters(counter);
        put("\n  ],\n  \"traceName\": {}\n}}\n", jsonString(trace_.title));
        return std::move(out_);
    }

private:
    template <class... Args>
    void put(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }

    bool wanted(std::size_t track) const { return !options_.rank || trace_.tracks[track].rank == *options_.rank; }

    // ---- preparation ---------------------------------------------------------------------------------------------------

    void collectRanks() {
        std::set<std::int64_t> ranks;
        for (std::size_t t = 0; t < trace_.tracks.size(); ++t)
            if (wanted(t)) ranks.insert(trace_.tracks[t].rank);
        ranks_.assign(ranks.begin(), ranks.end());
    }

    /// Each track gets its stream number as tid if it is the first to ask for it, and more rows where slices overlap.
    void layOutRows() {
        std::map<std::int64_t, std::set<std::int64_t>> taken;
        const auto take = [&](std::int64_t rank, std::int64_t tid) {
            if (!taken[rank].insert(tid).second) {
                tid = std::max<std::int64_t>(10000, *taken[rank].rbegin() + 1);
                taken[rank].insert(tid);
            }
            return tid;
        };
        rows_.resize(trace_.tracks.size());
        lanes_.resize(trace_.size(), 0);
        // Device streams first: readers match their tid with the `stream` of the kernels.
        for (const bool host : {false, true}) {
            for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
                const Track& track = trace_.tracks[t];
                if (!wanted(t) || (track.kind == TrackKind::Host) != host) continue;
                rows_[t].push_back({take(track.rank, track.stream), track.name, static_cast<int>(track.kind) * 100});
            }
        }
        for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
            if (!wanted(t)) continue;
            const std::vector<std::uint32_t> lanes = nestingLanes(trace_, t);
            std::copy(lanes.begin(), lanes.end(), lanes_.begin() + static_cast<std::ptrdiff_t>(trace_.firstSlice(t)));
            const std::uint32_t count = lanes.empty() ? 1 : *std::max_element(lanes.begin(), lanes.end()) + 1;
            for (std::uint32_t lane = 1; lane < count; ++lane)
                rows_[t].push_back({take(trace_.tracks[t].rank, 10000), fmt::format("{} (overlapping, {})", trace_.tracks[t].name, lane),
                                    rows_[t][0].sortIndex + static_cast<int>(lane)});
        }
        for (const std::int64_t rank : ranks_) stepTid_[rank] = take(rank, 10000);
    }

    void collectGroups() {
        groupOf_.reserve(trace_.collectives.size());
        groups_.push_back({"default_pg", trace_.worldSize, {}});
        for (std::int64_t r = 0; r < trace_.worldSize && r < 4096; ++r) groups_[0].ranks.push_back(r);
        for (const CollectiveDetails& details : trace_.collectives) {
            if (details.group.empty() && details.ranks.empty() && details.groupSize == trace_.worldSize) {
                groupOf_.push_back(0);
                continue;
            }
            const std::string name = details.group.empty() ? fmt::format("group of {}", details.groupSize) : details.group;
            const auto same = [&](const ProcessGroup& g) { return g.description == name && g.size == details.groupSize && g.ranks == details.ranks; };
            const auto it = std::find_if(groups_.begin() + 1, groups_.end(), same);
            groupOf_.push_back(static_cast<std::size_t>(it - groups_.begin()));
            if (it == groups_.end()) groups_.push_back({name, details.groupSize, details.ranks});
        }
    }

    void prepareNames() {
        for (const std::string& name : trace_.names) names_.push_back(jsonString(name));
        for (const CollectiveDetails& details : trace_.collectives)
            kernelNames_.push_back(options_.backend == "nccl" ? jsonString(ncclKernelName(details)) : "\"\"");
    }

    void findLaunches() {
        launcher_.resize(trace_.size(), kNone);
        launched_.resize(trace_.size());
        withItsCall_.resize(trace_.flows.size());
        for (std::size_t f = 0; f < trace_.flows.size(); ++f) {
            const Flow& flow = trace_.flows[f];
            if (flow.kind != Flow::Kind::Launch || !isHost(flow.from) || launcher_[flow.to] != kNone) continue;
            launcher_[flow.to] = flow.from;
            launched_[flow.from].push_back(flow.to);
            withItsCall_[f] = true;
        }
    }

    // ---- what stands around the events ---------------------------------------------------------------------------------

    void header() {
        put("{{\n  \"schemaVersion\": 1,\n  \"producer\": \"ringside\",\n  \"deviceProperties\": [");
        const std::string device = jsonString(options_.deviceName.empty() ? "simulated" : options_.deviceName);
        for (std::size_t i = 0; i < ranks_.size(); ++i)
            put("{}\n    {{\"id\": {}, \"name\": {}, \"totalGlobalMem\": {}}}", i == 0 ? "" : ",", ranks_[i], device, options_.deviceMemory);
        put("\n  ],\n  \"distributedInfo\": {{\"backend\": {}, \"rank\": {}, \"world_size\": {}, \"pg_count\": {}, \"pg_config\": [", jsonString(options_.backend),
            ranks_.empty() ? 0 : ranks_.front(), trace_.worldSize, groups_.size());
        for (std::size_t g = 0; g < groups_.size(); ++g)
            put("{}{{\"pg_name\": \"{}\", \"pg_desc\": {}, \"backend_config\": {}, \"pg_size\": {}, \"ranks\": [{}]}}", g == 0 ? "" : ", ", g,
                jsonString(groups_[g].description), jsonString("cuda:" + options_.backend), groups_[g].size, fmt::join(groups_[g].ranks, ", "));
        put("]}},\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 0,\n  \"traceEvents\": [");
    }

    void event() {
        out_ += firstEvent_ ? "\n" : ",\n";
        firstEvent_ = false;
    }

    void processMetadata(std::int64_t rank) {
        const auto metadata = [&](const char* what, const std::string& args) {
            event();
            put("{{\"ph\": \"M\", \"name\": \"{}\", \"pid\": {}, \"tid\": 0, \"ts\": 0.000, \"args\": {{{}}}}}", what, rank, args);
        };
        // What stands behind the last rank are servers.
        const bool isRank = rank < trace_.worldSize;
        if (const auto named = trace_.rankNames.find(rank); named != trace_.rankNames.end()) metadata("process_name", "\"name\": " + jsonString(named->second));
        else metadata("process_name", isRank ? fmt::format("\"name\": \"rank {}\"", rank) : fmt::format("\"name\": \"server {}\"", rank - trace_.worldSize));
        if (isRank) metadata("process_labels", fmt::format("\"labels\": \"GPU {}\"", rank));
        metadata("process_sort_index", fmt::format("\"sort_index\": {}", rank));
        threadRow(rank, {stepTid_[rank], "steps", -1}, "");
    }

    /// `track`, `kind` and `stream` let our own reader make the track again that the rows were made of.
    void threadMetadata(std::size_t t) {
        const Track& track = trace_.tracks[t];
        const std::string origin = fmt::format(", \"track\": {}, \"kind\": \"{}\", \"stream\": {}", t, nameOf(track.kind), track.stream);
        for (const Row& row : rows_[t]) threadRow(track.rank, row, origin);
    }

    void threadRow(std::int64_t rank, const Row& row, std::string_view more) {
        event();
        put("{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"ts\": 0.000, \"args\": {{\"name\": {}{}}}}}", rank, row.tid, jsonString(row.name), more);
        event();
        put("{{\"ph\": \"M\", \"name\": \"thread_sort_index\", \"pid\": {}, \"tid\": {}, \"ts\": 0.000, \"args\": {{\"sort_index\": {}}}}}", rank, row.tid,
            row.sortIndex);
    }

    /// PyTorch's profiler marks steps; tools count on it. A trace that has no such marks is one step.
    void profilerStep(std::int64_t rank) {
        Time end;
        for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
            if (trace_.tracks[t].rank != rank) continue;
            for (std::size_t i = trace_.firstSlice(t); i < trace_.firstSlice(t + 1); ++i) {
                if (trace_.names[trace_.name[i]].starts_with("ProfilerStep#")) return;
                end = std::max(end, trace_.start[i] + trace_.duration[i]);
            }
        }
        event();
        put("{{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#{}\", \"pid\": {}, \"tid\": {}, ", options_.firstStep, rank, stepTid_[rank]);
        times(Time{}, end);
        put(", \"args\": {{\"External id\": 0}}}}");
    }

    // ---- slices --------------------------------------------------------------------------------------------------------

    bool isHost(std::size_t i) const { return trace_.tracks[trace_.track[i]].kind == TrackKind::Host; }
    std::int64_t rankOf(std::size_t i) const { return trace_.tracks[trace_.track[i]].rank; }
    std::int64_t tidOf(std::size_t i) const { return rows_[trace_.track[i]][lanes_[i]].tid; }
    static std::size_t idOf(std::size_t i) { return i + 1; }  ///< of a slice, as correlation and External id

    void microseconds(Time t) {
        std::int64_t ps = t.picoseconds();
        if (ps < 0) {
            out_ += '-';
            ps = -ps;
        }
        if (ps % 1000 == 0) put("{}.{:03}", ps / 1000000, ps % 1000000 / 1000);
        else put("{}.{:06}", ps / 1000000, ps % 1000000);
    }

    void times(Time start, Time duration) {
        out_ += "\"ts\": ";
        microseconds(start);
        out_ += ", \"dur\": ";
        microseconds(duration);
    }

    const char* categoryOf(std::size_t i) const {
        const bool host = isHost(i);
        switch (trace_.category[i]) {
            case SliceCategory::Compute:
            case SliceCategory::Optimizer:
            case SliceCategory::Communication: return host ? "cpu_op" : "kernel";
            case SliceCategory::Copy: return host ? "cpu_op" : "gpu_memcpy";
            case SliceCategory::Host: return "cpu_op";
            case SliceCategory::Wait: return host ? "cuda_runtime" : "cuda_sync";
            case SliceCategory::Marker: return host ? "user_annotation" : "gpu_user_annotation";
        }
        return "cpu_op";
    }

    void slice(std::size_t i) {
        const std::int32_t collective = trace_.collective[i];
        const std::string& ownName = names_[trace_.name[i]];
        const std::string* name = &ownName;
        const bool isDeviceWork = !isHost(i) && trace_.category[i] != SliceCategory::Wait && trace_.category[i] != SliceCategory::Marker;
        if (isDeviceWork && collective >= 0 && kernelNames_[static_cast<std::size_t>(collective)] != "\"\"")
            name = &kernelNames_[static_cast<std::size_t>(collective)];
        event();
        put("{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": {}, \"pid\": {}, \"tid\": {}, ", categoryOf(i), *name, rankOf(i), tidOf(i));
        times(trace_.start[i], trace_.duration[i]);
        put(", \"args\": {{\"External id\": {}", idOf(launcher_[i] == kNone ? i : launcher_[i]));
        if (isDeviceWork) put(", \"device\": {}, \"context\": 1, \"stream\": {}, \"correlation\": {}", rankOf(i), trace_.tracks[trace_.track[i]].stream, idOf(i));
        else if (launcher_[i] != kNone) put(", \"correlation\": {}", idOf(i));
        if (collective >= 0) collectiveArgs(static_cast<std::size_t>(collective));
        if (name != &ownName) put(", \"label\": {}", ownName);
        put(", \"category\": \"{}\"", nameOf(trace_.category[i]));
        if (trace_.task[i] >= 0) put(", \"task\": {}", trace_.task[i]);
        out_ += "}}";
        launches(i);
    }

    /// The runtime calls inside a host slice, one for each thing it launches, side by side.
    void launches(std::size_t i) {
        const auto count = static_cast<std::int64_t>(launched_[i].size());
        if (count == 0) return;
        const std::int64_t total = trace_.duration[i].picoseconds();
        const auto offset = [&](std::int64_t k) { return Time::fromPicoseconds(total / count * k + std::min(k, total % count)); };
        for (std::int64_t k = 0; k < count; ++k) {
            const std::uint32_t target = launched_[i][static_cast<std::size_t>(k)];
            const bool copy = trace_.category[target] == SliceCategory::Copy;
            event();
            put("{{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, ", copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", rankOf(i),
                tidOf(i));
            times(trace_.start[i] + offset(k), offset(k + 1) - offset(k));
            put(", \"args\": {{\"External id\": {}, \"correlation\": {}}}}}", idOf(i), idOf(target));
            if (options_.rank && rankOf(target) != *options_.rank) continue;
            flowPair("ac2g", i, trace_.start[i] + offset(k), target);
        }
    }

    void collectiveArgs(std::size_t c) {
        const CollectiveDetails& details = trace_.collectives[c];
        const ProcessGroup& group = groups_[groupOf_[c]];
        const CollectiveKind op = collectiveKindOf(details.op);
        const std::int64_t share = details.groupSize > 0 ? details.elements / details.groupSize : details.elements;
        put(", \"Collective name\": {}, \"In msg nelems\": {}, \"Out msg nelems\": {}, \"Group size\": {}, \"dtype\": {}", jsonString(details.op),
            op == CollectiveKind::AllGather ? share : details.elements, op == CollectiveKind::ReduceScatter ? share : details.elements, details.groupSize,
            jsonString(details.dtype));
        put(", \"In split size\": \"[]\", \"Out split size\": \"[]\", \"Process Group Name\": \"{}\", \"Process Group Description\": {}", groupOf_[c],
            jsonString(group.description));
        if (!group.ranks.empty()) put(", \"Process Group Ranks\": \"{}\"", ranksText(group.ranks));
        if (details.sequence >= 0) put(", \"Seq\": {}", details.sequence);
        put(", \"Comms Id\": {}, \"bytes\": {}", c, details.bytes);
        if (!details.algorithm.empty()) put(", \"algorithm\": {}, \"protocol\": {}", jsonString(details.algorithm), jsonString(details.protocol));
    }

    // ---- flows and counters --------------------------------------------------------------------------------------------

    void flowPair(const char* category, std::size_t from, Time leaves, std::size_t to) {
        ++flowId_;
        event();
        put("{{\"ph\": \"s\", \"id\": {}, \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": ", flowId_, category, category, rankOf(from), tidOf(from));
        microseconds(leaves);
        put(", \"args\": {{\"from\": {}, \"to\": {}}}}}", idOf(from), idOf(to));
        event();
        put("{{\"ph\": \"f\", \"bp\": \"e\", \"id\": {}, \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": ", flowId_, category, category, rankOf(to),
            tidOf(to));
        microseconds(trace_.start[to]);
        out_ += '}';
    }

    void flows() {
        for (std::size_t f = 0; f < trace_.flows.size(); ++f) {
            const Flow& flow = trace_.flows[f];
            if (withItsCall_[f]) continue;
            if (!wanted(trace_.track[flow.from]) || !wanted(trace_.track[flow.to])) continue;
            const char* category = flow.kind == Flow::Kind::Launch ? "ac2g" : flow.kind == Flow::Kind::Collective ? "collective" : "dependency";
            // A flow binds to the slice around its timestamp. The end of a slice is already outside of it.
            flowPair(category, flow.from, trace_.start[flow.from], flow.to);
        }
    }

    void instant(const Instant& instant) {
        event();
        put("{{\"ph\": \"i\", \"s\": \"t\", \"name\": {}, \"pid\": {}, \"tid\": {}, \"ts\": ", names_[instant.name], trace_.tracks[instant.track].rank, rows_[instant.track][0].tid);
        microseconds(instant.at);
        out_ += '}';
    }

    /// As PyTorch's profiler writes memory, with the tensor's name and category beside. Addresses are numbers of allocations.
    void allocations() {
        struct Change {
            Time at;
            std::size_t allocation;
            bool frees;
        };
        std::vector<Change> changes;
        for (std::size_t a = 0; a < trace_.allocations.size(); ++a) {
            const Allocation& allocation = trace_.allocations[a];
            if (options_.rank && allocation.rank != *options_.rank) continue;
            changes.push_back({allocation.begin, a, false});
            if (allocation.end < Time::max()) changes.push_back({allocation.end, a, true});
        }
        std::stable_sort(changes.begin(), changes.end(), [](const Change& x, const Change& y) { return x.at < y.at; });
        std::map<std::int64_t, Bytes> total;
        for (const Change& change : changes) {
            const Allocation& allocation = trace_.allocations[change.allocation];
            const Bytes bytes = change.frees ? -allocation.bytes : allocation.bytes;
            total[allocation.rank] += bytes;
            event();
            put("{{\"ph\": \"i\", \"s\": \"t\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": {}, \"tid\": {}, \"ts\": ", allocation.rank, stepTid_[allocation.rank]);
            microseconds(change.at);
            put(", \"args\": {{\"Device Type\": 1, \"Device Id\": {}, \"Addr\": {}, \"Bytes\": {}, \"Total Allocated\": {}", allocation.rank, change.allocation + 1, bytes, total[allocation.rank]);
            if (!change.frees) put(", \"tensor\": {}, \"memory category\": {}", names_[allocation.name], names_[allocation.category]);
            out_ += "}}";
        }
    }

    void counters(const CounterSeries& counter) {
        const std::string name = jsonString(counter.name);
        if (counter.limit > 0) {
            event();
            put("{{\"ph\": \"M\", \"name\": \"counter_limit\", \"pid\": {}, \"tid\": 0, \"ts\": 0.000, \"args\": {{\"counter\": {}, \"limit\": {}}}}}", counter.rank, name, counter.limit);
        }
        std::vector<std::string> series;
        for (const std::string& s : counter.series) series.push_back(jsonString(s));
        for (std::size_t row = 0; row < counter.at.size(); ++row) {
            event();
            put("{{\"ph\": \"C\", \"cat\": \"memory\", \"name\": {}, \"pid\": {}, \"tid\": 0, \"ts\": ", name, counter.rank);
            microseconds(counter.at[row]);
            out_ += ", \"args\": {";
            for (std::size_t s = 0; s < series.size(); ++s) put("{}{}: {}", s == 0 ? "" : ", ", series[s], counter.values[row * series.size() + s]);
            out_ += "}}";
        }
    }

    const Trace& trace_;
    const ChromeTraceOptions& options_;
    std::string out_;
    bool firstEvent_ = true;
    std::int64_t flowId_ = 0;
    std::vector<std::int64_t> ranks_;
    std::vector<std::vector<Row>> rows_;                ///< per track, per lane
    std::vector<std::uint32_t> lanes_;                  ///< per slice
    std::map<std::int64_t, std::int64_t> stepTid_;      ///< per rank
    std::vector<ProcessGroup> groups_;
    std::vector<std::size_t> groupOf_;                  ///< per collective
    std::vector<std::string> names_, kernelNames_;      ///< quoted
    std::vector<std::uint32_t> launcher_;               ///< per slice: the host slice that launched it, or kNone
    std::vector<std::vector<std::uint32_t>> launched_;  ///< per slice
    std::vector<bool> withItsCall_;                     ///< per flow: a launch that is written with its runtime call
};

}  // namespace

std::string chromeTraceJson(const Trace& trace, const ChromeTraceOptions& options) { return Writer(trace, options).write(); }

Result<void> writeChromeTrace(const Trace& trace, const std::string& path) { return writeChromeTrace(trace, path, ChromeTraceOptions{}); }

Result<void> writeChromeTrace(const Trace& trace, const std::string& path, const ChromeTraceOptions& options) {
    return atomicWriteFile(path, chromeTraceJson(trace, options));
}

}  // namespace ringside
