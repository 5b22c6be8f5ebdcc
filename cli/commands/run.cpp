// ringside run: a scenario's schedule for real, on the ranks of this machine or of a launcher.
#include <charconv>

#include <fmt/format.h>

#include "calibrate/execute/local_scenario.h"
#include "calibrate/execute/real_run.h"
#include "calibrate/measure/calibration.h"
#include "cli/command.h"
#include "cli/commands/numbers.h"
#include "cli/commands/scenario_flags.h"
#include "cli/output/run_text.h"
#include "sim/prediction.h"
#include "traces/export/chrome_json.h"

namespace ringside {
namespace {

struct RunFlags {
    ScenarioFlags scenario;
    OutputFlags output;
    std::string localRanks, steps = "5", warmUp = "1", trace, link, timeout = "60", port, threads = "1", device = "cpu", learningRate, seed = "1", memoryLimit;
    bool check = false, paced = false;
};

Result<RealRunOptions> optionsOf(const RunFlags& flags) {
    RealRunOptions options;
    if (!flags.localRanks.empty()) {
        TRY(const std::int64_t ranks, wholeNumber("--local-ranks", flags.localRanks, 1, 256));
        options.ranks.localRanks = static_cast<int>(ranks);
    }
    TRY(const std::int64_t steps, wholeNumber("--steps", flags.steps, 1, 100'000));
    TRY(const std::int64_t warmUp, wholeNumber("--warm-up", flags.warmUp, 0, 100'000));
    TRY(const std::int64_t timeout, wholeNumber("--timeout", flags.timeout, 1, 86'400));
    TRY(const std::int64_t threads, wholeNumber("--threads", flags.threads, 1, 1024));
    TRY(const std::int64_t seed, wholeNumber("--seed", flags.seed, 0, 1'000'000'000));
    options.steps = static_cast<int>(steps);
    options.warmUp = static_cast<int>(warmUp);
    options.ranks.timeout = std::chrono::seconds(timeout);
    options.ranks.threads = static_cast<int>(threads);
    options.execute.seed = static_cast<std::uint64_t>(seed);
    if (!flags.port.empty()) {
        TRY(const std::int64_t port, wholeNumber("--port", flags.port, 1, 65'535));
        options.ranks.port = static_cast<int>(port);
    }
    if (!flags.link.empty()) {
        TRY(options.ranks.linkBitsPerSecond, linkRate(flags.link));
        if (options.ranks.localRanks == 0) return failure(ErrorCode::Usage, "--link", "shapes the links between local ranks; give --local-ranks too");
    }
    if (!flags.learningRate.empty()) {
        double rate = 0;
        const auto [end, error] = std::from_chars(flags.learningRate.data(), flags.learningRate.data() + flags.learningRate.size(), rate);
        if (error != std::errc() || end != flags.learningRate.data() + flags.learningRate.size() || rate <= 0)
            return failure(ErrorCode::Usage, "--learning-rate", fmt::format("expected a number above 0, found '{}'", flags.learningRate));
        options.execute.hyper.learningRate = rate;
    }
    if (!flags.memoryLimit.empty()) {
        options.memoryLimit = parseSize(flags.memoryLimit);
        if (options.memoryLimit <= 0) return failure(ErrorCode::Usage, "--memory-limit", fmt::format("'{}' is not a size; expected one such as 512M or 2G", flags.memoryLimit));
    }
    options.device = flags.device;
    options.keepParameters = flags.check;
    // Some gradients are zero but for rounding, which Adam would blow up to whole steps: compare with an epsilon far above it.
    if (flags.check) options.execute.hyper.epsilon = 1e-3;
    return options;
}

/// What to know before trusting the figures.
std::vector<std::string> notesOn(const Scenario& scenario, const RealRunOptions& options, const RunFlags& flags) {
    std::vector<std::string> notes;
    // A prediction with the profile of another machine is fine, but its error is no figure of this one.
    if (const Profile& profile = scenario.profiles.front(); profile.environment && flags.device == "cpu") {
        const Result<void> same = checkEnvironment(profile, calibrationEnvironment(options.ranks.threads, "", RINGSIDE_VERSION));
        if (!same) notes.push_back(same.error().toString());
    }
    const std::string& strategy = scenario.parallel.strategy;
    if (flags.check)
        for (const char* drifting : {"async-ps", "ssp", "local-sgd", "diloco", "easgd"})
            if (strategy == drifting) notes.push_back(fmt::format("{} does not train as one device does, by design: the difference says how far it is, not that it is wrong", strategy));
    return notes;
}

Result<int> runRun(const RunFlags& flags) {
    TRY(RealRunOptions options, optionsOf(flags));
    if (flags.check && flags.paced) return failure(ErrorCode::Usage, "--check-against-single", "paced kernels compute nothing to compare; leave one of the two out");
    TRY(const int ranks, rankCount(options.ranks));
    TRY(Json document, flags.scenario.document());
    TRY(document, localScenario(std::move(document), ranks, options.ranks.linkBitsPerSecond));
    TRY(const Catalogs catalogs, Catalogs::builtin());
    TRY(Scenario scenario, flags.scenario.resolve(document, catalogs));
    if (flags.paced) scenario = pacedScenario(std::move(scenario));

    std::optional<Prediction> prediction;
    const bool hasProfile = document.contains("profile");
    if (flags.paced && !hasProfile) return failure(ErrorCode::Usage, "--paced", "kernels sleep for as long as a profile says; give one with --profile (`ringside calibrate` writes it)");
    if (hasProfile) {
        TRY(prediction, predict(scenario, {false, false, false}));
    }
    options.paced = flags.paced;
    TRY(const std::optional<RealRun> run, runForReal(scenario, options));
    if (!run) return 0;  // rank 0 reports

    RunReport report{&scenario, &*run, prediction ? &*prediction : nullptr, {}, flags.paced, {}};
    if (flags.check) {
        TRY(report.differenceFromSingle, differenceFromSingle(scenario, options, *run));
    }
    report.notes = notesOn(scenario, options, flags);
    if (!flags.trace.empty()) TRY_VOID(writeChromeTrace(run->trace(), flags.trace, {.rank = {}, .deviceName = run->deviceName, .backend = flags.device == "cuda" ? "nccl" : "gloo"}));
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson() ? runJson(report).dump(2) + "\n" : runText(report)));
    return 0;
}

}  // namespace

void addRun(CommandLine& line) {
    auto flags = std::make_shared<RunFlags>();
    Command command = line.add("run", "run the schedule for real: real kernels, real collectives, real numbers", [flags] { return runRun(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside run --model tiny.json --local-ranks 2 --strategy ddp --steps 10\n"
        "  ringside run --model tiny.json --local-ranks 4 --strategy fsdp2 --check-against-single --json\n"
        "  ringside run --model tiny.json --local-ranks 2 --link 200mbit --profile here.json --trace step.json\n"
        "  torchrun --no-python --nproc-per-node 2 ringside run --model tiny.json --strategy ddp\n"
        "Ranks are forked here (--local-ranks), or come from torchrun, srun or mpirun.\n"
        "Exit code 5: a rank died, hung or could not be reached; the message names it and its last task.");
    flags->scenario.addTo(command);
    command.option("--local-ranks", flags->localRanks, "fork so many ranks on this machine (default: what the launcher started, or one)", "N", "Run");
    command.option("--steps", flags->steps, "steps to measure (default: 5)", "N", "Run");
    command.option("--warm-up", flags->warmUp, "steps before them that are not measured (default: 1)", "N", "Run");
    command.choice("--run-on", flags->device, "cpu (oneDNN, Gloo) or cuda (cuBLAS, cuDNN, NCCL)", {"cpu", "cuda"}, "Run");
    command.option("--threads", flags->threads, "threads of each rank's kernels (default: 1)", "N", "Run");
    command.option("--link", flags->link, "give each local rank a network of its own and shape it to this rate (needs root): 200mbit, 1gbit", "RATE", "Run");
    command.flag("--paced", flags->paced, "kernels sleep for as long as the profile says; collectives stay real", "Run");
    command.flag("--check-against-single", flags->check, "train the same samples on one device too, and compare the parameters", "Run");
    command.option("--memory-limit", flags->memoryLimit, "of each rank's tensors: 512M, 2G (default: the machine's memory, shared among local ranks)", "SIZE", "Run");
    command.option("--learning-rate", flags->learningRate, "of the optimizer (default: 0.001)", "X", "Run");
    command.option("--seed", flags->seed, "of samples and parameters (default: 1)", "N", "Run");
    command.option("--timeout", flags->timeout, "seconds without progress after which the run is ended (default: 60)", "S", "Run");
    command.option("--port", flags->port, "of the store through which local ranks meet (default: a free one)", "N", "Run");
    command.option("--trace", flags->trace, "write the median step as a Chrome trace (open it in Perfetto)", "FILE", "Output");
    addOutputFlags(command, flags->output);
}

}  // namespace ringside
