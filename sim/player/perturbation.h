// Perturbation: what makes ranks differ that would otherwise be alike: slow devices and links, jitter of every kernel, and rare
// long pauses. Every draw is a pure function of (seed, sample, rank, task), so results do not depend on the order of events,
// on the number of threads or on the machine. Definitions: docs/models/stragglers.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "model/base/random.h"
#include "model/base/units.h"

namespace ringside {

/// A rank whose device, or whose link to the others, is slower than its kind promises.
struct Straggler {
    std::int64_t rank = 0;
    double compute = 1;  ///< kernels take this many times as long
    double link = 1;     ///< transfers of collectives that it takes part in, likewise

    bool operator==(const Straggler&) const = default;
};

struct Perturbation {
    double jitter = 0;            ///< standard deviation of a kernel's time, relative to it
    double pauseProbability = 0;  ///< that a rank pauses once in a step
    double pauseMs = 10;          ///< the shortest pause
    double pauseTail = 1.5;       ///< Pareto exponent of its length: P(length > x) = (pauseMs / x)^pauseTail
    std::uint64_t seed = 1;
    std::int64_t samples = 1;     ///< steps to draw
    std::vector<Straggler> stragglers;

    bool isRandom() const { return jitter > 0 || pauseProbability > 0; }
    bool operator==(const Perturbation&) const = default;
};

/// The draws of one rank in one sampled step.
class RankDraws {
public:
    RankDraws() = default;
    RankDraws(const Perturbation& perturbation, std::uint64_t sample, std::int64_t rank, std::uint32_t tasks)
        : random_(perturbation.seed ^ (sample << 32), static_cast<std::uint64_t>(rank)), jitter_(perturbation.jitter) {
        // Kernels take the counters from 0 up; these are beyond any of them.
        constexpr std::uint64_t kWhether = std::uint64_t{1} << 40, kWhere = kWhether + 1, kHowLong = kWhether + 2;
        if (tasks > 0 && random_.uniform(kWhether) <= perturbation.pauseProbability) {
            pausedTask_ = std::min(tasks - 1, static_cast<std::uint32_t>(random_.uniform(kWhere) * tasks));
            const double ms = perturbation.pauseMs * std::pow(random_.uniform(kHowLong), -1 / perturbation.pauseTail);
            pause_ = Time::fromMicroseconds(std::min(ms, 3.6e6) * 1e3);
        }
    }

    /// Multiplies the time of kernel `task`: 1 + jitter · z, never below a fifth. z is the sum of four uniform numbers,
    /// centred and scaled to variance 1: near enough to normal, and the same bits everywhere.
    double factor(std::uint32_t task) const {
        if (jitter_ == 0) return 1;
        const std::uint64_t bits = random_.bits(task);
        const auto part = [&](int i) { return static_cast<double>((bits >> (16 * i)) & 0xffff); };
        const double z = (part(0) + part(1) + part(2) + part(3) - 2 * 65535.0) * (1.7320508075688772 / 65535.0);
        return std::max(0.2, 1 + jitter_ * z);
    }
    /// Added to the time of `task` (of the first kernel from it on).
    std::uint32_t pausedTask() const { return pausedTask_; }
    Time pause() const { return pause_; }
    void pauseTaken() { pausedTask_ = 0xffffffffU; }

private:
    CounterRandom random_{0};
    double jitter_ = 0;
    std::uint32_t pausedTask_ = 0xffffffffU;
    Time pause_;
};

}  // namespace ringside
