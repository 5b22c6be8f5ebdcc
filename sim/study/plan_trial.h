// PlanTrial: one configuration of a plan, tried: does it fit, how fast is it, what does it cost.
#pragma once

#include <cstdint>
#include <string>

#include "sim/study/plan.h"

namespace ringside {

/// What is tried on a given number of devices with a given strategy.
struct TrialSetting {
    std::int64_t microBatch = 1;
    Recompute recompute = Recompute::None;
    Json knobs = Json::object();
};

struct Trial {
    enum class Outcome : std::uint8_t { Fits, OutOfMemory, Refused };
    Outcome outcome = Outcome::Refused;
    Candidate candidate;     ///< Fits
    std::string reason;      ///< otherwise
    Bytes lackingBytes = 0;  ///< OutOfMemory
};

/// The scenario document of a setting. Global batch and micro-batch are in it; accumulation follows from them.
Result<Json> trialDocument(const PlanQuery& query, const HardwareOption& option, std::int64_t devices, const std::string& strategy,
                           const TrialSetting& setting, std::int64_t globalBatch);

/// Predicts it. `samples`: to train in all, if known.
Trial tryOut(const PlanQuery& query, const Catalogs& catalogs, const HardwareOption& option, std::int64_t devices, const std::string& strategy,
             const TrialSetting& setting, std::int64_t globalBatch, std::optional<double> samples);

/// Parameters and optimizer state of the whole model, once: what a checkpoint holds.
Bytes checkpointBytes(const Workload& whole, const TrainingConfig& training);

}  // namespace ringside
