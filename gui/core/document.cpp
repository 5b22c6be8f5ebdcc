#include "gui/core/document.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>

#include "model/base/check.h"
#include "traces/analysis/collectives.h"
#include "traces/analysis/gradient_flows.h"

namespace ringside::gui {

namespace {

/// What follows from its collectives: arrows from rank to rank, from gradients to them and on to the optimizer, the load on each rank's link, and its bytes in flight.
void addCollectives(Trace& trace) {
    if (trace.collectives.empty()) return;
    const std::vector<MatchedCollective> matched = matchCollectives(trace);
    if (std::none_of(trace.flows.begin(), trace.flows.end(), [](const Flow& flow) { return flow.kind == Flow::Kind::Collective; })) {
        const std::vector<Flow> flows = collectiveFlows(matched);
        trace.flows.insert(trace.flows.end(), flows.begin(), flows.end());
    }
    const auto add = [&](std::vector<CounterSeries> counters) {
        if (counters.empty() || std::any_of(trace.counters.begin(), trace.counters.end(), [&](const CounterSeries& there) { return there.name == counters.front().name; })) return;
        std::move(counters.begin(), counters.end(), std::back_inserter(trace.counters));
    };
    add(linkLoad(trace, matched));
    add(bytesInFlight(trace, matched));
    const std::vector<Flow> gradients = gradientFlows(trace);
    trace.flows.insert(trace.flows.end(), gradients.begin(), gradients.end());
}

}  // namespace

DocumentPtr makeDocument(Document parts) {
    Time first, last;
    for (std::size_t i = 0; i < parts.trace.size(); ++i) {
        first = i == 0 ? parts.trace.start[i] : std::min(first, parts.trace.start[i]);
        last = std::max(last, parts.trace.start[i] + parts.trace.duration[i]);
    }
    parts.range = {std::min(first, last), last};
    addCollectives(parts.trace);
    parts.index = SliceIndex(parts.trace);
    parts.flows = FlowIndex(parts.trace);
    parts.counters.clear();
    for (const CounterSeries& counter : parts.trace.counters) parts.counters.emplace_back(counter);
    parts.phases = stepsAndPhases(parts.trace);
    if (parts.title.empty()) parts.title = parts.path.empty() ? parts.trace.title : std::filesystem::path(parts.path).filename().string();
    return std::make_shared<const Document>(std::move(parts));
}

Result<DocumentPtr> predictDocument(std::shared_ptr<const Scenario> scenario, std::string path, Json asGiven) {
    PredictOptions options;
    options.memoryTimeline = true;
    options.sensitivity = false;
    TRY(Prediction prediction, predict(*scenario, options));
    Document parts;
    parts.trace = traceOf(prediction);
    parts.title = parts.trace.title;
    parts.path = std::move(path);
    parts.capacity = prediction.capacityBytes;
    for (const std::string& warning : scenario->warnings) parts.notes.add(warning, parts.path);
    for (const std::string& warning : prediction.warnings) parts.notes.add(warning, parts.path);
    parts.scenarioAsGiven = asGiven.is_null() ? toJson(*scenario) : std::move(asGiven);
    parts.scenario = std::move(scenario);
    parts.prediction = std::make_shared<const Prediction>(std::move(prediction));
    return makeDocument(std::move(parts));
}

namespace {

/// The first 64 KiB of a file's content; empty where it cannot be read.
std::string headOf(const std::string& path) {
    Result<ByteSource> source = ByteSource::open(path);
    if (!source) return {};
    std::string head(64 * 1024, '\0');
    head.resize(source->read(head.data(), head.size()));
    return head;
}

/// A scenario is small and says what it is; anything else is for the reader of traces.
bool looksLikeScenario(const std::string& path) {
    const std::string head = headOf(path);
    const std::size_t brace = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (brace == std::string::npos || head[brace] != '{' || head.find("\"traceEvents\"") != std::string::npos) return false;
    return head.find("\"ringside-scenario\"") != std::string::npos || head.find("\"model\"") != std::string::npos;
}

Result<DocumentPtr> openTraces(const std::vector<std::string>& paths, const OpenProgress& progress, std::stop_token stop) {
    std::atomic<bool> cancel = false;
    const std::stop_callback onStop(stop, [&] { cancel = true; });
    ReadTraceOptions options;
    options.progress = [&](double share) {
        if (progress) progress(0.9 * share);
    };
    options.cancel = &cancel;
    TRY(ImportedTrace imported, readTrace(paths, options));
    Document parts;
    parts.trace = std::move(imported.trace);
    // Where each slice stands in its file is asked for by the args alone.
    imported.trace = Trace();
    imported.trace.origin = std::move(parts.trace.origin);
    parts.trace.origin.clear();
    parts.notes = std::move(imported.notes);
    parts.path = paths.front();
    if (paths.size() > 1) parts.title = std::filesystem::path(paths.front()).filename().string() + " and " + std::to_string(paths.size() - 1) + " more";
    for (const TraceDevice& device : imported.metadata.devices) parts.capacity = std::max(parts.capacity, device.memory);
    parts.imported = std::make_shared<const ImportedTrace>(std::move(imported));
    return makeDocument(std::move(parts));
}

}  // namespace

Result<DocumentPtr> openDocument(const std::vector<std::string>& paths, const Catalogs& catalogs, const OpenProgress& progress, std::stop_token stop) {
    CHECK(!paths.empty());
    const std::string& path = paths.front();
    if (paths.size() > 1 || !looksLikeScenario(path)) return openTraces(paths, progress, stop);
    TRY(Json document, readJsonFile(path));
    // A result holds the scenario that it answers: that is opened.
    if (document.is_object() && document.value("format", "") == "ringside-result" && document.contains("scenario")) document = Json(document["scenario"]);
    TRY(Scenario scenario, resolveScenario(document, path, catalogs));
    if (progress) progress(0.2);
    if (stop.stop_requested()) return failure(ErrorCode::RuntimeFailure, path, "was cancelled");
    return predictDocument(std::make_shared<const Scenario>(std::move(scenario)), path, document);
}

std::vector<std::vector<std::string>> asDocuments(const std::vector<std::string>& paths) {
    // Kineto writes {"backend": "nccl", "rank": 3, "world_size": 8, …}, before the events.
    static const std::regex info(R"("distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d+)\s*,\s*"world_size"\s*:\s*(\d+))");
    std::set<std::string> ranks, worlds;
    for (const std::string& path : paths) {
        const std::string head = headOf(path);
        std::smatch said;
        if (paths.size() == 1 || !std::regex_search(head, said, info)) break;
        ranks.insert(said[1]);
        worlds.insert(said[2]);
    }
    if (ranks.size() == paths.size() && worlds.size() == 1) return {paths};
    std::vector<std::vector<std::string>> each;
    for (const std::string& path : paths) each.push_back({path});
    return each;
}

}  // namespace ringside::gui
