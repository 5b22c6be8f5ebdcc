// SampleFile: raw samples beside a profile, so that a fit can be checked and an interrupted calibration goes on.
//
// JSON lines, one finished series each, only ever appended. Format: docs/formats/samples.md.
#pragma once

#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"

namespace ringside {

/// One finished series. `key` names what was measured, `settings` how; both together with the environment's fingerprint
/// (model/cost/environment.h) say whether it can be used again.
struct StoredSeries {
    std::string key;
    Json settings = Json::object();
    std::string fingerprint;
    std::vector<double> seconds, cpuSeconds;
    int waited = 0, outliers = 0, throttled = 0;
    bool contaminated = false, converged = false;

    bool operator==(const StoredSeries&) const = default;
};

class SampleFile {
public:
    /// Reads what is there; a file that does not exist is empty. A torn last line (the process died while writing) is dropped, with
    /// a note. Fails (bad input, naming file and line) on any other line that is not a series, or holds a time that is not finite
    /// or not above 0.
    static Result<SampleFile> open(const std::string& path);

    const std::string& path() const { return path_; }
    const std::vector<StoredSeries>& series() const { return series_; }
    const std::vector<std::string>& notes() const { return notes_; }  ///< what was dropped while reading
    /// The latest such series, or nullptr.
    const StoredSeries* find(const std::string& key, const Json& settings, const std::string& fingerprint) const;

    /// Writes one line and brings it to the disk. Fails (runtime failure) with the system's reason; the file then holds what it held,
    /// or a torn line that the next open drops.
    Result<void> append(StoredSeries series);

private:
    std::string path_;
    std::vector<StoredSeries> series_;
    std::vector<std::string> notes_;
    bool torn_ = false;
    std::int64_t goodBytes_ = 0;
};

}  // namespace ringside
