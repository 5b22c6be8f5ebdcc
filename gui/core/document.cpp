#include "gui/core/document.h"

#include <algorithm>
#include <filesystem>

namespace ringside::gui {

DocumentPtr makeDocument(Document parts) {
    Time first, last;
    for (std::size_t i = 0; i < parts.trace.size(); ++i) {
        first = i == 0 ? parts.trace.start[i] : std::min(first, parts.trace.start[i]);
        last = std::max(last, parts.trace.start[i] + parts.trace.duration[i]);
    }
    parts.range = {std::min(first, last), last};
    if (parts.title.empty()) parts.title = parts.path.empty() ? parts.trace.title : std::filesystem::path(parts.path).filename().string();
    return std::make_shared<const Document>(std::move(parts));
}

Result<DocumentPtr> predictDocument(std::shared_ptr<const Scenario> scenario, std::string path) {
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
    parts.scenario = std::move(scenario);
    parts.prediction = std::make_shared<const Prediction>(std::move(prediction));
    return makeDocument(std::move(parts));
}

Result<DocumentPtr> openDocument(const std::string& path, const Catalogs& catalogs, const OpenProgress& progress, std::stop_token stop) {
    TRY(const Json document, readJsonFile(path));
    if (progress) progress(0.1);
    TRY(Scenario scenario, resolveScenario(document, path, catalogs));
    if (stop.stop_requested()) return failure(ErrorCode::RuntimeFailure, path, "cancelled");
    return predictDocument(std::make_shared<const Scenario>(std::move(scenario)), path);
}

}  // namespace ringside::gui
