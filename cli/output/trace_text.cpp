#include "cli/output/trace_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/output/wrap.h"
#include "model/base/units.h"
#include "traces/analysis/enclosing.h"

namespace ringside {
namespace {

constexpr std::size_t kMostSteps = 24, kMostRows = 12, kMostNotes = 20;

std::string left(std::string text, std::size_t width) {
    if (columnsOf(text) > width) {
        while (columnsOf(text) > width - 1 || (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80 && columnsOf(text) >= width)) text.pop_back();
        text += "…";
    }
    return text + std::string(width - std::min(width, columnsOf(text)), ' ');
}
std::string right(const std::string& text, std::size_t width) { return std::string(columnsOf(text) < width ? width - columnsOf(text) : 0, ' ') + text; }
std::string gigabytes(double bytesPerSecond) { return bytesPerSecond > 0 ? fmt::format("{:.2f}", bytesPerSecond / 1e9) : "–"; }

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

/// Names of other people's files may hold anything: control characters become spaces.
std::string printable(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    return text;
}

std::string stepLine(const std::string& label, const Breakdown& b) {
    const auto time = [](Time t) { return right(formatTime(t), 9); };
    return fmt::format("  {}{}  {} {} {} {} {} {}  {}\n", left(label, 18), time(b.step), time(b.compute), time(b.optimizer), time(b.communicationHidden), time(b.communicationExposed), time(b.host), time(b.idle),
                       right(b.communication() == Time{} ? "–" : fmt::format("{:.1f} %", b.overlapPercent()), 8));
}

Json breakdownJson(const Breakdown& b) {
    return {{"step_s", b.step.seconds()}, {"compute_s", b.compute.seconds()}, {"optimizer_s", b.optimizer.seconds()}, {"communication_hidden_s", b.communicationHidden.seconds()},
            {"communication_exposed_s", b.communicationExposed.seconds()}, {"host_s", b.host.seconds()}, {"idle_s", b.idle.seconds()},
            {"overlap_percent", b.communication() == Time{} ? Json(nullptr) : Json(b.overlapPercent())}};
}

std::vector<CollectiveSummary> summarise(const Trace& trace) {
    struct Group {
        CollectiveSummary summary;
        std::vector<double> transfers;
        double waits = 0, total = 0;
        std::int64_t slices = 0;
    };
    std::map<std::tuple<std::string, Bytes, std::string, std::int64_t, std::string, std::string>, Group> groups;
    for (const MatchedCollective& one : matchCollectives(trace)) {
        const CollectiveDetails& d = trace.collectives[static_cast<std::size_t>(one.collective)];
        Group& group = groups[{d.op, d.bytes, d.group, d.groupSize, d.algorithm, d.protocol}];
        group.summary = {d.op, d.group, d.algorithm, d.protocol, d.bytes, d.groupSize, group.summary.count + 1, group.summary.complete + (one.isComplete ? 1 : 0), 0, 0, 0, 0};
        group.transfers.push_back(one.transfer.seconds());
        for (const std::uint32_t slice : one.slices) {
            group.waits += waitOf(trace, one, slice).seconds();
            group.total += trace.duration[slice].seconds();
            ++group.slices;
        }
    }
    std::vector<std::pair<double, CollectiveSummary>> rows;
    for (auto& [key, group] : groups) {
        std::sort(group.transfers.begin(), group.transfers.end());
        CollectiveSummary& s = group.summary;
        s.transferSeconds = group.transfers[group.transfers.size() / 2];
        s.waitSeconds = group.waits / static_cast<double>(group.slices);
        if (s.transferSeconds > 0) s.algbw = static_cast<double>(s.bytes) / s.transferSeconds;
        s.busbw = s.algbw * busbwFactor(s.op, std::max<std::int64_t>(s.groupSize, 1));
        rows.emplace_back(group.total, s);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<CollectiveSummary> result;
    for (const auto& [total, summary] : rows) result.push_back(summary);
    return result;
}

}  // namespace

TraceReport reportOf(const ImportedTrace& imported) {
    const Trace& trace = imported.trace;
    TraceReport report;
    report.imported = &imported;
    Time first = Time::max(), last;
    for (const std::int64_t rank : ranksOf(trace)) {
        const Steps steps = stepsOf(trace, rank);
        if (report.steps.empty()) report.stepSource = steps.source;
        for (const Step& step : steps.steps) {
            report.steps.push_back({rank, step, breakdownOf(trace, rank, step.begin, step.end)});
            first = std::min(first, step.begin);
            last = std::max(last, step.end);
        }
    }
    report.collectives = summarise(trace);
    std::vector<std::uint32_t> tracks;
    for (std::uint32_t t = 0; t < trace.tracks.size(); ++t)
        if (trace.tracks[t].kind != TrackKind::Host) tracks.push_back(t);
    Time begin, end;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        begin = std::min(begin, trace.start[i]);
        end = std::max(end, trace.start[i] + trace.duration[i]);
    }
    report.names = rangeStatistics(trace, begin, end + Time::fromPicoseconds(1), tracks).names;
    std::erase_if(report.names, [](const NameStatistics& row) { return row.category == SliceCategory::Marker; });
    report.path = first < last ? tracePath(trace, first, last) : TracePath{};
    return report;
}

std::string inspectText(const TraceReport& report) {
    const ImportedTrace& in = *report.imported;
    const Trace& trace = in.trace;
    std::string out = printable(trace.title) + "\n";
    const std::size_t ranks = ranksOf(trace).size();
    out += fmt::format("  {}; {} of {} rank{}; {} slices on {} tracks, {} flows{}\n", nameOf(in.format), ranks, trace.worldSize, trace.worldSize == 1 ? "" : "s", formatCount(std::ssize(trace.start)),
                       trace.tracks.size(), formatCount(std::ssize(trace.flows)), in.metadata.backend.empty() ? "" : "; " + in.metadata.backend);
    for (std::size_t d = 0; d < in.metadata.devices.size() && d < 4; ++d) {
        const TraceDevice& device = in.metadata.devices[d];
        out += fmt::format("  rank {}: {}{}{}\n", device.rank, printable(device.name), device.memory > 0 ? ", " + formatBytes(device.memory) : "", d == 3 && in.metadata.devices.size() > 4 ? ", …" : "");
    }

    out += fmt::format("\nSteps, by {}\n  {}{}  {} {} {} {} {} {}  {}\n", nameOf(report.stepSource), left("", 18), right("length", 9), right("compute", 9), right("optimizer", 9), right("hidden", 9), right("exposed", 9),
                       right("host", 9), right("idle", 9), right("overlap", 8));
    for (std::size_t i = 0; i < report.steps.size() && i < kMostSteps; ++i)
        out += stepLine(fmt::format("rank {}, step {}", report.steps[i].rank, report.steps[i].step.number), report.steps[i].breakdown);
    if (report.steps.size() > kMostSteps) out += fmt::format("  … and {} more (--json has all)\n", report.steps.size() - kMostSteps);
    out += "  hidden, exposed: communication beside compute, and alone; overlap: the hidden share of it\n";

    if (!report.collectives.empty()) {
        out += fmt::format("\nCollectives{}\n", ranks < static_cast<std::size_t>(trace.worldSize) ? " (of the ranks that are here: waiting for others counts as transfer)" : "");
        out += fmt::format("  {}{} {} {} {} {} {}  {}\n", left("", 34), right("bytes", 10), right("count", 6), right("wait", 9), right("transfer", 9), right("algbw", 8), right("busbw", 8), "group");
        for (std::size_t i = 0; i < report.collectives.size() && i < kMostRows; ++i) {
            const CollectiveSummary& c = report.collectives[i];
            const std::string how = c.algorithm.empty() ? "" : " " + c.algorithm + (c.protocol.empty() ? "" : "/" + c.protocol);
            out += fmt::format("  {}{} {} {} {} {} {}  {} × {}\n", left(printable((c.op.empty() ? std::string("?") : c.op) + how), 34), right(c.bytes > 0 ? formatBytes(c.bytes) : "–", 10), right(formatCount(c.count), 6),
                               right(formatSeconds(c.waitSeconds), 9), right(formatSeconds(c.transferSeconds), 9), right(gigabytes(c.algbw), 8), right(gigabytes(c.busbw), 8),
                               c.group.empty() ? "all" : printable(c.group), c.groupSize > 0 ? std::to_string(c.groupSize) : "?");
        }
        if (report.collectives.size() > kMostRows) out += fmt::format("  … and {} more kinds\n", report.collectives.size() - kMostRows);
        out += "  wait: mean; transfer: median; GB/s as nccl-tests counts\n";
    }

    out += fmt::format("\nLongest by their own time\n  {}{} {} {} {} {}\n", left("", 52), right("count", 8), right("self", 9), right("mean", 9), right("p50", 9), right("p99", 9));
    for (std::size_t i = 0; i < report.names.size() && i < kMostRows; ++i) {
        const NameStatistics& n = report.names[i];
        out += fmt::format("  {}{} {} {} {} {}\n", left(printable(trace.names[n.name]), 52), right(formatCount(n.count), 8), right(formatTime(n.self), 9), right(formatTime(n.mean), 9), right(formatTime(n.p50), 9),
                           right(formatTime(n.p99), 9));
    }

    const double length = (report.path.end - report.path.begin).seconds();
    if (length > 0) {
        std::string shares;
        for (std::size_t c = 0; c < report.path.byCategory.size(); ++c)
            if (report.path.byCategory[c] > Time{})
                shares += fmt::format("{}{} {:.1f} %", shares.empty() ? "" : ", ", nameOf(static_cast<SliceCategory>(c)), 100 * report.path.byCategory[c].seconds() / length);
        if (report.path.idle > Time{}) shares += fmt::format("{}not shown by the trace {:.1f} %", shares.empty() ? "" : ", ", 100 * report.path.idle.seconds() / length);
        out += "\nCritical path   " + wrapped(shares, 16) + "\n";
    }

    out += in.notes.all().empty() ? "\nImport report   nothing was left out\n" : "\nImport report\n";
    for (std::size_t i = 0; i < in.notes.all().size() && i < kMostNotes; ++i) {
        const ImportNote& note = in.notes.all()[i];
        out += "  " + wrapped(fmt::format("{} × {}; first in {}", formatCount(note.count), printable(note.what), note.where), 2) + "\n";
    }
    return out;
}

Json inspectJson(const TraceReport& report) {
    const ImportedTrace& in = *report.imported;
    const Trace& trace = in.trace;
    Json json = {{"format", "ringside-trace-report"}, {"version", 1}, {"title", trace.title}, {"files", in.files}, {"read_as", nameOf(in.format)}, {"ranks", ranksOf(trace)}, {"world_size", trace.worldSize},
                 {"slices", trace.size()}, {"tracks", trace.tracks.size()}, {"flows", trace.flows.size()}, {"steps_by", nameOf(report.stepSource)}};
    json["backend"] = in.metadata.backend.empty() ? Json(nullptr) : Json(in.metadata.backend);
    json["base_time_ns"] = in.metadata.baseTimeNanoseconds ? Json(*in.metadata.baseTimeNanoseconds) : Json(nullptr);
    for (const char* list : {"devices", "steps", "collectives", "names", "alignment", "notes"}) json[list] = Json::array();
    for (const TraceDevice& d : in.metadata.devices) json["devices"].push_back({{"rank", d.rank}, {"id", d.id}, {"name", d.name}, {"memory_bytes", d.memory}});
    for (const StepReport& s : report.steps) {
        Json row = breakdownJson(s.breakdown);
        row["rank"] = s.rank;
        row["step"] = s.step.number;
        row["begin_s"] = s.step.begin.seconds();
        json["steps"].push_back(std::move(row));
    }
    for (const CollectiveSummary& c : report.collectives)
        json["collectives"].push_back({{"op", c.op}, {"bytes", c.bytes}, {"group", c.group}, {"group_size", c.groupSize}, {"algorithm", c.algorithm}, {"protocol", c.protocol}, {"count", c.count},
                                       {"seen_on_all_ranks", c.complete}, {"wait_mean_s", c.waitSeconds}, {"transfer_p50_s", c.transferSeconds}, {"algbw_gb_per_s", c.algbw / 1e9}, {"busbw_gb_per_s", c.busbw / 1e9}});
    for (const NameStatistics& n : report.names)
        json["names"].push_back({{"name", trace.names[n.name]}, {"category", nameOf(n.category)}, {"count", n.count}, {"total_s", n.total.seconds()}, {"self_s", n.self.seconds()}, {"mean_s", n.mean.seconds()},
                                 {"p50_s", n.p50.seconds()}, {"p90_s", n.p90.seconds()}, {"p99_s", n.p99.seconds()}, {"max_s", n.most.seconds()}});
    Json& path = json["critical_path"] = Json::object();
    for (std::size_t c = 0; c < report.path.byCategory.size(); ++c) path[std::string(nameOf(static_cast<SliceCategory>(c))) + "_s"] = report.path.byCategory[c].seconds();
    path["not_shown_s"] = report.path.idle.seconds();
    constexpr const char* kMethods[] = {"reference", "collectives", "own clock", "none"};
    for (const RankAlignment& a : in.alignment)
        json["alignment"].push_back({{"rank", a.rank}, {"method", kMethods[static_cast<std::size_t>(a.method)]}, {"shift_s", a.shift.seconds()}, {"anchors", a.anchors}, {"residual_s", a.residual.seconds()}, {"worst_s", a.worst.seconds()}});
    for (const ImportNote& n : in.notes.all()) json["notes"].push_back({{"what", n.what}, {"count", n.count}, {"where", n.where}});
    return json;
}

std::string inspectCsv(const TraceReport& report) {
    std::string out = "rank,step,begin_s,length_s,compute_s,optimizer_s,communication_hidden_s,communication_exposed_s,host_s,idle_s,overlap_percent\n";
    for (const StepReport& s : report.steps) {
        const Breakdown& b = s.breakdown;
        out += fmt::format("{},{},{:.9f},{:.9f},{:.9f},{:.9f},{:.9f},{:.9f},{:.9f},{:.9f},{}\n", s.rank, s.step.number, s.step.begin.seconds(), b.step.seconds(), b.compute.seconds(), b.optimizer.seconds(),
                           b.communicationHidden.seconds(), b.communicationExposed.seconds(), b.host.seconds(), b.idle.seconds(), b.communication() == Time{} ? "" : fmt::format("{:.3f}", b.overlapPercent()));
    }
    return out;
}

namespace {

std::string signedSeconds(double seconds) { return seconds == 0 ? "=" : (seconds < 0 ? "−" : "+") + formatSeconds(std::fabs(seconds)); }
std::string signedPercent(double percent) {
    if (std::isinf(percent)) return "new";
    return percent == 0 ? "" : fmt::format("{}{:.1f} %", percent < 0 ? "−" : "+", std::fabs(percent));
}
std::string deltaLine(const std::string& name, double a, double b) {
    const double percent = a == 0 ? (b == 0 ? 0 : INFINITY) : 100 * (b - a) / a;
    return fmt::format("  {}{} {} {} {}\n", left(name, 56), right(formatSeconds(a), 11), right(formatSeconds(b), 11), right(signedSeconds(b - a), 11), right(signedPercent(percent), 10));
}

}  // namespace

std::string diffText(const TraceDiff& diff, const std::string& a, const std::string& b) {
    std::string out = fmt::format("A  {}\nB  {}\n", a, b);
    out += fmt::format("  joined by {}; {} step{} aligned, {} rank{}; {} slices are in both, {} only in A, {} only in B\n\n", nameOf(diff.join), diff.steps.size(), diff.steps.size() == 1 ? "" : "s", diff.ranks.size(),
                       diff.ranks.size() == 1 ? "" : "s", formatCount(std::ssize(diff.pairs)), formatCount(diff.onlyA), formatCount(diff.onlyB));
    out += fmt::format("  {}{} {} {} {}\n", left("per step and rank", 56), right("A", 11), right("B", 11), right("B − A", 11), right("of A", 10));
    out += deltaLine("step", diff.stepSecondsA, diff.stepSecondsB);
    const auto part = [&](const char* name, Time Breakdown::*field) { return deltaLine(name, (diff.breakdownA.*field).seconds(), (diff.breakdownB.*field).seconds()); };
    out += part("  compute", &Breakdown::compute) + part("  optimizer", &Breakdown::optimizer) + part("  exposed communication", &Breakdown::communicationExposed) +
           part("  (hidden communication)", &Breakdown::communicationHidden) + part("  host", &Breakdown::host) + part("  idle", &Breakdown::idle);
    out += "\nGreatest differences by name\n";
    std::size_t shown = 0;
    for (const NameDelta& row : diff.names) {
        if (row.seconds() == 0 || shown++ == kMostRows) break;
        out += deltaLine(printable(row.name), row.secondsA, row.secondsB);
    }
    if (shown == 0) out += "  none\n";
    return out;
}

Json diffJson(const TraceDiff& diff, const std::string& a, const std::string& b) {
    Json json = {{"format", "ringside-trace-diff"}, {"version", 1}, {"a", a}, {"b", b}, {"joined_by", nameOf(diff.join)}, {"steps_aligned", diff.steps.size()}, {"ranks", diff.ranks},
                 {"slices_in_both", diff.pairs.size()}, {"slices_only_in_a", diff.onlyA}, {"slices_only_in_b", diff.onlyB}, {"step_a_s", diff.stepSecondsA}, {"step_b_s", diff.stepSecondsB},
                 {"breakdown_a", breakdownJson(diff.breakdownA)}, {"breakdown_b", breakdownJson(diff.breakdownB)}};
    json["step_percent"] = std::isfinite(diff.stepPercent()) ? Json(diff.stepPercent()) : Json(nullptr);
    json["names"] = Json::array();
    for (const NameDelta& n : diff.names)
        json["names"].push_back({{"name", n.name}, {"category", nameOf(n.category)}, {"count_a", n.countA}, {"count_b", n.countB}, {"a_s", n.secondsA}, {"b_s", n.secondsB}, {"difference_s", n.seconds()},
                                 {"percent", std::isfinite(n.percent()) ? Json(n.percent()) : Json(nullptr)}});
    return json;
}

std::string diffCsv(const TraceDiff& diff) {
    std::string out = "name,category,count_a,count_b,a_s,b_s,difference_s,percent\n";
    for (const NameDelta& n : diff.names)
        out += fmt::format("{},{},{},{},{:.9f},{:.9f},{:.9f},{}\n", quoted(n.name), nameOf(n.category), n.countA, n.countB, n.secondsA, n.secondsB, n.seconds(), std::isfinite(n.percent()) ? fmt::format("{:.3f}", n.percent()) : "");
    return out;
}

}  // namespace ringside
