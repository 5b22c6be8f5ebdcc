// Goodput: the share of wall-clock time that trains, when devices fail and checkpoints cost time (docs/models/goodput.md).
//
// Closed forms; failure_simulation.h finds the same by playing failures out.
#pragma once

#include <optional>

#include "model/base/result.h"
#include "model/base/units.h"
#include "model/hardware/cluster.h"

namespace ringside {

/// Meta, "The Llama 3 Herd of Models" (2024), §3.3.4: 419 unexpected interruptions in 54 days on 16,384 H100.
/// 16,384 · 54 · 24 h / 419 ≈ 50,677 device-hours between two failures, whatever in the node or network fails.
constexpr double kLlama3DeviceMtbfHours = 16384.0 * 54 * 24 / 419;

struct FailureModel {
    double deviceMtbfHours = kLlama3DeviceMtbfHours;  ///< per device; a job of n devices fails n times as often
    double restartSeconds = 600;                      ///< from a failure until training goes on: detect, replace, load (assumed)
};

/// How a checkpoint is taken.
struct CheckpointModel {
    std::optional<double> seconds;  ///< of a whole checkpoint; wins over the rate
    std::optional<double> gbPerS;   ///< storage rate of the job; empty: kStorageGbPerSPerNode for each node
    bool async = false;             ///< training waits only for the copy to host memory; the write goes on beside it
};
/// Assumed, from the same report: 2 TB/s sustained for up to 2,048 nodes.
constexpr double kStorageGbPerSPerNode = 1.0;

struct CheckpointCost {
    double blockingSeconds = 0;  ///< training stands still
    double writeSeconds = 0;     ///< after that, until the checkpoint can be restored from; 0 where writing blocks
};
/// `stateBytes`: parameters and optimizer state, written once. Asynchronous checkpoints need the device's PCIe rate: each
/// device copies its share to the host.
Result<CheckpointCost> checkpointCost(Bytes stateBytes, const Cluster& cluster, const CheckpointModel& model);

/// Young's first-order optimum: √(2·C·M) of work between checkpoints, seconds. REQUIRES: both > 0.
double youngInterval(double checkpointSeconds, double mtbfSeconds);
/// Daly's higher-order optimum; M where C ≥ 2·M. REQUIRES: both > 0.
double dalyInterval(double checkpointSeconds, double mtbfSeconds);

/// Useful share with checkpoints after every `interval` seconds of work: Daly's complete model
/// τ / (M · e^((R+W)/M) · (e^((τ+C)/M) − 1)). A failure may strike at any time, also in a checkpoint or a restart. With an
/// asynchronous write (W > 0) a failure loses on average W more; first order in W/M. REQUIRES: interval > 0, mtbf > 0.
double goodputAt(double interval, const CheckpointCost& cost, double restartSeconds, double mtbfSeconds);

struct Goodput {
    double mtbfSeconds = 0;      ///< of the whole job
    CheckpointCost checkpoint;
    double restartSeconds = 0;
    double youngSeconds = 0;     ///< optimum interval, first order
    double intervalSeconds = 0;  ///< the one chosen: Daly's, and at least the time an asynchronous write takes
    double goodput = 1;
};
/// At the best interval for this job. Checkpoints that cost nothing leave only restarts.
Goodput bestGoodput(std::int64_t devices, const CheckpointCost& cost, const FailureModel& failures);

}  // namespace ringside
