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

std::string percent(double value) { return fmt::format("{:.1f}", value * 100); }
std::string signedPercent(double value) { return fmt::format("{:+.1f}", value * 100); }

struct TableRow {
    std::string group;
    std::vector<std::string> cells;
};
const std::vector<std::string> kColumns = {"n", "MAPE %", "median %", "P90 %", "worst %", "bias %", "Spearman", "in band %"};

TableRow tableRow(const std::string& group, const GroupSummary& s) {
    return {group, {fmt::format("{}", s.n), percent(s.mape), percent(s.median), percent(s.p90), percent(s.worst), signedPercent(s.bias),
                    s.spearman ? fmt::format("{:.3f}", *s.spearman) : "-", s.coverage ? fmt::format("{:.0f}", *s.coverage * 100) : "-"}};
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

std::vector<std::pair<std::string, GroupSummary>> groupsOf(const PublishedVerdict& verdict) {
    std::vector<std::pair<std::string, GroupSummary>> out;
    for (const RecordKind kind : kKinds) {
        const std::string prefix = kind == RecordKind::Training ? "" : std::string(nameOf(kind)) + " ";
        std::vector<const Judgement*> all;
        std::map<std::string, std::vector<const Judgement*>> axes[4];
        const std::string names[4] = {"class:", prefix + "family:", prefix + "device:", prefix + (kind == RecordKind::Collective ? "op:" : "strategy:")};
        for (const JudgedRow& row : verdict.rows) {
            if (row.kind != kind) continue;
            all.push_back(&row);
            axes[0][row.group].push_back(&row);
            axes[1][row.family].push_back(&row);
            axes[2][row.device].push_back(&row);
            axes[3][row.strategy].push_back(&row);
        }
        if (all.empty()) continue;
        out.emplace_back("all " + std::string(nameOf(kind)), summaryOf(all));
        for (std::size_t a = 0; a < 4; ++a)
            for (const auto& [value, rows] : axes[a]) out.emplace_back(names[a] + value, summaryOf(rows));
    }
    return out;
}

Json publishedJson(const PublishedVerdict& verdict) {
    Json json;
    json["format"] = "ringside-published";
    json["version"] = 1;
    json["records"] = verdict.records;
    json["summary"] = Json::object();
    for (const auto& [name, s] : groupsOf(verdict))
        json["summary"][name] = {{"n", s.n}, {"mape", s.mape}, {"median", s.median}, {"p90", s.p90}, {"worst", s.worst}, {"bias", s.bias}, {"spearman", orNull(s.spearman)}, {"coverage", orNull(s.coverage)}};
    json["rows"] = Json::array();
    for (const JudgedRow& row : verdict.rows) {
        const auto in = row.inBand();
        json["rows"].push_back({{"id", row.id}, {"predicted", row.predicted}, {"measured", row.measured}, {"error", row.error()}, {"in_band", in ? Json(*in) : Json(nullptr)},
                                {"unit", row.kind == RecordKind::Memory ? "bytes" : "s"}, {"p10", orNull(row.p10)}, {"p90", orNull(row.p90)}, {"kind", nameOf(row.kind)}, {"class", row.group},
                                {"family", row.family}, {"device", row.device}, {"strategy", row.strategy}, {"predicted_out_of_memory", row.predictedOutOfMemory}, {"assumed", row.assumed}});
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
    std::string out = "id,kind,class,family,device,strategy,model,predicted,measured,unit,error,p10,p90,in_band,skipped\n";
    for (const JudgedRow& row : verdict.rows) {
        const auto in = row.inBand();
        out += fmt::format("{},{},{},{},{},{},{},{:.9g},{:.9g},{},{:.6f},{},{},{},\n", cell(row.id), nameOf(row.kind), cell(row.group), cell(row.family), cell(row.device), cell(row.strategy), cell(row.model),
                           row.predicted, row.measured, row.kind == RecordKind::Memory ? "bytes" : "s", row.error(), row.p10 ? fmt::format("{:.9g}", *row.p10) : "",
                           row.p90 ? fmt::format("{:.9g}", *row.p90) : "", in ? (*in ? "1" : "0") : "");
    }
    for (const SkippedRecord& one : verdict.skipped) out += fmt::format("{},{},,{},,,,,,,,,,,{}\n", cell(one.id), nameOf(one.kind), cell(one.family), cell(one.reason));
    return out;
}

std::string publishedText(const PublishedVerdict& verdict) {
    std::string out = countsText(verdict);
    std::vector<TableRow> table;
    for (const auto& [name, summary] : groupsOf(verdict)) table.push_back(tableRow(name, summary));
    std::size_t width = 5;
    for (const TableRow& row : table) width = std::max(width, row.group.size());
    if (!table.empty()) {
        out += fmt::format("\n  {:<{}}", "group", width);
        for (const std::string& column : kColumns) out += fmt::format("  {:>9}", column);
        out += "\n";
    }
    for (const TableRow& row : table) {
        if (row.group.starts_with("all ") && &row != &table.front()) out += "\n";
        out += fmt::format("  {:<{}}", row.group, width);
        for (const std::string& value : row.cells) out += fmt::format("  {:>9}", value);
        out += "\n";
    }
    for (const RecordKind kind : kKinds) {
        const auto worst = worstOf(verdict, kind);
        if (worst.empty()) continue;
        out += fmt::format("\nWorst rows, {}\n", nameOf(kind));
        for (const JudgedRow* row : worst)
            out += fmt::format("  {:>+8.1f} %  predicted {:>10}, measured {:>10}  {}\n", row->error() * 100, valueText(*row, row->predicted), valueText(*row, row->measured), row->id);
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
    out += "\n| group |";
    for (const std::string& column : kColumns) out += " " + column + " |";
    out += "\n| --- |";
    for (std::size_t c = 0; c < kColumns.size(); ++c) out += " --- |";
    out += "\n";
    for (const auto& [name, summary] : groupsOf(verdict)) {
        const TableRow row = tableRow(name, summary);
        const bool heading = name.starts_with("all ");
        out += fmt::format("| {} |", heading ? "**" + name + "**" : name);
        for (const std::string& value : row.cells) out += " " + value + " |";
        out += "\n";
    }
    out += "\n" + memoryText(verdict);
    for (const RecordKind kind : kKinds) {
        const auto worst = worstOf(verdict, kind);
        if (worst.empty()) continue;
        out += fmt::format("\nWorst rows, {}:\n\n| row | predicted | measured | error % |\n| --- | --- | --- | --- |\n", nameOf(kind));
        for (const JudgedRow* row : worst) out += fmt::format("| `{}` | {} | {} | {} |\n", row->id, valueText(*row, row->predicted), valueText(*row, row->measured), signedPercent(row->error()));
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
    if (count > 0)
        for (const double factor : {1.1, 1.0, 0.9}) {
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
