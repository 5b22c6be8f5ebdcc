#include "calibrate/validate/html_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "calibrate/validate/timeline_svg.h"

namespace ringside {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #5b6570; --line: #d7dce1; --back: #f2f4f6;
  --good: #1a7f4b; --fair: #9a6700; --poor: #c0392b; --compute: #3b76c4; --optimizer: #7a4fb5; --communication: #d9822b; --copy: #3a9d8f; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --ink: #e6e9ec; --soft: #9aa4ae; --line: #343b43; --back: #20252b;
  --good: #5cc98d; --fair: #e0b04a; --poor: #f0776a; --compute: #6ea3e8; --optimizer: #a98be0; --communication: #eda45c; --copy: #67c4b6; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 1190px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p.soft, td.soft, .soft { color: var(--soft); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child, td.text, th.text { text-align: left; } td.long { text-align: left; white-space: normal; } a { color: inherit; }
.good { color: var(--good); } .fair { color: var(--fair); } .poor { color: var(--poor); font-weight: 600; }
.figures { display: flex; gap: 2.2rem; flex-wrap: wrap; margin: 1rem 0; } .figures div { font-size: 1.5rem; } .figures span { display: block; font-size: .8rem; color: var(--soft); }
.wide { overflow-x: auto; } .beside { display: flex; gap: 1.5rem; flex-wrap: wrap; align-items: flex-start; }
details { border-top: 1px solid var(--line); padding: .4rem 0; } summary { cursor: pointer; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg text.lane { text-anchor: end; fill: var(--soft); } svg text.tick { text-anchor: middle; fill: var(--soft); font-size: 11px; }
svg text.strong { font-weight: 600; } svg .axis { stroke: var(--line); } svg .ideal { stroke: var(--soft); stroke-dasharray: 4 4; } svg .back { fill: var(--back); }
svg .c-compute { fill: var(--compute); } svg .c-optimizer { fill: var(--optimizer); } svg .c-communication { fill: var(--communication); } svg .c-copy { fill: var(--copy); }
svg .floor { stroke: var(--soft); stroke-width: 1.5; } svg .in { fill: var(--compute); } svg .out { fill: var(--poor); }
.key i { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; border-radius: 2px; }
)";

std::string percent(double value) { return fmt::format("{:.1f} %", value * 100); }
std::string ms(double seconds) { return fmt::format("{:.2f}", seconds * 1e3); }

/// Good: not to be told from noise, or within 5 %.
const char* grade(double error, double noise) { return std::abs(error) <= std::max(0.05, noise) ? "good" : std::abs(error) <= 0.15 ? "fair" : "poor"; }

std::string errorCell(std::optional<double> error, double noise) {
    if (!error) return "<td class=\"soft\">–</td>";
    return fmt::format("<td class=\"{}\">{:+.1f} %</td>", grade(*error, noise), *error * 100);
}

std::string comparedTable(const char* title, const std::vector<Compared>& list, const ValidationRow& row) {
    std::string out = fmt::format("<table><thead><tr><th>{}</th><th>predicted ms</th><th>measured ms</th><th>error</th><th>of the step</th></tr></thead><tbody>\n", title);
    for (const Compared& one : list) {
        const double ofStep = (one.predicted - one.measured) / row.measured;
        // What does not matter to the step is not coloured, however wrong it is.
        const double tolerated = std::abs(ofStep) < 0.005 ? 1e9 : row.noiseFloor;
        out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td>{}<td class=\"soft\">{:+.1f} %</td></tr>\n", escapeHtml(one.name), ms(one.predicted), ms(one.measured), errorCell(one.error(), tolerated), ofStep * 100);
    }
    return out + "</tbody></table>\n";
}

/// Predicted over measured, both logarithmic; the bar is the noise of the measurement.
std::string scatter(const std::vector<ValidationRow>& rows) {
    constexpr double kSize = 310, kLeft = 60, kTop = 10, kBottom = 50;
    double least = 1e300, most = 0;
    for (const ValidationRow& row : rows) {
        least = std::min({least, row.predicted, row.measured});
        most = std::max({most, row.predicted, row.measured});
    }
    const double low = std::floor(std::log2(least * 1e3) - 0.1), high = std::ceil(std::log2(most * 1e3) + 0.1);
    const auto along = [&](double seconds) { return (std::log2(seconds * 1e3) - low) / (high - low) * kSize; };
    std::string out = fmt::format("<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n", kLeft + kSize + 20, kTop + kSize + kBottom);
    const double every = std::max(1.0, std::ceil((high - low) / 8));
    for (double tick = low; tick <= high; tick += every) {
        const double at = (tick - low) / (high - low) * kSize;
        out += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"/><text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.0f}\">{4:g}</text>\n", kLeft + at, kTop, kTop + kSize, kTop + kSize + 16, std::exp2(tick));
        out += fmt::format("<line class=\"axis\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"lane\" x=\"{3:.0f}\" y=\"{4:.1f}\">{5:g}</text>\n", kLeft, kLeft + kSize, kTop + kSize - at, kLeft - 6,
                           kTop + kSize - at + 4, std::exp2(tick));
    }
    out += fmt::format("<line class=\"ideal\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", kLeft, kTop + kSize, kLeft + kSize, kTop);
    out += fmt::format("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.0f}\">measured, ms</text><text class=\"tick\" transform=\"translate(16 {:.0f}) rotate(-90)\">predicted, ms</text>\n", kLeft + kSize / 2, kTop + kSize + 36, kTop + kSize / 2);
    for (const ValidationRow& row : rows) {
        const double x = kLeft + along(row.measured), y = kTop + kSize - along(row.predicted), floor = std::min(row.noiseFloor, 0.9);
        out += fmt::format("<line class=\"floor\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft + along(row.measured * (1 - floor)), kLeft + along(row.measured * (1 + floor)), y, y);
        out += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{} with {}: predicted {} ms, measured {} ms, {:+.1f} %</title></circle>\n", row.inBand() ? "in" : "out", x, y, escapeHtml(row.model),
                           escapeHtml(row.strategy), ms(row.predicted), ms(row.measured), row.error() * 100);
    }
    return out + "</svg>\n";
}

std::string rowsTable(const std::vector<ValidationRow>& rows) {
    std::string out =
        "<div class=\"wide\"><table><thead><tr><th>model</th><th class=\"text\">strategy</th><th>ranks</th><th>predicted ms</th><th>measured ms</th><th>error</th><th>noise floor</th><th>band ms</th><th>memory</th></tr></thead><tbody>\n";
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const ValidationRow& row = rows[r];
        out += fmt::format("<tr><td><a href=\"#row{}\">{}</a></td><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td>{}<td>± {}</td><td class=\"{}\">{} – {}</td><td class=\"{}\">{}</td></tr>\n", r, escapeHtml(row.model),
                           escapeHtml(row.strategy), row.ranks, ms(row.predicted), ms(row.measured), errorCell(row.error(), row.noiseFloor), percent(row.noiseFloor), row.inBand() ? "soft" : "fair", ms(row.p10), ms(row.p90),
                           row.measuredPeak == 0 ? "soft" : row.predictedPeak == row.measuredPeak ? "good" : "poor", row.measuredPeak == 0 ? "–" : row.predictedPeak == row.measuredPeak ? "exact" : "differs");
    }
    return out + "</tbody></table></div>\n";
}

std::string strategiesTable(const ValidationSummaries& summaries) {
    std::string out = "<table><thead><tr><th>strategy</th><th>rows</th><th>MAPE</th><th>bias</th><th>worst</th><th>noise floor</th><th>in band</th></tr></thead><tbody>\n";
    for (const auto& [strategy, one] : summaries.strategies)
        out += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"{}\">{}</td><td>{:+.1f} %</td><td>{}</td><td>± {}</td><td>{:.0f} %</td></tr>\n", escapeHtml(strategy), one.rows, grade(one.mape, one.noiseFloor), percent(one.mape),
                           one.bias * 100, percent(one.worst), percent(one.noiseFloor), one.coverage * 100);
    return out + "</tbody></table>\n";
}

std::string rowDetails(const ValidationRow& row, std::size_t index) {
    std::string out = fmt::format("<details id=\"row{}\"{}><summary><b>{}</b> with {} on {} rank{}: {} ms predicted, {} ms measured, <span class=\"{}\">{:+.1f} %</span></summary>\n", index, index == 0 ? " open" : "",
                                  escapeHtml(row.model), escapeHtml(row.strategy), row.ranks, row.ranks == 1 ? "" : "s", ms(row.predicted), ms(row.measured), grade(row.error(), row.noiseFloor), row.error() * 100);
    if (row.predictedTrace.size() > 0 && row.measuredTrace.size() > 0) out += "<div class=\"wide\">" + timelinesSvg(row.predictedTrace, row.measuredTrace) + "</div>\n";
    std::vector<Compared> phases = row.phases;
    if (row.ranks > 1) {
        phases.push_back({"communication", row.communication.predicted, row.communication.measured});
        phases.push_back({"… of it exposed", row.exposed.predicted, row.exposed.measured});
    }
    out += "<div class=\"beside\">" + comparedTable("phase", phases, row) + comparedTable("task class", row.classes, row) + "</div>\n";
    out += "<p class=\"soft\">";
    if (row.measuredPeak > 0) out += fmt::format("Peak memory of a rank's tensors: {} bytes predicted, {} bytes measured. ", row.predictedPeak, row.measuredPeak);
    out += fmt::format("Rounds of {} steps: ", row.steps);
    for (std::size_t r = 0; r < row.rounds.size(); ++r) out += (r > 0 ? ", " : "") + ms(row.rounds[r]);
    return out + " ms.</p></details>\n";
}

std::string holdoutTable(const Holdout& holdout) {
    std::string out = fmt::format(
        "<h2>Held-out points</h2>\n<p class=\"soft\">Measured points that the fit was not given ({} series were fitted instead), and what it says about them.</p>\n"
        "<table><thead><tr><th>what</th><th>points</th><th>MAPE</th><th>median</th><th>90 %</th><th>worst</th><th>sum</th></tr></thead><tbody>\n",
        holdout.fitted);
    for (const HoldoutGroup& group : holdout.groups)
        out += fmt::format("<tr><td>{}</td><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:+.1f} %</td></tr>\n", escapeHtml(group.name), group.points, grade(group.mape, 0), percent(group.mape),
                           percent(group.median), percent(group.p90), percent(group.worst), group.total * 100);
    return out + "</tbody></table>\n";
}

}  // namespace

std::string htmlReport(const ReportHead& head, const StepValidation& validation, const std::optional<Holdout>& holdout) {
    const ValidationSummaries summaries = summariesOf(validation.rows);
    const ValidationSummary& all = summaries.all;
    std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    out += fmt::format("<title>Ringside: predicted against measured</title><style>{}</style></head><body>\n", kStyle);
    out += fmt::format("<h1>Predicted against measured</h1>\n<p class=\"soft\">{} · {} · {}</p>\n", escapeHtml(head.profile), escapeHtml(head.where), escapeHtml(validation.device));
    const auto figure = [&](const std::string& value, const char* name) { out += fmt::format("<div>{}<span>{}</span></div>", value, name); };
    out += "<div class=\"figures\">";
    figure(percent(all.mape), "mean absolute error");
    figure(percent(all.worst), "worst");
    figure("± " + percent(all.noiseFloor), "noise floor");
    figure(fmt::format("{:.0f} %", all.coverage * 100), "of measurements in the band");
    if (all.order.pairs > 0) figure(fmt::format("{} of {}", all.order.right, all.order.pairs), "pairs in the right order");
    out += "</div>\n" + rowsTable(validation.rows);
    out += "<p class=\"soft\">An error below its noise floor says nothing: that far apart are repeats of the same measurement.</p>\n";
    out += "<h2>Strategies</h2>\n<div class=\"beside\">" + strategiesTable(summaries) + scatter(validation.rows) + "</div>\n";
    if (!validation.skipped.empty()) {
        out += fmt::format("<h2>Not compared</h2>\n<details><summary>{} case{}, and why</summary><table><thead><tr><th>model</th><th class=\"text\">strategy</th><th class=\"text\">why</th></tr></thead><tbody>\n", validation.skipped.size(),
                           validation.skipped.size() == 1 ? "" : "s");
        for (const SkippedCase& one : validation.skipped) out += fmt::format("<tr><td>{}</td><td class=\"text\">{}</td><td class=\"long\">{}</td></tr>\n", escapeHtml(one.model), escapeHtml(one.strategy), escapeHtml(one.reason));
        out += "</tbody></table></details>\n";
    }
    if (holdout && !holdout->groups.empty()) out += holdoutTable(*holdout);
    out += "<h2>Row by row</h2>\n<p class=\"key soft\">Timelines:";
    for (const SliceCategory category : {SliceCategory::Compute, SliceCategory::Optimizer, SliceCategory::Communication, SliceCategory::Copy})
        out += fmt::format("<i style=\"background: var(--{0})\"></i>{0}", nameOf(category));
    out += "</p>\n";
    for (std::size_t r = 0; r < validation.rows.size(); ++r) out += rowDetails(validation.rows[r], r);
    return out + "</body></html>\n";
}

}  // namespace ringside
