#include "gui/core/marker_file.h"

#include <filesystem>
#include <limits>

#include "model/base/json_cursor.h"
#include "traces/export/atomic_file.h"

namespace ringside::gui {

std::string markerFileOf(const std::string& tracePath) { return tracePath + ".markers.json"; }

Result<std::vector<TimeMarker>> readMarkers(const std::string& tracePath) {
    const std::string path = markerFileOf(tracePath);
    std::vector<TimeMarker> markers;
    if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return markers;
    TRY(const Json json, readJsonFile(path));
    const JsonCursor file(json, path);
    TRY_VOID(file.keys({"format", "version", "markers"}));
    TRY(const std::string format, file.stringOr("format", ""));
    if (format != "ringside-markers") return file.error("expected the markers of a trace (\"format\": \"ringside-markers\"); move the file away to set markers");
    TRY(const JsonCursor list, file.at("markers"));
    TRY(const std::vector<JsonCursor> items, list.items());
    for (const JsonCursor& item : items) {
        TRY_VOID(item.keys({"at_ps", "label"}));
        TRY(const JsonCursor at, item.at("at_ps"));
        constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;
        TRY(const std::int64_t picoseconds, at.asInt(-kFar, kFar));
        TRY(const std::string label, item.stringOr("label", ""));
        markers.push_back({Time::fromPicoseconds(picoseconds), QString::fromStdString(label)});
    }
    return markers;
}

Result<void> writeMarkers(const std::string& tracePath, const std::vector<TimeMarker>& markers) {
    const std::string path = markerFileOf(tracePath);
    if (markers.empty()) {
        std::error_code error;
        std::filesystem::remove(path, error);
        if (error) return failure(ErrorCode::RuntimeFailure, path, "cannot be removed: " + error.message());
        return {};
    }
    Json list = Json::array();
    for (const TimeMarker& marker : markers) list.push_back({{"at_ps", marker.at.picoseconds()}, {"label", marker.label.toStdString()}});
    return atomicWriteFile(path, Json{{"format", "ringside-markers"}, {"version", 1}, {"markers", std::move(list)}}.dump(2) + "\n");
}

}  // namespace ringside::gui
