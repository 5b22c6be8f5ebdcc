#include "calibrate/validate/torch_runner.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "calibrate/execute/local_scenario.h"
#include "calibrate/fit/robust.h"
#include "calibrate/ranks/shaped_link.h"
#include "calibrate/validate/torch_collectives.h"
#include "calibrate/validate/torch_process.h"
#include "model/cost/measured_collectives.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

constexpr int kSteps = 10;

struct TorchJob {
    Json model;
    std::int64_t batch = 1;
    std::string strategy, optimizer;
    std::optional<double> bucketMb;  ///< left out: the framework's own
    int ranks = 1, steps = kSteps, warmUp = 2;
    std::optional<double> linkBitsPerSecond;
};

struct TorchSteps {
    std::vector<double> seconds;  ///< per step: of the slowest rank
    double communication = 0;     ///< of a step of rank 0
};

Result<TorchSteps> runTorch(const TorchJob& job) {
    TRY(const TorchAnswers answers, runTorchRanks(job.ranks, job.linkBitsPerSecond,
                                                  {{"model", job.model}, {"batch", job.batch}, {"strategy", job.strategy}, {"optimizer", job.optimizer}, {"bucket_mb", job.bucketMb ? Json(*job.bucketMb) : Json()}, {"steps", job.steps}, {"warm_up", job.warmUp}}));
    TorchSteps steps;
    for (const Json& answer : answers.ranks) {
        const std::vector<double> seconds = answer["seconds"].get<std::vector<double>>();
        steps.seconds.resize(seconds.size());
        for (std::size_t s = 0; s < seconds.size(); ++s) steps.seconds[s] = std::max(steps.seconds[s], seconds[s]);
    }
    if (answers.profile)
        for (const ProfiledCollective& collective : answers.profile->collectives) steps.communication += collective.seconds;
    return steps;
}

Result<Scenario> scenarioOf(const ValidationCase& one, int ranks, const StepValidationOptions& options, const Catalogs& catalogs) {
    TRY(Json document, localScenario(one.document, ranks, ranks > 1 ? options.ranks.linkBitsPerSecond : std::nullopt));
    document["profile"] = options.profile;
    if (ranks == 1) document["strategy"] = {{"name", "single"}};
    Json& strategy = document["strategy"];
    if (strategy["name"] == "fsdp2" && !strategy.contains("overlap_comm")) strategy["overlap_comm"] = false;  // no streams on CPU tensors
    return resolveScenario(document, fmt::format("{} with {}", one.model, one.strategy), catalogs);
}

/// How PyTorch communicates between as many ranks over the same link.
Result<std::vector<CollectiveTimings>> measureCollectives(const Scenario& scenario, int ranks, const StepValidationOptions& options) {
    TRY(const TorchAnswers answers, runTorchRanks(ranks, options.ranks.linkBitsPerSecond, {{"collectives", torchCollectivesAsked()}}));
    return torchCollectivesOf(answers.ranks, linkNameOf(scenario.cluster, groupShape(scenario.cluster, {0, 1, ranks})));
}

/// "" where PyTorch's script can run it, else why not.
std::string obstacle(const ValidationCase& one, const Scenario& scenario) {
    const std::string& strategy = scenario.parallel.strategy;
    if (strategy != "ddp" && strategy != "fsdp2" && strategy != "zero-redundancy-optimizer") return "is not compared with PyTorch; ddp, fsdp2 and zero-redundancy-optimizer are";
    if (scenario.training.gradAccum != 1) return "gradient accumulation is not compared with PyTorch";
    const Json& model = one.document["model"];
    const std::string type = model.is_object() ? model.value("model_type", "") : "";
    if (type != "gpt2" && type != "mlp") return "only MLPs and GPT-2-like models given as a configuration are compared with PyTorch";
    const std::string optimizer = one.document.value("training", Json::object()).value("optimizer", "adamw");
    if (optimizer != "adamw" && optimizer != "sgd") return "only adamw and sgd are compared with PyTorch";
    return {};
}

struct TorchCase {
    TorchJob job;
    ValidationRow row;
    std::vector<std::vector<double>> steps;
    std::vector<double> communication;
};

/// How much slower PyTorch's kernels are than the profile's, by the same model at half its batch on one rank.
Result<double> computeFactor(const ValidationCase& one, TorchJob job, const StepValidationOptions& options, const Catalogs& catalogs) {
    ValidationCase smaller = one;
    job.batch = std::max<std::int64_t>(1, job.batch / 2);
    job.ranks = 1;
    job.strategy = "single";
    smaller.document["training"]["micro_batch"] = job.batch;
    TRY(const Scenario scenario, scenarioOf(smaller, 1, options, catalogs));
    TRY(const Prediction prediction, predict(scenario, {false, false, false}));
    TRY(const TorchSteps steps, runTorch(job));
    return median(steps.seconds) / prediction.stepSeconds;
}

}  // namespace

std::vector<std::string> torchStrategies() { return {"ddp:bucket_mb=1", "ddp", "ddp:bucket_mb=100", "zero-redundancy-optimizer", "fsdp2"}; }

Result<StepValidation> validateAgainstTorch(const std::vector<ValidationCase>& cases, const StepValidationOptions& options, const Catalogs& catalogs, const ValidationProgress& progress) {
    TRY(const std::string version, torchVersion());
    if (options.ranks.linkBitsPerSecond) TRY_VOID(shapedLinkSupport());
    StepValidation out;
    out.device = "PyTorch " + version;
    out.libraries = "torch " + version;
    std::vector<TorchCase> torch;
    std::map<std::string, double> factors;  // by model
    std::map<int, std::vector<CollectiveTimings>> collectives;  // by ranks
    for (const ValidationCase& one : cases) {
        TRY(Scenario scenario, scenarioOf(one, one.ranks, options, catalogs));
        if (const std::string why = obstacle(one, scenario); !why.empty()) {
            out.skipped.push_back({one.strategy, one.model, one.ranks, why});
            continue;
        }
        TorchCase next;
        next.job = {one.document["model"], scenario.training.microBatch, scenario.parallel.strategy, one.document.value("training", Json::object()).value("optimizer", "adamw"),
                    scenario.parallel.bucketMb, one.ranks, options.steps > 0 ? options.steps : kSteps, std::max(options.warmUp, 2), options.ranks.linkBitsPerSecond};
        if (!factors.contains(one.model)) {
            TRY(factors[one.model], computeFactor(one, next.job, options, catalogs));
        }
        if (one.ranks > 1) {
            if (!collectives.contains(one.ranks)) {
                TRY(collectives[one.ranks], measureCollectives(scenario, one.ranks, options));
            }
            for (Profile& profile : scenario.profiles) TRY_VOID(useTorchCollectives(profile, collectives[one.ranks]));
        }
        scenario.pricing.computeScale = scenario.pricing.memoryScale = 1 / factors[one.model];
        TRY(const Prediction prediction, predict(scenario, {false, false, false}));
        next.row.strategy = one.strategy;
        next.row.model = one.model;
        next.row.ranks = one.ranks;
        next.row.predicted = prediction.stepSeconds;
        next.row.p10 = prediction.p10Seconds;
        next.row.p90 = prediction.p90Seconds;
        next.row.steps = next.job.steps;
        next.row.communication = {"communication", prediction.breakdown.communication().seconds(), 0};
        next.row.exposed = {"communication_exposed", prediction.breakdown.communicationExposed.seconds(), 0};
        torch.push_back(std::move(next));
    }
    for (int r = 0; r < options.rounds; ++r)
        for (std::size_t c = 0; c < torch.size(); ++c) {
            if (progress) progress(static_cast<std::size_t>(r) * torch.size() + c, static_cast<std::size_t>(options.rounds) * torch.size());
            TRY(const TorchSteps steps, runTorch(torch[c].job));
            torch[c].row.rounds.push_back(median(steps.seconds));
            torch[c].steps.push_back(steps.seconds);
            torch[c].communication.push_back(steps.communication);
        }
    for (TorchCase& one : torch) {
        one.row.measured = median(one.row.rounds);
        one.row.noiseFloor = noiseFloorOf(one.steps, one.row.rounds);
        one.row.communication.measured = median(one.communication);
        out.rows.push_back(std::move(one.row));
    }
    if (out.rows.empty()) return failure(ErrorCode::MissingCapability, "--against torch", fmt::format("none of {} cases can be compared; the first: {}", cases.size(), out.skipped.empty() ? "there is none" : out.skipped.front().reason));
    return out;
}

}  // namespace ringside
