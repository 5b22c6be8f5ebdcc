// Plan: which hardware, how many devices, which strategy and settings train a model fastest, and which cheapest.
//
// The search is described in docs/guides/plan-a-cluster.md; its formulas in docs/models/money.md, docs/models/energy.md and
// docs/models/goodput.md.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/catalog/price_catalog.h"
#include "sim/prediction.h"
#include "sim/study/energy.h"
#include "sim/study/failure_simulation.h"
#include "sim/study/goodput.h"
#include "sim/study/plan_space.h"

namespace ringside {

struct PlanQuery {
    Json base = Json::object();              ///< scenario document: model and training; what it fixes is not searched
    std::string source = "command line";     ///< names `base` in errors
    std::vector<HardwareOption> hardware;
    std::vector<std::string> strategies;     ///< empty: all that train the same thing
    std::optional<std::int64_t> globalBatch; ///< empty: that of `base`, else defaultGlobalBatch
    // How much to train: at most one; none leaves days and totals open.
    std::optional<double> tokens, samples, steps;
    std::optional<double> deadlineDays;      ///< wall-clock; needs one of the three above
    std::optional<double> tokensPerSecond;   ///< of the step, before failures
    PriceCatalog prices;
    Commitment commitment = Commitment::OnDemand;
    EnergyModel energy;
    FailureModel failures;
    CheckpointModel checkpoint;
};

/// One configuration that fits in memory, with what it takes.
struct Candidate {
    std::string hardware, device;  ///< option's name; kinds of device in it ("a100-80gb-sxm + h100-sxm")
    std::int64_t devices = 1, nodes = 1;
    std::string strategy;
    std::int64_t microBatch = 1, gradAccum = 1;
    Recompute recompute = Recompute::None;
    Json knobs = Json::object();
    Json scenario;                 ///< reads back as this configuration

    double stepSeconds = 0, samplesPerSecond = 0, tokensPerSecond = 0, mfu = 0;
    double exposedShare = 0;       ///< of the step: communication that nothing hides
    Activity activity;
    Bytes peakBytes = 0, capacityBytes = 0;
    MemoryVerdict verdict = MemoryVerdict::Fits;

    Goodput goodput;
    std::vector<GoodputPoint> goodputCheck;  ///< only of the fastest and the cheapest

    double usdPerHour = 0, usdPerStep = 0;   ///< the step itself
    double usdPerSample = 0, secondsPerSample = 0;  ///< wall-clock: what failures and checkpoints lose is in it
    std::optional<double> days, totalUsd;
    std::optional<double> powerW, kwhPerStep, kwhPerSample, totalKwh, totalCo2Kg;  ///< empty where a device's power is not known
};

/// Why a group (hardware, count, strategy) is not on the front.
struct Rejection {
    enum class Why : std::uint8_t { OutOfMemory, Refused, MissesGoal, Dominated };
    Why why = Why::Refused;
    std::string hardware;
    std::int64_t devices = 0;
    std::string strategy;
    std::string reason;
    Bytes lackingBytes = 0;                ///< out of memory: how much more would be needed
    std::optional<Candidate> candidate;    ///< its best, where one fits
};

struct Plan {
    std::string model;
    std::int64_t parameters = 0;
    std::int64_t globalBatch = 0, seqLen = 0, tokensPerSample = 0;
    bool globalBatchGiven = false;
    std::optional<double> samples;         ///< to train in all
    std::vector<Candidate> pareto;         ///< meets the goal; fastest first, cheapest last
    std::optional<Candidate> nearestMiss;  ///< where nothing meets the goal but something fits: the fastest of those
    std::vector<Rejection> rejected;       ///< in the order of hardware, count, strategy
    std::int64_t evaluated = 0;            ///< predictions made
    std::vector<std::string> warnings;

    bool found() const { return !pareto.empty(); }
    const Candidate& fastest() const { return pareto.front(); }
    const Candidate& cheapest() const { return pareto.back(); }
};

/// Called after each group, from any thread, one call at a time.
using PlanProgress = std::function<void(std::size_t done, std::size_t groups)>;

/// The same answer for the same query, on any number of cores. Errors: a query that no scenario can be made from (the model, a
/// device without a price, a deadline without an amount of work); what merely cannot run is in `rejected`.
Result<Plan> makePlan(const PlanQuery& query, const Catalogs& catalogs, const PlanProgress& progress = {});

/// The document that `--json` prints.
Json toJson(const PlanQuery& query, const Plan& plan);

/// "64 × h100-sxm, ddp": names a configuration in a sentence.
std::string labelOf(const Candidate& candidate);

}  // namespace ringside
