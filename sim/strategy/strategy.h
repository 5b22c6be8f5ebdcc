// Strategy: writes the Schedule of one training step. It never computes a time.
//
// One file per strategy; all of them are listed in strategies() (strategy.cpp). Adding one: derive, write the tasks with a
// StepWriter, add it to the list, give it a page in docs/models.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/hardware/cluster.h"
#include "model/training/parallel_config.h"
#include "model/training/training_config.h"
#include "model/workload/model_spec.h"
#include "model/workload/workload.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// Steady: a step after warm-up. First: step 1 (optimizer state does not exist yet, DDP has one bucket).
enum class StepKind : std::uint8_t { Steady, First };

struct StrategyInput {
    std::shared_ptr<const Workload> workload;  ///< the whole model for one micro-batch
    const ModelSpec& model;                    ///< to build a part of it, or another batch size
    const Cluster& cluster;
    const TrainingConfig& training;
    const ParallelConfig& parallel;
    StepKind step = StepKind::Steady;
    int mostMicroSteps = 0;                    ///< write at most so many micro-steps, one of them standing for the rest; 0: all
    bool exactRanks = false;                   ///< write every rank as it really is, where else one would stand for all (Schedule::exact)
};

/// A setting that a strategy understands, as it stands in a scenario under "strategy".
struct Knob {
    std::string key;           ///< "bucket_mb"
    std::string defaultValue;  ///< as text
    std::string help;
};

class Strategy {
public:
    virtual ~Strategy() = default;

    virtual std::string_view name() const = 0;     ///< "ddp"
    virtual std::string_view summary() const = 0;  ///< one sentence
    virtual std::vector<Knob> knobs() const = 0;
    /// Sets the knobs whose default is another than ParallelConfig's, before those that were given are read.
    virtual void applyDefaults(ParallelConfig&) const {}
    /// Fails (bad input) where the strategy cannot run this scenario, saying why.
    virtual Result<Schedule> write(const StrategyInput& input) const = 0;
};

/// Every strategy, in the order the catalogue lists them.
std::vector<std::unique_ptr<const Strategy>> strategies();
/// By name; the error names the nearest.
Result<std::unique_ptr<const Strategy>> strategyByName(std::string_view name);

std::unique_ptr<const Strategy> makeSingleDevice();
std::unique_ptr<const Strategy> makeDataParallel();
std::unique_ptr<const Strategy> makeNaiveAllReduce();
std::unique_ptr<const Strategy> makeDdp();
std::unique_ptr<const Strategy> makePicotron();
std::unique_ptr<const Strategy> makePsDevice0();
std::unique_ptr<const Strategy> makePsHost();
std::unique_ptr<const Strategy> makePsSharded();
std::unique_ptr<const Strategy> makePsServers();
std::unique_ptr<const Strategy> makeAsyncPs();
std::unique_ptr<const Strategy> makeSsp();
std::unique_ptr<const Strategy> makeLocalSgd();
std::unique_ptr<const Strategy> makeDiLoCo();
std::unique_ptr<const Strategy> makeElasticAveraging();
std::unique_ptr<const Strategy> makeZero1();
std::unique_ptr<const Strategy> makeZero2();
std::unique_ptr<const Strategy> makeZero3();
std::unique_ptr<const Strategy> makeZeroRedundancyOptimizer();
std::unique_ptr<const Strategy> makeMegatron();
std::unique_ptr<const Strategy> makeFsdp1();
std::unique_ptr<const Strategy> makeFsdp2();
std::unique_ptr<const Strategy> makeHsdp();

}  // namespace ringside
