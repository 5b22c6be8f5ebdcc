#include "calibrate/measure/sampler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "calibrate/fit/robust.h"

namespace ringside {
namespace {

constexpr double kPatience = 10;  ///< how much longer than maxSeconds a loaded machine may take for the least number of samples
constexpr int kMostCalls = 10000;

struct Raw {
    double seconds, cpuSeconds, waitShare;
};

/// schedstat kept open: a read at offset 0 gives fresh figures, and opening costs more than reading.
class SchedstatFile {
public:
    SchedstatFile() : fd_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
    ~SchedstatFile() {
        if (fd_ >= 0) close(fd_);
    }
    SchedstatFile(const SchedstatFile&) = delete;
    SchedstatFile& operator=(const SchedstatFile&) = delete;

    std::int64_t waitedNs() const {
        char text[128];
        const ssize_t n = fd_ < 0 ? -1 : pread(fd_, text, sizeof text, 0);
        if (n <= 0) return 0;
        return parseSchedstat({text, static_cast<std::size_t>(n)}).value_or(0);
    }

private:
    int fd_;
};

void keep(SampleSeries& series, const std::vector<Raw>& raw, bool withCpu) {
    series.seconds.clear();
    series.cpuSeconds.clear();
    for (const Raw& r : raw) {
        series.seconds.push_back(r.seconds);
        if (withCpu) series.cpuSeconds.push_back(r.cpuSeconds);
    }
}

/// Windows of neighbours that are all slower than the fastest window: the clock went down, or a neighbour of the machine came up.
int dropThrottled(std::vector<Raw>& raw, const SamplerOptions& options) {
    const auto window = static_cast<std::size_t>(std::max(1, options.throttleWindow));
    if (raw.size() < 3 * window) return 0;
    std::vector<double> medians;
    for (std::size_t i = 0; i + window <= raw.size(); i += window) {
        std::vector<double> times;
        for (std::size_t k = i; k < i + window; ++k) times.push_back(raw[k].seconds);
        medians.push_back(median(std::move(times)));
    }
    const double fastest = *std::min_element(medians.begin(), medians.end());
    std::vector<Raw> kept;
    for (std::size_t i = 0; i < raw.size(); ++i)
        if (medians[std::min(i / window, medians.size() - 1)] <= options.throttleFactor * fastest) kept.push_back(raw[i]);
    // Where most of it was slow there was no throttling: that is how fast it is, and the fast window was luck.
    if (kept.size() < raw.size() / 2) return 0;
    const auto dropped = static_cast<int>(raw.size() - kept.size());
    raw = std::move(kept);
    return dropped;
}

int dropOutliers(std::vector<Raw>& raw, const SamplerOptions& options) {
    if (raw.size() < 5) return 0;
    std::vector<double> times;
    for (const Raw& r : raw) times.push_back(r.seconds);
    const double middle = median(times);
    // A floor, as timings may agree to the nanosecond.
    const double limit = options.outlierDeviations * std::max(scaledMad(times), 0.002 * middle);
    const auto before = raw.size();
    std::erase_if(raw, [&](const Raw& r) { return std::abs(r.seconds - middle) > limit; });
    return static_cast<int>(before - raw.size());
}

}  // namespace

Result<std::int64_t> parseSchedstat(const std::string& text) {
    long long ran = 0, waited = 0, slices = 0;
    if (std::sscanf(text.c_str(), "%lld %lld %lld", &ran, &waited, &slices) != 3 || ran < 0 || waited < 0)
        return badInput("schedstat", fmt::format("expected three numbers, found '{}'", text.substr(0, 60)));
    return waited;
}

SampleClock systemClock() {
    const auto file = std::make_shared<SchedstatFile>();
    SampleClock clock;
    clock.nowNs = [] { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
    clock.waitedNs = [file] { return file->waitedNs(); };
    clock.cpuNs = [] {
        timespec time{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
    };
    return clock;
}

Result<SampleSeries> sample(const std::function<Result<void>()>& work, StoppingCriterion& criterion, const SamplerOptions& options, const SampleClock& clock) {
    const auto secondsSince = [&](std::int64_t ns) { return static_cast<double>(clock.nowNs() - ns) * 1e-9; };
    const std::int64_t warmUpBegin = clock.nowNs();
    double fastest = 0;
    for (int i = 0; i < std::max(1, options.warmUp) || secondsSince(warmUpBegin) < options.warmUpSeconds; ++i) {
        const std::int64_t begin = clock.nowNs();
        TRY_VOID(work());
        const double seconds = secondsSince(begin);
        fastest = i == 0 ? seconds : std::min(fastest, seconds);
    }
    SampleSeries series;
    if (fastest < options.minSampleSeconds)
        series.callsPerSample = std::clamp(static_cast<int>(std::ceil(options.minSampleSeconds / std::max(fastest, 1e-9))), 1, kMostCalls);

    criterion.reset();
    std::vector<Raw> clean, dirty;
    const std::int64_t begin = clock.nowNs();
    while (static_cast<int>(clean.size()) < options.maxSamples) {
        const double elapsed = secondsSince(begin);
        const bool enough = static_cast<int>(clean.size()) >= options.minSamples;
        if (enough && criterion.isDone()) {
            series.converged = true;
            break;
        }
        if (elapsed >= options.maxSeconds && (enough || elapsed >= kPatience * options.maxSeconds)) break;
        const std::int64_t waitedBefore = clock.waitedNs(), cpuBefore = clock.cpuNs ? clock.cpuNs() : 0, start = clock.nowNs();
        for (int call = 0; call < series.callsPerSample; ++call) TRY_VOID(work());
        const std::int64_t end = clock.nowNs();
        const std::int64_t cpu = (clock.cpuNs ? clock.cpuNs() : 0) - cpuBefore, waited = clock.waitedNs() - waitedBefore;
        const double duration = static_cast<double>(std::max<std::int64_t>(1, end - start));
        const Raw raw{duration * 1e-9 / series.callsPerSample, static_cast<double>(cpu) * 1e-9 / series.callsPerSample, static_cast<double>(waited) / duration};
        if (raw.waitShare > options.maxWaitShare) {
            dirty.push_back(raw);
            continue;
        }
        clean.push_back(raw);
        criterion.add(raw.seconds);
    }
    series.waited = static_cast<int>(dirty.size());
    const auto least = static_cast<std::size_t>(std::max(1, options.minSamples));
    if (clean.size() < least && !dirty.empty()) {
        // A machine that is never quiet: what waited least is the best there is, and the series says so.
        series.contaminated = true;
        std::stable_sort(dirty.begin(), dirty.end(), [](const Raw& a, const Raw& b) { return a.waitShare < b.waitShare; });
        const std::size_t missing = std::min(dirty.size(), least - clean.size());
        clean.insert(clean.end(), dirty.begin(), dirty.begin() + static_cast<std::ptrdiff_t>(missing));
        series.waited -= static_cast<int>(missing);
    }
    series.throttled = dropThrottled(clean, options);
    series.outliers = dropOutliers(clean, options);
    keep(series, clean, static_cast<bool>(clock.cpuNs));
    if (series.seconds.empty()) return failure(ErrorCode::RuntimeFailure, "sampler", "no sample could be taken within the time given; allow more seconds");
    series.noise = scaledMad(series.seconds) / median(series.seconds);
    return series;
}

}  // namespace ringside
