#include "calibrate/published/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "sim/study/svg_chart.h"

namespace ringside {
namespace {

constexpr std::string_view kBegin = "<!-- published: begin (make validation writes this section) -->\n";
constexpr std::string_view kEnd = "<!-- published: end -->";
constexpr std::size_t kWorst = 10;

Json orNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

/// Quoted where it must be (RFC 4180).
std::string cell(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

Json summaryJson(const std::vector<std::pair<std::string, GroupSummary>>& groups) {
    Json json = Json::object();
    for (const auto& [name, s] : groups)
        json[name] = {{"n", s.n}, {"mape", s.mape}, {"median", s.median}, {"p90", s.p90}, {"worst", s.worst}, {"bias", s.bias}, {"spearman", orNull(s.spearman)}, {"pairs", s.pairs}, {"ordered", orNull(s.ordered)}, {"coverage", orNull(s.coverage)}};
    return json;
}

std::string percent(double value) { return fmt::format("{:.1f}", value * 100); }
std::string signedPercent(double value) { return fmt::format("{:+.1f}", value * 100); }

struct TableRow {
    std::string group;
    std::vector<std::string> cells;
};
const std::vector<std::string> kColumns = {"n", "MAPE %", "median %", "P90 %", "worst %", "bias %", "Spearman", "pairs in order %", "in band %"};

/// Held-out figures stand beside those in sample where there are some; a group's n is the same.
const std::vector<std::string> kBothColumns = {"n", "MAPE %", "median %", "P90 %", "worst %", "bias %", "Spearman", "pairs in order %", "in band %", "in sample MAPE %", "in band %"};

TableRow tableRow(const std::string& group, const GroupSummary& s) {
    return {group, {fmt::format("{}", s.n), percent(s.mape), percent(s.median), percent(s.p90), percent(s.worst), signedPercent(s.bias),
                    s.spearman ? fmt::format("{:.3f}", *s.spearman) : "-",
                    s.ordered ? fmt::format("{:.0f}", *s.ordered * 100) : "-", s.coverage ? fmt::format("{:.0f}", *s.coverage * 100) : "-"}};
}

struct Table {
    bool heldOut = false;
    std::vector<TableRow> rows;
    const std::vector<std::string>& columns() const { return heldOut ? kBothColumns : kColumns; }
};

Table tableOf(const PublishedVerdict& verdict) {
    Table table;
    table.heldOut = std::any_of(verdict.rows.begin(), verdict.rows.end(), [](const JudgedRow& row) { return row.heldOut.has_value(); });
    std::map<std::string, GroupSummary> inSample;
    for (auto& [name, summary] : groupsOf(verdict)) inSample.emplace(name, summary);
    for (const auto& [name, summary] : groupsOf(verdict, table.heldOut)) {
        TableRow row = tableRow(name, summary);
        if (table.heldOut) {
            const GroupSummary& own = inSample.at(name);
            row.cells.push_back(percent(own.mape));
            row.cells.push_back(own.coverage ? fmt::format("{:.0f}", *own.coverage * 100) : "-");
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

/// "matmul 62 %, host 20 %": the two largest.
std::string causeText(const JudgedRow& row) {
    if (!row.causes) return "";
    CauseShares rest = *row.causes;
    const Cause first = dominant(rest);
    const double firstShare = rest[static_cast<std::size_t>(first)];
    rest[static_cast<std::size_t>(first)] = 0;
    const Cause second = dominant(rest);
    return fmt::format("{} {:.0f} %, {} {:.0f} %", nameOf(first), firstShare * 100, nameOf(second), rest[static_cast<std::size_t>(second)] * 100);
}

std::vector<const JudgedRow*> worstOf(const PublishedVerdict& verdict, RecordKind kind) {
    std::vector<const JudgedRow*> rows;
    for (const JudgedRow& row : verdict.rows)
        if (row.kind == kind) rows.push_back(&row);
    std::stable_sort(rows.begin(), rows.end(), [](const JudgedRow* a, const JudgedRow* b) { return std::abs(a->error()) > std::abs(b->error()); });
    if (rows.size() > kWorst) rows.resize(kWorst);
    return rows;
}

std::string valueText(const JudgedRow& row, double value) {
    if (row.kind == RecordKind::Memory) return fmt::format("{:.2f} GiB", value / 0x1p30);
    return value >= 1 ? fmt::format("{:.3f} s", value) : value >= 1e-3 ? fmt::format("{:.2f} ms", value * 1e3) : fmt::format("{:.1f} us", value * 1e6);
}

/// Reasons with how many records each keeps out, most first.
std::vector<std::pair<std::string, std::size_t>> reasonsOf(const PublishedVerdict& verdict) {
    std::map<std::string, std::size_t> counts;
    for (const SkippedRecord& one : verdict.skipped) ++counts[one.reason];
    std::vector<std::pair<std::string, std::size_t>> reasons(counts.begin(), counts.end());
    std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    return reasons;
}

/// Of each family: records predicted, and all of them.
std::vector<std::pair<std::string, std::pair<std::size_t, std::size_t>>> predictedByFamily(const PublishedVerdict& verdict, RecordKind kind) {
    std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
    std::string last;
    for (const JudgedRow& row : verdict.rows) {
        if (row.kind != kind) continue;
        const std::string record = kind == RecordKind::Collective ? row.sweep : std::string();
        if (!record.empty() && record == last) continue;  // the sizes of one table
        last = record;
        ++counts[row.family].first;
        ++counts[row.family].second;
    }
    for (const SkippedRecord& one : verdict.skipped)
        if (one.kind == kind) ++counts[one.family].second;
    return {counts.begin(), counts.end()};
}

constexpr RecordKind kKinds[] = {RecordKind::Training, RecordKind::Collective, RecordKind::Memory, RecordKind::Kernel};

std::string countsText(const PublishedVerdict& verdict) {
    std::string out;
    for (const RecordKind kind : kKinds) {
        const auto families = predictedByFamily(verdict, kind);
        if (families.empty()) continue;
        std::size_t predicted = 0, all = 0;
        std::string list;
        for (const auto& [family, count] : families) {
            predicted += count.first;
            all += count.second;
            list += fmt::format("{}{} {}/{}", list.empty() ? "" : ", ", family, count.first, count.second);
        }
        out += fmt::format("{}: {} of {} records predicted ({})\n", nameOf(kind), predicted, all, list);
    }
    return out;
}

std::string memoryText(const PublishedVerdict& verdict) {
    return fmt::format("Runs that went out of memory and were predicted to fit: {}. Runs that fitted and were predicted not to: {}.\n", verdict.falseFits,
                       verdict.falseOutOfMemory);
}

}  // namespace

std::vector<std::pair<std::string, GroupSummary>> groupsOf(const PublishedVerdict& verdict, bool heldOut) {
    std::vector<std::pair<std::string, GroupSummary>> out;
    constexpr std::size_t kAxes = 5;
    for (const RecordKind kind : kKinds) {
        const std::string prefix = kind == RecordKind::Training ? "" : std::string(nameOf(kind)) + " ";
        std::vector<const Judgement*> all;
        std::map<std::string, std::vector<const Judgement*>> axes[kAxes];
        const std::string names[kAxes] = {"class:", prefix + "family:", prefix + "device:", prefix + (kind == RecordKind::Collective ? "op:" : "strategy:"), "cause:"};
        for (const JudgedRow& row : verdict.rows) {
            if (row.kind != kind || (heldOut && !row.heldOut)) continue;
            const Judgement* one = heldOut ? &*row.heldOut : &row;
            if (row.group == kSimulated) {
                axes[0][row.group].push_back(one);
                continue;
            }
            all.push_back(one);
            axes[0][row.group].push_back(one);
            axes[1][row.family].push_back(one);
            axes[2][row.device].push_back(one);
            axes[3][row.strategy].push_back(one);
            if (row.causes) axes[4][std::string(nameOf(dominant(*row.causes)))].push_back(one);
        }
        if (!all.empty()) out.emplace_back("all " + std::string(nameOf(kind)), summaryOf(all));
        for (std::size_t a = 0; a < kAxes; ++a)
            for (const auto& [value, rows] : axes[a]) out.emplace_back(names[a] + value, summaryOf(rows));
    }
    return out;
}

Json publishedJson(const PublishedVerdict& verdict) {
    Json json;
    json["format"] = "ringside-published";
    json["version"] = 1;
    json["records"] = verdict.records;
    json["summary"] = summaryJson(groupsOf(verdict));
    json["held_out"] = summaryJson(groupsOf(verdict, true));
    json["rows"] = Json::array();
    for (const JudgedRow& row : verdict.rows) {
        const auto in = row.inBand();
        Json causes = nullptr;
        if (row.causes)
            for (std::size_t c = 0; c < kCauses; ++c) causes[std::string(nameOf(static_cast<Cause>(c)))] = (*row.causes)[c];
        Json heldOut = nullptr;
        if (row.heldOut) {
            const auto inside = row.heldOut->inBand();
            heldOut = {{"predicted", row.heldOut->predicted}, {"error", row.heldOut->error()}, {"in_band", inside ? Json(*inside) : Json(nullptr)}};
        }
        json["rows"].push_back({{"id", row.id}, {"predicted", row.predicted}, {"measured", row.measured}, {"error", row.error()}, {"in_band", in ? Json(*in) : Json(nullptr)},
                                {"unit", row.kind == RecordKind::Memory ? "bytes" : "s"}, {"p10", orNull(row.p10)}, {"p90", orNull(row.p90)}, {"kind", nameOf(row.kind)}, {"class", row.group},
                                {"family", row.family}, {"device", row.device}, {"strategy", row.strategy}, {"predicted_out_of_memory", row.predictedOutOfMemory}, {"assumed", row.assumed}, {"causes", std::move(causes)}, {"held_out", std::move(heldOut)}});
        if (row.kind == RecordKind::Memory) {
            json["rows"].back()["predicted_allocated"] = row.allocated;
            json["rows"].back()["predicted_reserved"] = row.reserved;
        }
    }
    json["skipped"] = Json::array();
    for (const SkippedRecord& one : verdict.skipped) json["skipped"].push_back({{"id", one.id}, {"reason", one.reason}});
    json["memory"] = {{"false_fits", verdict.falseFits}, {"false_out_of_memory", verdict.falseOutOfMemory}};
    return json;
}

std::string publishedCsv(const PublishedVerdict& verdict) {
    std::string out = "id,kind,class,family,device,strategy,model,predicted,measured,unit,error,p10,p90,in_band,cause,held_out_error,skipped\n";
    for (const JudgedRow& row : verdict.rows) {
        const auto in = row.inBand();
        out += fmt::format("{},{},{},{},{},{},{},{:.9g},{:.9g},{},{:.6f},{},{},{},{},{},\n", cell(row.id), nameOf(row.kind), cell(row.group), cell(row.family), cell(row.device), cell(row.strategy), cell(row.model),
                           row.predicted, row.measured, row.kind == RecordKind::Memory ? "bytes" : "s", row.error(), row.p10 ? fmt::format("{:.9g}", *row.p10) : "",
                           row.p90 ? fmt::format("{:.9g}", *row.p90) : "", in ? (*in ? "1" : "0") : "", row.causes ? nameOf(dominant(*row.causes)) : "",
                           row.heldOut ? fmt::format("{:.6f}", row.heldOut->error()) : "");
    }
    for (const SkippedRecord& one : verdict.skipped) out += fmt::format("{},{},,{},,,,,,,,,,,,,{}\n", cell(one.id), nameOf(one.kind), cell(one.family), cell(one.reason));
    return out;
}

std::string publishedText(const PublishedVerdict& verdict) {
    std::string out = countsText(verdict);
    const Table table = tableOf(verdict);
    std::size_t width = 5;
    for (const TableRow& row : table.rows) width = std::max(width, row.group.size());
    if (table.heldOut) out += "\nErrors with figures fitted without the row's own source (held out); in sample beside them:\n";
    const auto cellWidth = [&](std::size_t column) { return std::max<std::size_t>(9, table.columns()[column].size()); };
    if (!table.rows.empty()) {
        out += fmt::format("\n  {:<{}}", "group", width);
        for (std::size_t c = 0; c < table.columns().size(); ++c) out += fmt::format("  {:>{}}", table.columns()[c], cellWidth(c));
        out += "\n";
    }
    for (const TableRow& row : table.rows) {
        if (row.group.starts_with("all ") && &row != &table.rows.front()) out += "\n";
        out += fmt::format("  {:<{}}", row.group, width);
        for (std::size_t c = 0; c < row.cells.size(); ++c) out += fmt::format("  {:>{}}", row.cells[c], cellWidth(c));
        out += "\n";
    }
    for (const RecordKind kind : kKinds) {
        const auto worst = worstOf(verdict, kind);
        if (worst.empty()) continue;
        out += fmt::format("\nWorst rows, {}\n", nameOf(kind));
        for (const JudgedRow* row : worst)
            out += fmt::format("  {:>+8.1f} %  predicted {:>10}, measured {:>10}  {}{}\n", row->error() * 100, valueText(*row, row->predicted), valueText(*row, row->measured), row->id, row->causes ? "  (" + causeText(*row) + ")" : "");
    }
    if (!verdict.rows.empty()) out += "\n" + memoryText(verdict);
    if (!verdict.skipped.empty()) {
        out += fmt::format("\nSkipped: {} records\n", verdict.skipped.size());
        for (const auto& [reason, count] : reasonsOf(verdict)) out += fmt::format("  {:>5}  {}\n", count, reason);
    }
    return out;
}

std::string publishedMarkdown(const PublishedVerdict& verdict) {
    std::string out = "\n";
    const std::string counts = countsText(verdict);
    for (std::size_t at = 0; at < counts.size();) {
        const std::size_t end = counts.find('\n', at);
        out += "- " + counts.substr(at, end - at) + "\n";
        at = end + 1;
    }
    const Table table = tableOf(verdict);
    if (table.heldOut)
        out += "\nEvery row is predicted with figures that were fitted without its own source (five folds of sources); the last two columns are in sample, with the figures that the program ships.\n";
    out += "\n| group |";
    for (const std::string& column : table.columns()) out += " " + column + " |";
    out += "\n| --- |";
    for (std::size_t c = 0; c < table.columns().size(); ++c) out += " --- |";
    out += "\n";
    for (const TableRow& row : table.rows) {
        const bool heading = row.group.starts_with("all ");
        out += fmt::format("| {} |", heading ? "**" + row.group + "**" : row.group);
        for (const std::string& value : row.cells) out += " " + value + " |";
        out += "\n";
    }
    out += "\n" + memoryText(verdict);
    for (const RecordKind kind : kKinds) {
        const auto worst = worstOf(verdict, kind);
        if (worst.empty()) continue;
        out += fmt::format("\nWorst rows, {}, with the shipped figures:\n\n| row | predicted | measured | error % | predicted time is |\n| --- | --- | --- | --- | --- |\n", nameOf(kind));
        for (const JudgedRow* row : worst)
            out += fmt::format("| `{}` | {} | {} | {} | {} |\n", row->id, valueText(*row, row->predicted), valueText(*row, row->measured), signedPercent(row->error()), causeText(*row));
    }
    if (!verdict.skipped.empty()) {
        out += fmt::format("\n{} records cannot be predicted:\n\n| records | reason |\n| --- | --- |\n", verdict.skipped.size());
        for (const auto& [reason, count] : reasonsOf(verdict)) out += fmt::format("| {} | {} |\n", count, reason);
    }
    return out + "\n";
}

std::string publishedScatter(const PublishedVerdict& verdict) {
    const auto any = [&](RecordKind kind) { return std::any_of(verdict.rows.begin(), verdict.rows.end(), [&](const JudgedRow& row) { return row.kind == kind; }); };
    const RecordKind kind = any(RecordKind::Training) ? RecordKind::Training : any(RecordKind::Collective) ? RecordKind::Collective : RecordKind::Memory;
    const double unit = kind == RecordKind::Memory ? 0x1p30 : kind == RecordKind::Collective ? 1e-6 : 1;
    const std::string unitName = kind == RecordKind::Memory ? "GiB" : kind == RecordKind::Collective ? "us" : "s";
    Chart chart;
    chart.title = "Predicted against published measurements";
    chart.xLabel = "measured, " + unitName;
    chart.yLabel = "predicted, " + unitName;
    chart.log2X = chart.log2Y = true;
    std::map<std::string, ChartSeries> series;
    double low = 0, high = 0;
    std::size_t count = 0;
    for (const JudgedRow& row : verdict.rows) {
        if (row.kind != kind) continue;
        const double x = row.measured / unit, y = row.predicted / unit;
        ChartSeries& own = series[row.group];
        own.name = row.group;
        own.line = false;
        own.points.push_back({x, y, false, fmt::format("{} ({:+.1f} %)", row.id, row.error() * 100)});
        low = count == 0 ? x : std::min(low, x);
        high = count == 0 ? x : std::max(high, x);
        ++count;
    }
    chart.subtitle = fmt::format("{} rows, {}", count, nameOf(kind));
    for (auto& [name, one] : series) chart.series.push_back(std::move(one));
    // Small groups lie over large ones.
    std::stable_sort(chart.series.begin(), chart.series.end(), [](const ChartSeries& a, const ChartSeries& b) { return a.points.size() > b.points.size(); });
    if (count > 0)
        for (const double factor : {1.1, 1.0, 1 / 1.1}) {
            ChartSeries line;
            if (factor > 1) line.name = "±10 %";  // one name for three lines that end side by side
            line.reference = true;
            line.points = {{low, low * factor, false, ""}, {high, high * factor, false, ""}};
            chart.series.push_back(std::move(line));
        }
    return svgOf(chart);
}

Result<std::string> withSection(const std::string& document, const std::string& section, const std::string& place) {
    const std::size_t begin = document.find(kBegin), end = document.find(kEnd);
    if (begin == std::string::npos || end == std::string::npos || end < begin)
        return badInput(place, fmt::format("has no section to write into; expected the lines '{}' and '{}'", kBegin.substr(0, kBegin.size() - 1), kEnd));
    return document.substr(0, begin + kBegin.size()) + section + document.substr(end);
}

}  // namespace ringside
