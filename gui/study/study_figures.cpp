#include "gui/study/study_figures.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/study/money.h"
#include "sim/study/pareto.h"
#include "sim/study/scenario_patch.h"

namespace ringside::gui {
namespace {

constexpr std::int64_t kMostDevices = 1 << 20;

MemoryVerdict verdictOf(const std::string& name) {
    for (const MemoryVerdict verdict : {MemoryVerdict::Tight, MemoryVerdict::OutOfMemory})
        if (nameOf(verdict) == name) return verdict;
    return MemoryVerdict::Fits;
}

double numberIn(const Json& row, const char* key) { return row.contains(key) && row[key].is_number() ? row[key].get<double>() : 0; }

/// What else stands in front of the figures: the values that the row sets.
std::string labelOf(const Json& row) {
    std::string label;
    for (const auto& entry : row.items()) {
        if (entry.key() == "index") continue;
        if (entry.key() == "step_time_s" || entry.key() == "error") break;
        label += fmt::format("{}{}={}", label.empty() ? "" : ", ", entry.key(), entry.value().is_string() ? entry.value().get<std::string>() : entry.value().dump());
    }
    return label;
}

void price(StudyRow& row, const Cluster& cluster, const PriceCatalog& prices) {
    if (const auto usd = clusterUsdPerHour(cluster, prices, Commitment::OnDemand)) row.usdPerHour = *usd;
}

/// The error's index, or the row.
std::optional<StudyRow> rowFrom(const std::string& line, const SweepPlan& plan, const Catalogs& catalogs, const PriceCatalog& prices) {
    const Json json = Json::parse(line);
    if (json.contains("error")) return std::nullopt;
    StudyRow row;
    row.index = json["index"].get<std::size_t>();
    row.label = labelOf(json);
    row.stepSeconds = numberIn(json, "step_time_s");
    row.samplesPerSecond = numberIn(json, "samples_per_s");
    row.tokensPerSecond = numberIn(json, "tokens_per_s");
    row.mfu = numberIn(json, "mfu");
    row.exposedSeconds = numberIn(json, "exposed_communication_s");
    row.peakBytes = static_cast<Bytes>(numberIn(json, "peak_memory_bytes"));
    row.verdict = verdictOf(json.value("verdict", ""));
    row.document = plan.document(row.index).value_or(Json::object());
    if (const auto scenario = resolveScenario(row.document, "row", catalogs)) {
        row.devices = scenario->cluster.deviceCount();
        row.strategy = scenario->parallel.strategy;
        price(row, scenario->cluster, prices);
    }
    return row;
}

Result<std::int64_t> countIn(const std::string& text) {
    std::int64_t value = 0;
    bool any = false;
    for (const char c : text) {
        if (c == ' ') continue;
        if (c < '0' || c > '9' || value > kMostDevices) return badInput("devices", fmt::format("'{}' is not a device count; expected numbers as in 1,2,4-64", text));
        value = value * 10 + (c - '0');
        any = true;
    }
    if (!any || value < 1 || value > kMostDevices) return badInput("devices", fmt::format("'{}' is not a device count; expected 1 to {}", text, kMostDevices));
    return value;
}

}  // namespace

std::string_view nameOf(StudyFigure figure) {
    switch (figure) {
        case StudyFigure::StepTime: return "Step time";
        case StudyFigure::Throughput: return "Throughput";
        case StudyFigure::Tokens: return "Tokens per second";
        case StudyFigure::Mfu: return "MFU";
        case StudyFigure::ExposedShare: return "Exposed communication";
        case StudyFigure::PeakMemory: return "Peak memory";
        case StudyFigure::UsdPerHour: return "Rent";
        case StudyFigure::UsdPerMillionSamples: return "Cost of a million samples";
        case StudyFigure::Devices: return "Devices";
    }
    return "?";
}

std::string_view unitOf(StudyFigure figure) {
    switch (figure) {
        case StudyFigure::StepTime: return "ms";
        case StudyFigure::Throughput: return "samples/s";
        case StudyFigure::Tokens: return "tokens/s";
        case StudyFigure::Mfu: return "%";
        case StudyFigure::ExposedShare: return "% of the step";
        case StudyFigure::PeakMemory: return "GiB";
        case StudyFigure::UsdPerHour: return "USD/h";
        case StudyFigure::UsdPerMillionSamples: return "USD";
        case StudyFigure::Devices: return "";
    }
    return "";
}

bool moreIsBetter(StudyFigure figure) { return figure == StudyFigure::Throughput || figure == StudyFigure::Tokens || figure == StudyFigure::Mfu; }

std::optional<double> figureOf(const StudyRow& row, StudyFigure figure) {
    switch (figure) {
        case StudyFigure::StepTime: return row.stepSeconds * 1e3;
        case StudyFigure::Throughput: return row.samplesPerSecond;
        case StudyFigure::Tokens: return row.tokensPerSecond > 0 ? std::optional(row.tokensPerSecond) : std::nullopt;
        case StudyFigure::Mfu: return row.mfu * 100;
        case StudyFigure::ExposedShare: return row.stepSeconds > 0 ? std::optional(row.exposedSeconds / row.stepSeconds * 100) : std::nullopt;
        case StudyFigure::PeakMemory: return static_cast<double>(row.peakBytes) / static_cast<double>(kGiB);
        case StudyFigure::UsdPerHour: return row.usdPerHour;
        case StudyFigure::UsdPerMillionSamples:
            if (!row.usdPerHour || row.samplesPerSecond <= 0) return std::nullopt;
            return usdFor(*row.usdPerHour, 1e6 / row.samplesPerSecond);
        case StudyFigure::Devices: return static_cast<double>(row.devices);
    }
    return std::nullopt;
}

std::vector<std::size_t> bestRows(std::span<const StudyRow> rows, StudyFigure x, StudyFigure y) {
    std::vector<Tradeoff> points;
    std::vector<std::size_t> rowOf;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto px = figureOf(rows[i], x), py = figureOf(rows[i], y);
        if (!px || !py || rows[i].verdict == MemoryVerdict::OutOfMemory) continue;
        points.push_back({moreIsBetter(x) ? -*px : *px, moreIsBetter(y) ? -*py : *py});
        rowOf.push_back(i);
    }
    std::vector<std::size_t> best;
    for (const std::size_t point : paretoFront(points)) best.push_back(rowOf[point]);
    std::stable_sort(best.begin(), best.end(), [&](std::size_t a, std::size_t b) { return *figureOf(rows[a], x) < *figureOf(rows[b], x); });
    return best;
}

Result<SweepAnswer> sweepRows(const SweepDefinition& definition, const Catalogs& catalogs, const PriceCatalog& prices, const StudyWatch& watch) {
    TRY(const SweepPlan plan, SweepPlan::create(definition, "ringside-gui", catalogs));
    SweepAnswer answer;
    SweepOptions options;
    options.threads = watch.threads;
    options.stop = watch.stop;
    watch.progress(0, plan.rows());
    TRY(const std::size_t reached, runSweep(plan, 0, options, [&](const SweepBlock& block) -> Result<void> {
        for (std::size_t begin = 0; begin < block.text.size();) {
            const std::size_t end = block.text.find('\n', begin);
            if (auto row = rowFrom(block.text.substr(begin, end - begin), plan, catalogs, prices)) answer.rows.push_back(std::move(*row));
            else ++answer.failed;
            begin = end + 1;
        }
        if (answer.firstError.empty()) answer.firstError = block.firstError;
        watch.progress(block.first + block.count, plan.rows());
        return {};
    }));
    answer.stopped = reached < plan.rows();
    return answer;
}

std::vector<StudyRow> rowsOf(const ScalingStudy& study, const Json& base, const Catalogs& catalogs, const PriceCatalog& prices) {
    std::vector<StudyRow> rows;
    for (const ScalingPoint& point : study.points) {
        StudyRow row;
        row.index = rows.size();
        row.label = fmt::format("{} on {} devices", point.strategy, point.devices);
        row.devices = point.devices;
        row.strategy = point.strategy;
        row.stepSeconds = point.stepSeconds;
        row.samplesPerSecond = point.samplesPerSecond;
        row.tokensPerSecond = point.tokensPerSecond;
        row.mfu = point.mfu;
        row.exposedSeconds = point.exposedSeconds;
        row.peakBytes = point.peakBytes;
        row.verdict = point.verdict;
        row.document = base;
        setStrategy(row.document, point.strategy);
        makeRoomFor(row.document, {"training.micro_batch", "training.grad_accum"});
        row.document["training"]["micro_batch"] = point.microBatch;
        row.document["training"]["grad_accum"] = point.gradAccum;
        row.document["training"].erase("global_batch");
        if (setDevices(row.document, point.devices, "scenario", catalogs))
            if (const auto scenario = resolveScenario(row.document, "scenario", catalogs)) price(row, scenario->cluster, prices);
        rows.push_back(std::move(row));
    }
    return rows;
}

Result<std::vector<std::int64_t>> parseDeviceCounts(const std::string& text) {
    std::vector<std::int64_t> counts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t dash = part.find('-');
        TRY(const std::int64_t first, countIn(part.substr(0, dash)));
        TRY(const std::int64_t last, dash == std::string::npos ? Result<std::int64_t>(first) : countIn(part.substr(dash + 1)));
        if (last < first) return badInput("devices", fmt::format("'{}' runs backwards; write {}-{}", part, last, first));
        for (std::int64_t count = first; count <= last; count *= 2) counts.push_back(count);
    }
    return counts;
}

std::string toCsv(std::span<const StudyRow> rows) {
    std::string text = "label,devices,strategy,step_time_s,samples_per_s,tokens_per_s,mfu,communication_exposed_s,memory_peak_bytes,memory_verdict,usd_per_hour\n";
    for (const StudyRow& row : rows)
        text += fmt::format("\"{}\",{},{},{},{},{},{},{},{},{},{}\n", row.label, row.devices, row.strategy, row.stepSeconds, row.samplesPerSecond, row.tokensPerSecond, row.mfu,
                            row.exposedSeconds, row.peakBytes, nameOf(row.verdict), row.usdPerHour ? fmt::format("{}", *row.usdPerHour) : "");
    return text;
}

}  // namespace ringside::gui
