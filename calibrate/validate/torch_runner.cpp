#include "calibrate/validate/torch_runner.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "calibrate/execute/local_scenario.h"
#include "calibrate/fit/robust.h"
#include "calibrate/ranks/launch.h"
#include "calibrate/ranks/run_command.h"
#include "calibrate/validate/torch_script.h"
#include "sim/prediction.h"
#include "traces/export/atomic_file.h"
#include "traces/import/torch_profiler_kernels.h"

namespace ringside {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kLongestRun(10);  // Python says nothing while it works
constexpr const char* kShapedInterface = "eth0";
constexpr int kSteps = 10;

/// A folder of our own that goes when we do.
class TempFolder {
public:
    static Result<TempFolder> create() {
        std::string pattern = (fs::temp_directory_path() / "ringside-torch-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) return failure(ErrorCode::RuntimeFailure, pattern, "cannot make a folder for PyTorch's script");
        return TempFolder(pattern);
    }
    TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TempFolder& operator=(TempFolder&& other) noexcept {
        std::swap(path_, other.path_);
        return *this;
    }
    ~TempFolder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
    explicit TempFolder(fs::path path) : path_(std::move(path)) {}
    fs::path path_;
};

struct TorchJob {
    Json model;
    std::int64_t batch = 1;
    std::string strategy, optimizer;
    double bucketMb = 25;
    int ranks = 1, steps = kSteps, warmUp = 2;
    std::optional<double> linkBitsPerSecond;
};

struct TorchSteps {
    std::vector<double> seconds;  ///< per step: of the slowest rank
    double communication = 0;     ///< of a step of rank 0
    std::string version;
};

Result<TorchSteps> runTorch(const TorchJob& job, const std::string& python) {
    TRY(const TempFolder folder, TempFolder::create());
    TRY_VOID(atomicWriteFile(folder.file("train.py"), std::string(torchScript())));
    LaunchOptions launch;
    launch.timeout = kLongestRun;
    std::unique_ptr<ShapedLink> link;
    if (job.linkBitsPerSecond && job.ranks > 1) {
        TRY(link, ShapedLink::create({job.ranks, *job.linkBitsPerSecond}));
        launch.link = link.get();
    }
    const bool pinned = job.ranks <= static_cast<int>(std::thread::hardware_concurrency());
    TRY(const std::vector<std::string> results, launchLocalRanks(job.ranks, launch, [&](LocalRank& rank) -> Result<std::string> {
            const int r = rank.env().rank;
            const Json asked = {{"model", job.model}, {"batch", job.batch}, {"strategy", job.strategy}, {"optimizer", job.optimizer}, {"bucket_mb", job.bucketMb}, {"steps", job.steps}, {"warm_up", job.warmUp},
                                {"rank", r}, {"world", job.ranks}, {"store", folder.file("store")}, {"interface", link ? kShapedInterface : "lo"}, {"core", pinned ? r : -1}, {"trace", folder.file("trace.json")}};
            const std::string in = folder.file(fmt::format("job{}.json", r)), out = folder.file(fmt::format("steps{}.json", r));
            TRY_VOID(atomicWriteFile(in, asked.dump()));
            rank.progress("PyTorch");
            TRY_VOID(runCommand({python, folder.file("train.py"), in, out}));
            TRY(const Json answer, readJsonFile(out));
            return answer.dump();
        }));
    TorchSteps steps;
    for (const std::string& text : results) {
        TRY(const Json json, parseJson(text, "PyTorch's steps"));
        const std::vector<double> seconds = json["seconds"].get<std::vector<double>>();
        steps.seconds.resize(seconds.size());
        for (std::size_t s = 0; s < seconds.size(); ++s) steps.seconds[s] = std::max(steps.seconds[s], seconds[s]);
        steps.version = json["torch"].get<std::string>();
    }
    if (job.ranks > 1) {
        TRY(const ProfiledKernels profiled, readTorchProfile(folder.file("trace.json")));
        for (const ProfiledCollective& collective : profiled.collectives) steps.communication += collective.seconds;
    }
    return steps;
}

/// A reduce-scatter of PyTorch's Gloo costs what an all-reduce of the same buffer does.
void reduceScatterAsAllReduce(Scenario& scenario) {
    scenario.pricing.collectives.gloo.reduceScatterIsAllReduce = true;
    for (Profile& profile : scenario.profiles) {
        std::vector<CollectiveCurve> curves;
        for (const CollectiveCurve& curve : profile.collectives) {
            if (curve.op == CollectiveOp::ReduceScatter) continue;
            curves.push_back(curve);
            if (curve.op != CollectiveOp::AllReduce) continue;
            curves.push_back(curve);
            curves.back().op = CollectiveOp::ReduceScatter;
        }
        profile.collectives = std::move(curves);
    }
}

Result<Scenario> scenarioOf(const ValidationCase& one, int ranks, const StepValidationOptions& options, const Catalogs& catalogs) {
    TRY(Json document, localScenario(one.document, ranks, ranks > 1 ? options.ranks.linkBitsPerSecond : std::nullopt));
    document["profile"] = options.profile;
    if (ranks == 1) document["strategy"] = {{"name", "single"}};
    TRY(Scenario scenario, resolveScenario(document, fmt::format("{} with {}", one.model, one.strategy), catalogs));
    reduceScatterAsAllReduce(scenario);
    return scenario;
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
Result<double> computeFactor(const ValidationCase& one, TorchJob job, const StepValidationOptions& options, const Catalogs& catalogs, const std::string& python) {
    ValidationCase smaller = one;
    job.batch = std::max<std::int64_t>(1, job.batch / 2);
    job.ranks = 1;
    job.strategy = "single";
    smaller.document["training"]["micro_batch"] = job.batch;
    TRY(const Scenario scenario, scenarioOf(smaller, 1, options, catalogs));
    TRY(const Prediction prediction, predict(scenario, {false, false, false}));
    TRY(const TorchSteps steps, runTorch(job, python));
    return median(steps.seconds) / prediction.stepSeconds;
}

}  // namespace

Result<std::string> torchVersion() {
    const Result<std::string> python = findProgram("python3");
    const Result<std::string> version = python ? runCommand({*python, "-c", "import torch, torch.distributed.fsdp; print(torch.__version__)"}) : python;
    if (!version)
        return failure(ErrorCode::MissingCapability, "--against torch", "python3 cannot import torch; install PyTorch 2.6 or later (pip install torch), or leave --against out");
    return *version;
}

std::vector<std::string> torchStrategies() { return {"ddp:bucket_mb=1", "ddp", "ddp:bucket_mb=100", "zero-redundancy-optimizer", "fsdp2"}; }

Result<StepValidation> validateAgainstTorch(const std::vector<ValidationCase>& cases, const StepValidationOptions& options, const Catalogs& catalogs, const ValidationProgress& progress) {
    TRY(const std::string version, torchVersion());
    TRY(const std::string python, findProgram("python3"));
    if (options.ranks.linkBitsPerSecond) TRY_VOID(shapedLinkSupport());
    StepValidation out;
    out.device = "PyTorch " + version;
    out.libraries = "torch " + version;
    std::vector<TorchCase> torch;
    std::map<std::string, double> factors;  // by model
    for (const ValidationCase& one : cases) {
        TRY(Scenario scenario, scenarioOf(one, one.ranks, options, catalogs));
        if (const std::string why = obstacle(one, scenario); !why.empty()) {
            out.skipped.push_back({one.strategy, one.model, one.ranks, why});
            continue;
        }
        TorchCase next;
        next.job = {one.document["model"], scenario.training.microBatch, scenario.parallel.strategy, one.document.value("training", Json::object()).value("optimizer", "adamw"),
                    scenario.parallel.bucketMb.value_or(25), one.ranks, options.steps > 0 ? options.steps : kSteps, std::max(options.warmUp, 2), options.ranks.linkBitsPerSecond};
        if (!factors.contains(one.model)) {
            TRY(factors[one.model], computeFactor(one, next.job, options, catalogs, python));
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
            TRY(const TorchSteps steps, runTorch(torch[c].job, python));
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
