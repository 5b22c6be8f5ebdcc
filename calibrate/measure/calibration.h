// Calibration: measures this machine (or the ranks of a launcher) and makes a Profile of it, raw samples beside it.
//
// Kernels are timed where they stand in training steps, all ranks at once; collectives alone and beside compute. What was measured
// is appended to the sample file at once, so an interrupted calibration goes on where it stopped. docs/guides/calibrate.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/execute/run_ranks.h"
#include "calibrate/measure/calibration_models.h"
#include "calibrate/measure/sample_file.h"
#include "model/base/result.h"
#include "model/cost/profile.h"

namespace ringside {

struct CalibrationOptions {
    CalibrationEffort effort = CalibrationEffort::Normal;
    RunRanksOptions ranks;
    std::string link = "loopback";  ///< between the ranks: as linkNameOf gives it
    std::string samplesPath;
    std::string version;            ///< of the program, for the record
    bool fresh = false;             ///< measure again what the sample file has
    const Profile* base = nullptr;  ///< tables to keep where nothing new is measured (another link's collectives)
    bool collectivesOnly = false;   ///< keep the base's kernels
};

/// Done so far, of how many seconds in all (estimated), and what comes next.
using CalibrationProgress = std::function<void(double doneShare, const std::string& what)>;

struct Calibration {
    Profile profile;
    int measured = 0, reused = 0;           ///< series
    std::vector<std::string> notes;         ///< slow ranks, noisy series, dropped lines
    double noise = 0;                       ///< median relative spread of what was measured
};

/// Where a calibration here would be made.
Environment calibrationEnvironment(int threadsPerRank, const std::string& link, const std::string& version);

/// Nothing (an empty profile) in a process that is not rank 0.
Result<Calibration> calibrateMachine(const CalibrationOptions& options, const CalibrationProgress& progress);

}  // namespace ringside
