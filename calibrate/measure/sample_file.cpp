#include "calibrate/measure/sample_file.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace ringside {
namespace {

constexpr int kVersion = 1;

Result<std::vector<double>> timesFromJson(const JsonCursor& cursor, double least) {
    TRY(const std::vector<JsonCursor> items, cursor.items());
    std::vector<double> times;
    for (const JsonCursor& item : items) {
        TRY(const double seconds, item.asNumber(least, 1e6));
        times.push_back(seconds);
    }
    return times;
}

Result<StoredSeries> seriesFromJson(const JsonCursor& cursor) {
    TRY_VOID(cursor.keys({"version", "key", "settings", "fingerprint", "seconds", "cpu_seconds", "waited", "outliers", "throttled", "contaminated", "converged"}));
    TRY(const JsonCursor version, cursor.at("version"));
    TRY_VOID(version.asInt(kVersion, kVersion));
    StoredSeries series;
    TRY(const JsonCursor key, cursor.at("key"));
    TRY(series.key, key.asString());
    if (const auto settings = cursor.find("settings")) series.settings = settings->value();
    TRY(series.fingerprint, cursor.stringOr("fingerprint", ""));
    TRY(const JsonCursor seconds, cursor.at("seconds"));
    TRY(series.seconds, timesFromJson(seconds, 1e-12));
    if (series.seconds.empty()) return seconds.error("has no times");
    if (const auto cpu = cursor.find("cpu_seconds")) {
        TRY(series.cpuSeconds, timesFromJson(*cpu, 0));
    }
    constexpr std::int64_t kMost = 1 << 30;
    TRY(const std::int64_t waited, cursor.intOr("waited", 0, 0, kMost));
    TRY(const std::int64_t outliers, cursor.intOr("outliers", 0, 0, kMost));
    TRY(const std::int64_t throttled, cursor.intOr("throttled", 0, 0, kMost));
    series.waited = static_cast<int>(waited);
    series.outliers = static_cast<int>(outliers);
    series.throttled = static_cast<int>(throttled);
    TRY(series.contaminated, cursor.boolOr("contaminated", false));
    TRY(series.converged, cursor.boolOr("converged", false));
    return series;
}

Json toJson(const StoredSeries& series) {
    Json json{{"version", kVersion}, {"key", series.key}, {"settings", series.settings}, {"fingerprint", series.fingerprint}, {"seconds", series.seconds}};
    if (!series.cpuSeconds.empty()) json["cpu_seconds"] = series.cpuSeconds;
    json["waited"] = series.waited;
    json["outliers"] = series.outliers;
    json["throttled"] = series.throttled;
    json["contaminated"] = series.contaminated;
    json["converged"] = series.converged;
    return json;
}

tl::unexpected<Error> systemError(const std::string& path, const char* doing) {
    return failure(ErrorCode::RuntimeFailure, path, fmt::format("could not {}: {}", doing, std::strerror(errno)));
}

/// Closes when it goes out of scope.
struct Descriptor {
    int fd = -1;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

}  // namespace

Result<SampleFile> SampleFile::open(const std::string& path) {
    SampleFile file;
    file.path_ = path;
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return badInput(path, "is not a regular file; samples are kept in one");
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        if (errno == ENOENT) return file;
        return systemError(path, "read the samples");
    }
    std::stringstream buffer;
    buffer << in.rdbuf();
    const std::string text = buffer.str();
    std::size_t begin = 0;
    for (int line = 1; begin < text.size(); ++line) {
        const std::size_t end = text.find('\n', begin);
        const bool last = end == std::string::npos || end + 1 == text.size();
        const std::string_view content = std::string_view(text).substr(begin, end == std::string::npos ? end : end - begin);
        const std::string source = fmt::format("{}:{}", path, line);
        const Result<Json> json = parseJson(content, source);
        if (end == std::string::npos || (last && !json)) {
            file.torn_ = true;
            file.notes_.push_back(fmt::format("{}: the last line is incomplete and was dropped; that series is measured again", source));
            break;
        }
        if (!json) return tl::unexpected<Error>(json.error());
        TRY(StoredSeries series, seriesFromJson(JsonCursor(*json, source)));
        file.series_.push_back(std::move(series));
        begin = end + 1;
        file.goodBytes_ = static_cast<std::int64_t>(begin);
    }
    return file;
}

const StoredSeries* SampleFile::find(const std::string& key, const Json& settings, const std::string& fingerprint) const {
    for (auto it = series_.rbegin(); it != series_.rend(); ++it)
        if (it->key == key && it->fingerprint == fingerprint && it->settings == settings) return &*it;
    return nullptr;
}

Result<void> SampleFile::append(StoredSeries series) {
    for (const double seconds : series.seconds)
        if (!(seconds > 0) || !std::isfinite(seconds)) return badInput(path_, fmt::format("series '{}' has a time of {} s; expected a finite one above 0", series.key, seconds));
    Descriptor file{::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
    if (file.fd < 0) return systemError(path_, "open the samples for writing");
    if (torn_ && ::ftruncate(file.fd, goodBytes_) != 0) return systemError(path_, "cut off the incomplete line");
    torn_ = false;
    if (::lseek(file.fd, 0, SEEK_END) < 0) return systemError(path_, "find the end of the samples");
    const std::string line = toJson(series).dump() + "\n";
    for (std::size_t written = 0; written < line.size();) {
        const ssize_t n = ::write(file.fd, line.data() + written, line.size() - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            torn_ = true;
            return systemError(path_, "write the samples");
        }
        written += static_cast<std::size_t>(n);
    }
    if (::fsync(file.fd) != 0 && errno != EINVAL && errno != EROFS) {
        torn_ = true;
        return systemError(path_, "bring the samples to the disk");
    }
    goodBytes_ += static_cast<std::int64_t>(line.size());
    series_.push_back(std::move(series));
    return {};
}

}  // namespace ringside
