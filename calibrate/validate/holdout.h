// Held-out points: what a fit says about measurements that it was not given.
//
// A calibration's samples are fitted again without every fifth of them (of those that lie between others); the rest predicts those left out. This tells what the
// tables are worth between their points, apart from everything that a whole step adds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/fit/assemble_profile.h"
#include "calibrate/measure/sample_file.h"
#include "model/base/result.h"
#include "model/cost/profile.h"

namespace ringside {

struct HeldOutPoint {
    std::string group;  ///< "matrix products", "convolutions", "attention", "memory", or a collective's operation
    std::string name;
    double predicted = 0, measured = 0;
};

struct HoldoutGroup {
    std::string name;
    std::size_t points = 0;
    double mape = 0, median = 0, p90 = 0, worst = 0;  ///< of |error|
    double total = 0;                                 ///< error of the sum of all: what a step with all of them would be off by
};

struct Holdout {
    std::vector<HoldoutGroup> groups;  ///< by name; the first is "all kernels", if there are any
    std::size_t fitted = 0;            ///< series that were fitted instead
};

/// Every fifth series of each kernel that has three or more (of one with fewer nothing would be left to fit), likewise the inner
/// sizes of each collective. Figures that the tables do not give come from `profile`.
Result<std::vector<HeldOutPoint>> heldOutPoints(const Profile& profile, std::span<const KernelTimings> kernels, std::span<const CollectiveTimings> collectives, std::size_t& fitted);

/// Pure: the figures of some points, by group.
std::vector<HoldoutGroup> holdoutGroups(std::span<const HeldOutPoint> points);

/// Of the series in a calibration's sample file that were measured where the profile was. Fails (bad input) where there are none.
Result<Holdout> holdoutOf(const SampleFile& samples, const Profile& profile);

}  // namespace ringside
