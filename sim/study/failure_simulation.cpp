#include "sim/study/failure_simulation.h"

#include <cmath>

#include "model/base/check.h"
#include "model/base/random.h"

namespace ringside {
namespace {

/// Seconds of work that reach a finished checkpoint in one life: `life` seconds from the moment training starts until a
/// failure. Segments repeat without change until then, so only the last ones need a look: whole segments are counted at once,
/// which also keeps the arithmetic exact when a life has more of them than a double can tell apart.
double savedIn(double life, double interval, const CheckpointCost& cost) {
    if (life <= 0) return 0;  // struck during the restart
    const double segment = interval + cost.blockingSeconds;
    const double broken = std::fmod(life, segment);
    const double whole = std::round((life - broken) / segment);
    // The last checkpoint counts only if its write had ended; the one before it had, as the interval is at least the write.
    const bool lastIsLost = whole > 0 && broken < cost.writeSeconds;
    return interval * (lastIsLost ? whole - 1 : whole);
}

}  // namespace

FailureRun simulateFailures(double interval, const CheckpointCost& cost, double restartSeconds, double mtbfSeconds, std::int64_t failures,
                            std::uint64_t seed) {
    CHECK(interval > 0 && interval >= cost.writeSeconds && failures >= 1);
    const CounterRandom random(seed);
    double seconds = 0, saved = 0;
    for (std::int64_t i = 0; i < failures; ++i) {
        const double untilFailure = random.exponential(static_cast<std::uint64_t>(i), mtbfSeconds);
        seconds += untilFailure;
        saved += savedIn(untilFailure - (i > 0 ? restartSeconds : 0), interval, cost);
    }
    return {saved / seconds, seconds, failures};
}

std::vector<GoodputPoint> checkGoodput(const Goodput& best, std::int64_t failures, std::uint64_t seed) {
    std::vector<GoodputPoint> points;
    for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
        const double interval = factor * best.intervalSeconds;
        if (interval < best.checkpoint.writeSeconds) continue;
        points.push_back({interval, goodputAt(interval, best.checkpoint, best.restartSeconds, best.mtbfSeconds),
                          simulateFailures(interval, best.checkpoint, best.restartSeconds, best.mtbfSeconds, failures, seed).goodput});
    }
    return points;
}

}  // namespace ringside
