// What can be decided only when the whole file has been seen: the format, ranks, tracks, links.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "traces/collective_names.h"
#include "traces/import/event_kinds.h"
#include "traces/import/trace_assembly.h"

namespace ringside {
namespace {

/// The text with room behind it that a JsonScan may read.
std::string padded(std::string_view text) {
    std::string copy(text);
    copy.append(JsonScan::kPadding, '\0');
    return copy;
}

template <class Visit>
void forEachElement(std::string_view array, Visit visit) {
    JsonScan scan(array.data(), array.data() + array.size());
    if (!scan.openArray()) return;
    do {
        const JsonToken element = scan.value();
        if (!scan.fine()) return;
        visit(element);
    } while (scan.nextElement());
}

/// "trace_rank3.json", "rank-3", "ddp_r1.json.gz": the number after the last such word.
std::optional<std::int64_t> rankInName(std::string_view path) {
    if (const auto slash = path.rfind('/'); slash != std::string_view::npos) path = path.substr(slash + 1);
    std::optional<std::int64_t> found;
    const auto lower = [&](std::size_t i) { return static_cast<char>(std::tolower(static_cast<unsigned char>(path[i]))); };
    const auto isLetter = [&](std::size_t i) { return std::isalpha(static_cast<unsigned char>(path[i])) != 0; };
    for (std::size_t i = 0; i < path.size(); ++i) {
        if (lower(i) != 'r' || (i > 0 && isLetter(i - 1))) continue;
        std::size_t digits = i + 1;
        if (i + 4 <= path.size() && lower(i + 1) == 'a' && lower(i + 2) == 'n' && lower(i + 3) == 'k') digits = i + 4;
        if (digits == i + 4 && digits < path.size() && (path[digits] == '_' || path[digits] == '-')) ++digits;
        std::int64_t value = 0;
        const auto [stop, error] = std::from_chars(path.data() + digits, path.data() + path.size(), value);
        if (error == std::errc() && digits < path.size() && path[digits] != '-') found = value;
    }
    return found;
}

/// "rank 3", "Rank3": what such a process is called.
std::optional<std::int64_t> rankOfProcessName(std::string_view name) {
    if (name.size() < 5) return std::nullopt;
    for (std::size_t i = 0; i < 4; ++i)
        if (std::tolower(static_cast<unsigned char>(name[i])) != "rank"[i]) return std::nullopt;
    std::size_t digits = 4;
    if (name[digits] == ' ' || name[digits] == '_') ++digits;
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(name.data() + digits, name.data() + name.size(), value);
    if (error != std::errc()) return std::nullopt;
    return value;
}

std::string trimmed(std::string text) {
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

}  // namespace

void TraceAssembly::readDistributedInfo() {
    const std::string text = padded(distributedInfo_);
    forEachMember(std::string_view(text).substr(0, distributedInfo_.size()), [&](std::string_view key, const JsonToken& value) {
        if (key == "backend") backend_ = textOf(value);
        else if (key == "rank") infoRank_ = wholeNumber(value);
        else if (key == "world_size") worldSize_ = std::max<std::int64_t>(0, wholeNumber(value).value_or(0));
        else if (key == "pg_config") {
            groups_.clear();
            // Kineto's on-demand writer puts the list into a string.
            const std::string list = padded(textOf(value));
            forEachElement(std::string_view(list).substr(0, list.size() - JsonScan::kPadding), [&](const JsonToken& element) {
                Group group;
                if (element.kind != JsonToken::Kind::Object) return;
                forEachMember(element.text, [&](std::string_view member, const JsonToken& token) {
                    if (member == "pg_name") group.name = textOf(token);
                    else if (member == "pg_desc" || member == "uid") group.description = textOf(token);
                    else if (member == "ranks") group.ranks = rankList(token);
                });
                groups_.push_back(std::move(group));
            });
        }
    });
}

void TraceAssembly::closeOpen() {
    for (std::uint32_t r = 0; r < rows_.size(); ++r) {
        for (const Open& open : std::exchange(rows_[r].open, {})) {
            const Time start = open.at.since(base_);
            fault("a begin ('B') without an end; shown up to the end of the trace", open.offset, open.number);
            builder_.addSlice(trackOf(r), start, std::max(latest_ - start, Time{}), open.category, open.name, -1, -1, originValue(fileIndex_, open.offset));
        }
    }
    for (const auto& [key, opens] : async_)
        for (const auto& [row, open] : opens) {
            const Time start = open.at.since(base_);
            fault("an asynchronous begin without an end; shown up to the end of the trace", open.offset, open.number);
            builder_.addSlice(trackOf(row), start, std::max(latest_ - start, Time{}), open.category, open.name, -1, -1, originValue(fileIndex_, open.offset));
        }
    async_.clear();
}

TraceFormat TraceAssembly::formatOf() const {
    if (isOurs_) return TraceFormat::Ringside;
    return sawKineto_ ? TraceFormat::Kineto : TraceFormat::Chrome;
}

std::int64_t TraceAssembly::ownRank() {
    if (infoRank_) return *infoRank_;
    if (const auto rank = rankInName(name_)) {
        notes_.add(fmt::format("the file does not say its rank; its name says {}", *rank), name_);
        return *rank;
    }
    if (worldSize_ > 1) notes_.add("neither the file nor its name says which rank it is; taken as rank 0", name_);
    return 0;
}

void TraceAssembly::nameTracks(TraceFormat format, std::int64_t rank) {
    if (format == TraceFormat::Ringside) {  // its metadata said all
        for (const auto& [pid, process] : processes_)
            if (!rankOfProcessName(process.name) && !process.name.starts_with("server ")) rankNames_[pid] = process.name;
        return;
    }
    std::map<std::int64_t, std::int64_t> rankOfPid;
    if (format == TraceFormat::Chrome) {
        // Nobody says what a process is: each is a rank of its own, by its name or in order.
        std::vector<std::pair<std::int64_t, std::int64_t>> order;
        std::set<std::int64_t> seen, named;
        for (const Row& row : rows_)
            if (row.track != kNoTrack && seen.insert(row.pid).second) order.emplace_back(processes_[row.pid].hasSortIndex ? processes_[row.pid].sortIndex : row.pid, row.pid);
        std::sort(order.begin(), order.end());
        bool allNamed = true;
        for (const auto& [sortIndex, pid] : order) {
            const auto fromName = rankOfProcessName(processes_[pid].name);
            allNamed = allNamed && fromName && named.insert(*fromName).second;
        }
        for (std::size_t i = 0; i < order.size(); ++i) {
            const std::int64_t pid = order[i].second;
            rankOfPid[pid] = allNamed ? *rankOfProcessName(processes_[pid].name) : static_cast<std::int64_t>(i);
        }
    }
    std::set<std::int64_t> devicePids;
    for (const Row& row : rows_)
        if (row.track != kNoTrack && row.onDevice) devicePids.insert(row.pid);
    std::vector<std::array<std::int64_t, 4>> trackKeys;
    for (Row& row : rows_) {
        if (row.track == kNoTrack) continue;
        Track& track = builder_.track(row.track);
        RowNames names;
        if (const auto it = rowNames_.find({row.pid, row.tid}); it != rowNames_.end()) names = it->second;
        track.rank = format == TraceFormat::Chrome ? rankOfPid[row.pid] : rank;
        track.stream = row.tid > kFirstNumber ? row.tid : 0;
        track.name = trimmed(names.name);
        const bool gloo = names.gloo || row.gloo;
        if (row.onDevice) {
            // A stream number may stand in a word ("stream 7"), and the track's name follows it.
            if (row.tid <= kFirstNumber) {
                const std::string word = keyText(row.tid);
                const auto digits = word.find_first_of("0123456789");
                if (digits != std::string::npos) std::from_chars(word.data() + digits, word.data() + word.size(), track.stream);
            }
            if (track.name.empty()) track.name = fmt::format("stream {}", track.stream);
            if (devicePids.size() > 1) track.name = fmt::format("device {}: {}", keyText(row.pid), track.name);
            track.kind = row.communication > row.compute && row.communication > row.copy ? TrackKind::Communication
                         : row.compute == Time{} && row.copy > Time{}                       ? TrackKind::Copy
                                                                                            : TrackKind::Compute;
        } else if (gloo) {
            track.kind = TrackKind::Communication;
        } else {
            // Without a device the CPU is what computes.
            track.kind = row.operators && !sawDevice_ && sawKineto_ ? TrackKind::Compute : TrackKind::Host;
        }
        if (track.name.empty() && row.isAsync) track.name = keyText(row.tid);
        if (track.name.empty()) track.name = (row.tid > kFirstNumber ? "thread " : "") + keyText(row.tid);
        if (track.name.empty()) track.name = "marks";
        if (trackKeys.size() <= row.track) trackKeys.resize(row.track + 1);
        const int group = row.isSpan || row.pid <= kFirstNumber ? 9 : track.kind == TrackKind::Host ? 0 : 1 + static_cast<int>(track.kind);
        trackKeys[row.track] = {track.rank, group, names.sortIndex, track.stream};
    }
    orderTracks(trackKeys);
    if (format == TraceFormat::Chrome)
        for (const auto& [pid, processRank] : rankOfPid) {
            const std::string& name = processes_[pid].name;
            if (!rankOfProcessName(name)) rankNames_[processRank] = name.empty() ? fmt::format("process {}", keyText(pid)) : name;
        }
}

void TraceAssembly::orderTracks(const std::vector<std::array<std::int64_t, 4>>& sortKeys) {
    std::vector<std::uint32_t> order(sortKeys.size()), newIndex(sortKeys.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return sortKeys[a] < sortKeys[b]; });
    for (std::uint32_t i = 0; i < order.size(); ++i) newIndex[order[i]] = i;
    builder_.reorderTracks(newIndex);
    for (Row& row : rows_)
        if (row.track != kNoTrack) row.track = newIndex[row.track];
}

void TraceAssembly::addCounters(ImportedTrace& out, std::int64_t rank, TraceFormat format) {
    std::map<std::int64_t, std::int64_t> rankOfPid;
    for (const Row& row : rows_)
        if (row.track != kNoTrack) rankOfPid[row.pid] = out.trace.tracks[row.track].rank;
    for (const auto& key : counterOrder_) {
        CounterSeries& counter = counters_[key];
        counter.name = key.second;
        const auto known = rankOfPid.find(key.first);
        counter.rank = format == TraceFormat::Kineto ? rank : format == TraceFormat::Ringside ? key.first : known != rankOfPid.end() ? known->second : 0;
        if (const auto limit = counterLimits_.find(key); limit != counterLimits_.end()) counter.limit = limit->second;
        const std::size_t width = counter.series.size();
        if (!std::is_sorted(counter.at.begin(), counter.at.end())) {
            std::vector<std::size_t> order(counter.at.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counter.at[a] < counter.at[b]; });
            CounterSeries sorted = counter;
            for (std::size_t r = 0; r < order.size(); ++r) {
                sorted.at[r] = counter.at[order[r]];
                for (std::size_t s = 0; s < width; ++s) sorted.values[r * width + s] = counter.values[order[r] * width + s];
            }
            counter = std::move(sorted);
        }
        out.trace.counters.push_back(std::move(counter));
    }
}

void TraceAssembly::shiftToZero(ImportedTrace& out, TraceFormat format) const {
    Trace& trace = out.trace;
    if (format == TraceFormat::Ringside) return;
    Time first = Time::max();
    for (const Time start : trace.start) first = std::min(first, start);
    for (const Instant& instant : trace.instants) first = std::min(first, instant.at);
    for (const CounterSeries& counter : trace.counters)
        for (const Time at : counter.at) first = std::min(first, at);
    for (Time& start : trace.start) start -= first;
    for (Instant& instant : trace.instants) instant.at -= first;
    for (CounterSeries& counter : trace.counters)
        for (Time& at : counter.at) at -= first;
    for (Allocation& allocation : trace.allocations) {
        allocation.begin -= first;
        if (allocation.end < Time::max()) allocation.end -= first;
    }
    // Relative times without a base say nothing about the clock on the wall; times since 1970 do.
    const std::int64_t before = first.picoseconds() >= 0 ? first.picoseconds() / 1000 : -((-first.picoseconds() + 999) / 1000);
    constexpr std::int64_t kYear2001 = 978307200000000;  // in µs
    std::int64_t since = 0;
    if ((baseNanoseconds_ || base_ > kYear2001) && !__builtin_mul_overflow(base_, std::int64_t{1000}, &since) &&
        !__builtin_add_overflow(since, baseNanoseconds_.value_or(0) + before, &since))
        out.metadata.baseTimeNanoseconds = since;
}

void TraceAssembly::settleCollectives(Trace& trace, TraceFormat format) const {
    for (std::size_t c = 0; c < trace.collectives.size(); ++c) {
        CollectiveDetails& details = trace.collectives[c];
        const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return !groupNames_[c].empty() && g.name == groupNames_[c]; });
        if (format == TraceFormat::Ringside) {
            if (groupNames_[c] == "0") {
                details.group.clear();
                details.ranks.clear();
            } else {
                if (details.group == fmt::format("group of {}", details.groupSize)) details.group.clear();
                if (group != groups_.end()) details.ranks = group->ranks;
            }
            continue;
        }
        if (group != groups_.end()) {
            if (details.ranks.empty()) details.ranks = group->ranks;
            if (details.group.empty()) details.group = group->description;
        }
        // Several groups may share a description: their name tells them apart.
        if (!groupNames_[c].empty() && groupNames_[c] != "0" && (details.group.empty() || details.group == "undefined")) details.group = "group " + groupNames_[c];
        if (details.groupSize == 0) {
            const bool wasUnknown = details.elements > 0 && collectiveKindOf(details.op) == CollectiveKind::AllGather && details.sequence < 0 && details.ranks.empty() && groupNames_[c].empty();
            details.groupSize = details.ranks.empty() ? worldSize_ : static_cast<std::int64_t>(details.ranks.size());
            if (wasUnknown && details.groupSize > 1) {  // a Gloo range read before the file said how many ranks there are
                details.elements *= details.groupSize;
                details.bytes *= details.groupSize;
            }
        }
        if (details.group == "default_pg" && details.groupSize == worldSize_) {
            details.group.clear();
            details.ranks.clear();
        }
    }
}

void TraceAssembly::link(ImportedTrace& out, const std::vector<std::uint32_t>& newIds, std::int64_t rank, TraceFormat format) {
    Trace& trace = out.trace;
    if (format == TraceFormat::Ringside) {
        std::int64_t lost = 0;
        for (const Flow& flow : ourFlows_) {
            const auto from = ourSlices_.find(flow.from), to = ourSlices_.find(flow.to);
            if (from == ourSlices_.end() || to == ourSlices_.end()) ++lost;
            else trace.flows.push_back({newIds[from->second], newIds[to->second], flow.kind});
        }
        if (lost > 0) notes_.add("a flow from or to a slice that is not in the file; left out", name_, lost);
        return;
    }
    for (std::vector<Correlated>* list : {&calls_, &launched_})
        for (Correlated& c : *list) c.slice = newIds[c.slice];
    linkLaunches(trace, calls_, launched_);
    std::vector<Correlated>().swap(calls_);
    std::vector<Correlated>().swap(launched_);

    const auto toTracks = [&](auto& list) {  // rows on which there is nothing have no track
        std::int64_t lost = 0;
        std::erase_if(list, [&](auto& item) {
            const std::uint32_t track = rows_[item.track].track;
            if (track == kNoTrack) ++lost;
            item.track = track;
            return track == kNoTrack;
        });
        return lost;
    };
    const std::int64_t flowsOnNothing = toTracks(flowEnds_);
    const FlowCounts flows = linkFlows(trace, std::move(flowEnds_));
    if (flows.withoutStart > 0) notes_.add("an end of a flow that never started; left out", name_, flows.withoutStart);
    if (flows.withoutSlice + flowsOnNothing > 0) notes_.add("an end of a flow where no slice is; left out", name_, flows.withoutSlice + flowsOnNothing);

    for (std::uint32_t& slice : vague_) slice = newIds[slice];
    if (const std::int64_t left = adoptAnnouncedCollectives(trace, vague_); left > 0)
        notes_.add("a communication kernel that does not say what it moves; its bytes are not known", name_, left);

    if (sawKineto_ && !sawDevice_) {
        std::int64_t operators = 0;
        for (std::size_t i = 0; i < trace.size(); ++i)
            if (trace.category[i] == SliceCategory::Host && trace.tracks[trace.track[i]].kind == TrackKind::Compute) {
                trace.category[i] = SliceCategory::Compute;
                ++operators;
            }
        if (operators > 0) notes_.add("no kernel of a device is in the file: operators on the CPU count as compute", name_);
    }
    markOptimizer(trace);

    for (MemoryEvent& event : memory_)  // on a thread without slices the operator is not known, the memory is
        if (rows_[event.track].track == kNoTrack) event.track = 0;
        else event.track = rows_[event.track].track;
    if (const std::int64_t unknown = addMemoryEvents(trace, rank, std::move(memory_)); unknown > 0)
        notes_.add("memory was freed that was allocated before the trace began; its tensors are not known", name_, unknown);
}

void TraceAssembly::describe(ImportedTrace& out, std::int64_t rank) {
    TraceMetadata& metadata = out.metadata;
    metadata.backend = backend_;
    metadata.worldSize = worldSize_;
    metadata.other = std::move(members_);
    std::set<std::int64_t> used;
    for (const Row& row : rows_)
        if (row.onDevice && row.pid > kFirstNumber) used.insert(row.pid);
    const std::string text = padded(deviceProperties_);
    forEachElement(std::string_view(text).substr(0, deviceProperties_.size()), [&](const JsonToken& element) {
        TraceDevice device;
        device.rank = rank;
        if (element.kind != JsonToken::Kind::Object) return;
        forEachMember(element.text, [&](std::string_view key, const JsonToken& value) {
            if (key == "id") device.id = wholeNumber(value).value_or(0);
            else if (key == "name") device.name = textOf(value);
            else if (key == "totalGlobalMem") device.memory = wholeNumber(value).value_or(0);
        });
        if (isOurs_) device.rank = device.id;
        if (used.empty() || used.contains(device.id)) metadata.devices.push_back(std::move(device));
    });
    if (used.size() != 1 || metadata.devices.size() != 1) return;
    for (CounterSeries& counter : out.trace.counters)
        if (counter.limit == 0 && counter.name == "memory reserved") counter.limit = metadata.devices.front().memory;
}

Result<ImportedTrace> TraceAssembly::finish() {
    closeOpen();
    if (builder_.sliceCount() == 0) {
        std::string why;
        for (const ImportNote& note : notes_.all()) why += fmt::format("{}{} × {} (first: {})", why.empty() ? "; " : ", ", note.count, note.what, note.where);
        return badInput(name_, fmt::format("has no slice that can be shown{}; expected events with 'ph', 'ts' and 'dur'", why));
    }
    const TraceFormat format = formatOf();
    const std::int64_t rank = format == TraceFormat::Kineto ? ownRank() : 0;
    nameTracks(format, rank);
    ImportedTrace out;
    out.format = format;
    out.files = {name_};
    builder_.setTitle(title_.empty() ? name_.substr(name_.rfind('/') + 1) : title_);
    for (const auto& [number, allocation] : ourAllocations_) builder_.addAllocation(allocation);
    std::vector<std::uint32_t> newIds;
    out.trace = builder_.build(&newIds);
    out.trace.rankNames = std::move(rankNames_);
    addCounters(out, rank, format);
    link(out, newIds, rank, format);
    settleCollectives(out.trace, format);
    shiftToZero(out, format);
    describe(out, rank);
    std::set<std::int64_t> ranks;
    for (const Track& track : out.trace.tracks) ranks.insert(track.rank);
    out.trace.worldSize = worldSize_ > 0 ? worldSize_ : static_cast<std::int64_t>(ranks.size());
    out.notes = std::move(notes_);
    return out;
}

}  // namespace ringside
