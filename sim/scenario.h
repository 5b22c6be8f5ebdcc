// Scenario: the one input. Model, cluster, training, strategy, profile: a JSON document, with flags laid over it.
//
// Keys and units: docs/reference/scenario.md and docs/reference/scenario.schema.json.
#pragma once

#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/catalog/hardware_catalog.h"
#include "model/catalog/model_catalog.h"
#include "model/cost/profile.h"
#include "model/training/parallel_config.h"
#include "model/training/training_config.h"
#include "sim/player/perturbation.h"
#include "sim/player/prices.h"
#include "sim/strategy/device_mesh.h"
#include "sim/strategy/strategy.h"

namespace ringside {

/// Everything that has a name. Load once, use for many scenarios.
struct Catalogs {
    ModelCatalog models;
    HardwareCatalog hardware;

    static Result<Catalogs> builtin();
};

/// A scenario with every name looked up and every number checked.
struct Scenario {
    ModelSpec model;
    Cluster cluster;
    std::vector<Profile> profiles;  ///< one per Cluster::nodes
    TrainingConfig training;
    ParallelConfig parallel;
    DeviceMesh mesh;
    PricingOptions pricing;
    Perturbation perturbation;
    StepKind step = StepKind::Steady;
    bool expandableSegments = false;

    Json modelAsGiven;    ///< name, path or inline configuration
    Json profileAsGiven;  ///< null, name, path or object
    std::vector<std::string> warnings;

    /// Samples per optimizer step, over all ranks.
    std::int64_t globalBatch() const;
};

/// `source` names the document in errors. Every key is checked; unknown ones are refused with the nearest.
Result<Scenario> resolveScenario(const Json& document, const std::string& source, const Catalogs& catalogs);

/// The complete scenario as used, defaults filled in; reading it back gives the same scenario.
Json toJson(const Scenario& scenario);

/// `--set key=value`: puts a value into the document by dotted path ("training.dropout", "device.sms"). A bare knob
/// ("bucket_mb") finds its section. The value is JSON where it parses as such, else a string.
Result<void> setScenarioKey(Json& document, const std::string& assignment);

}  // namespace ringside
