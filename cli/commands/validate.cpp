// ringside validate: predicts steps with a profile, runs them here, and says how far the two are apart; or predicts runs that others
// have published (published.cpp).
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "calibrate/execute/local_scenario.h"
#include "calibrate/measure/calibration.h"
#include "calibrate/validate/html_report.h"
#include "calibrate/validate/step_validation.h"
#include "calibrate/validate/torch_process.h"
#include "calibrate/validate/torch_runner.h"
#include "calibrate/validate/validation_cases.h"
#include "calibrate/validate/validation_models.h"
#include "cli/command.h"
#include "cli/commands/numbers.h"
#include "cli/commands/published.h"
#include "cli/output/progress.h"
#include "cli/output/validation_text.h"
#include "traces/export/atomic_file.h"
#include "traces/export/chrome_json.h"

namespace ringside {
namespace {

namespace fs = std::filesystem;

struct ValidateFlags {
    OutputFlags output;
    std::string profile, strategies, models, localRanks, link, rounds = "3", steps, warmUp = "1", threads = "1", timeout = "60", limit, traceDir, html, samples, device = "cpu", against = "executor";
    bool paced = false, anyMachine = false, asMeasured = false;
    PublishedFlags published;
};

Result<std::vector<std::string>> listOf(const std::string& flag, const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at <= text.size() && !text.empty();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        if (end == at) return failure(ErrorCode::Usage, flag, fmt::format("'{}' has an empty entry; separate entries by one comma each", text));
        out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

Result<std::optional<double>> limitOf(const std::string& text) {
    if (text.empty()) return std::optional<double>();
    double percent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
    if (error != std::errc() || end != text.data() + text.size() || !(percent >= 0 && percent < 1e6))
        return failure(ErrorCode::Usage, "--limit", fmt::format("expected a percentage from 0 up, such as 6, found '{}'", text));
    return std::optional(percent / 100);
}

Result<StepValidationOptions> optionsOf(const ValidateFlags& flags) {
    StepValidationOptions options;
    if (!flags.localRanks.empty()) {
        TRY(const std::int64_t ranks, wholeNumber("--local-ranks", flags.localRanks, 1, 256));
        options.ranks.localRanks = static_cast<int>(ranks);
    }
    if (!flags.link.empty()) {
        TRY(options.ranks.linkBitsPerSecond, linkRate(flags.link));
        if (options.ranks.localRanks == 0) return failure(ErrorCode::Usage, "--link", "shapes the links between local ranks; give --local-ranks too");
    }
    TRY(const int ranks, rankCount(options.ranks));
    if (ranks == 1) options.ranks.localRanks = 1;  // in a process of its own: this one stays as it is for the next run
    TRY(const std::int64_t rounds, wholeNumber("--rounds", flags.rounds, 1, 1000));
    TRY(const std::int64_t warmUp, wholeNumber("--warm-up", flags.warmUp, 0, 1000));
    TRY(const std::int64_t timeout, wholeNumber("--timeout", flags.timeout, 1, 86'400));
    TRY(const std::int64_t threads, wholeNumber("--threads", flags.threads, 1, 1024));
    if (!flags.steps.empty()) {
        TRY(const std::int64_t steps, wholeNumber("--steps", flags.steps, 1, 10'000));
        options.steps = static_cast<int>(steps);
    }
    options.rounds = static_cast<int>(rounds);
    options.warmUp = static_cast<int>(warmUp);
    options.ranks.timeout = std::chrono::seconds(timeout);
    options.ranks.threads = static_cast<int>(threads);
    options.profile = flags.profile;
    options.paced = flags.paced;
    options.traces = !flags.html.empty() || !flags.traceDir.empty();
    options.device = flags.device;
    return options;
}

/// The samples beside the profile, if they are there; those that were asked for must be.
Result<std::optional<Holdout>> holdoutFor(const ValidateFlags& flags, const Profile& profile) {
    const std::string path = flags.samples.empty() ? flags.profile + ".samples.jsonl" : flags.samples;
    if (!fs::exists(path)) {
        if (!flags.samples.empty()) return badInput(path, "no such file; expected the raw samples that calibrate wrote beside its profile");
        return std::optional<Holdout>();
    }
    TRY(const SampleFile samples, SampleFile::open(path));
    Result<Holdout> holdout = holdoutOf(samples, profile);
    if (!holdout && flags.samples.empty()) return std::optional<Holdout>();
    TRY(Holdout found, std::move(holdout));
    return std::optional(std::move(found));
}

Result<void> writeTraces(const std::string& folder, const StepValidation& validation) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return failure(ErrorCode::RuntimeFailure, folder, fmt::format("cannot make the folder: {}", error.message()));
    for (const ValidationRow& row : validation.rows) {
        std::string name = fmt::format("{}-{}-{}", row.model, row.strategy, row.ranks);
        for (char& c : name)
            if (c == '/' || c == ':' || c == '=') c = '-';
        TRY_VOID(writeChromeTrace(row.predictedTrace, (fs::path(folder) / (name + "-predicted.json")).string()));
        TRY_VOID(writeChromeTrace(row.measuredTrace, (fs::path(folder) / (name + "-measured.json")).string()));
    }
    return {};
}

constexpr int kTorchRanks = 2;

/// PyTorch's ranks are forked here, and only what it has of ours can be compared.
Result<void> adaptToTorch(const ValidateFlags& flags, StepValidationOptions& options, std::vector<std::string>& strategies, std::vector<std::string>& models) {
    TRY_VOID(torchVersion());
    if (options.ranks.localRanks == 0) return failure(ErrorCode::Usage, "--against", "torch is run on local ranks; start the program by itself, with --local-ranks");
    if (flags.paced) return failure(ErrorCode::Usage, "--paced", "PyTorch's kernels cannot be paced; leave it out");
    if (flags.localRanks.empty()) options.ranks.localRanks = kTorchRanks;
    if (strategies.empty()) strategies = torchStrategies();
    if (models.empty())
        for (const ValidationModel& model : severalRankModels())
            if (model.document["model"]["model_type"] == "gpt2") models.push_back(model.name);
    return {};
}

Result<int> runValidate(const ValidateFlags& flags) {
    if (flags.published.given) {
        if (!flags.profile.empty()) return failure(ErrorCode::Usage, "--profile", "published runs are predicted with the profiles that come with the program; leave it out");
        for (const auto& [flag, value] : {std::pair{"--strategies", &flags.strategies}, {"--models", &flags.models}, {"--local-ranks", &flags.localRanks}, {"--link", &flags.link}, {"--steps", &flags.steps},
                                          {"--samples", &flags.samples}, {"--limit", &flags.limit}, {"--html", &flags.html}, {"--trace-dir", &flags.traceDir}})
            if (!value->empty()) return failure(ErrorCode::Usage, flag, "is for steps that are run here; published ones are chosen with --filter");
        return runPublished(flags.published, flags.output);
    }
    TRY_VOID(refusePublishedFlags(flags.published));
    if (flags.output.wantsCsv()) return failure(ErrorCode::Usage, "--format", "csv is for --published; take text or json");
    if (flags.profile.empty()) return failure(ErrorCode::Usage, "--profile", "name the profile to validate, as 'ringside calibrate --out here.json' wrote it: --profile here.json");
    TRY(StepValidationOptions options, optionsOf(flags));
    TRY(const std::optional<double> limit, limitOf(flags.limit));
    TRY(std::vector<std::string> strategies, listOf("--strategies", flags.strategies));
    TRY(std::vector<std::string> models, listOf("--models", flags.models));
    const bool againstTorch = flags.against == "torch";
    if (againstTorch) TRY_VOID(adaptToTorch(flags, options, strategies, models));
    TRY(const int ranks, rankCount(options.ranks));
    if (options.ranks.localRanks == 0 && ranks > 1) TRY_VOID(joinLaunchedRanks(options.ranks));  // many runs, one meeting
    TRY(const std::vector<ValidationCase> cases, validationCases(strategies, models, ranks));
    TRY(const Json json, readJsonFile(flags.profile));
    TRY(const Profile profile, profileFromJson(JsonCursor(json, flags.profile)));
    if (!flags.anyMachine) {
        Result<void> here = checkEnvironment(profile, calibrationEnvironment(options.ranks.threads, "", RINGSIDE_VERSION));
        if (!here) return badInput(flags.profile, here.error().message + " (--any-machine goes on all the same)");
    }
    if (!flags.asMeasured) options.references = profile.steps;
    TRY(const Catalogs catalogs, Catalogs::builtin());
    ValidationReport report;
    TRY(report.holdout, holdoutFor(flags, profile));

    std::optional<StepValidation> validation;
    {
        Progress progress("validating", 0, cases.size() * static_cast<std::size_t>(options.rounds), flags.output.wantsJson());
        const auto update = [&](std::size_t done, std::size_t) { progress.update(done); };
        if (againstTorch) {
            TRY(validation, validateAgainstTorch(cases, options, catalogs, update));
        } else {
            TRY(validation, validateSteps(cases, options, catalogs, update));
        }
    }
    if (!validation) return 0;  // rank 0 reports
    report.validation = &*validation;
    report.profile = flags.profile;
    report.link = options.ranks.linkBitsPerSecond ? flags.link : options.ranks.localRanks > 0 ? "loopback" : "the launcher's network";
    report.paced = flags.paced;
    report.limit = limit;
    if (!flags.traceDir.empty() && !againstTorch) TRY_VOID(writeTraces(flags.traceDir, *validation));
    if (!flags.html.empty()) {
        const ReportHead head{profile.name, fmt::format("{} rank{} over {}{}", ranks, ranks == 1 ? "" : "s", report.link, flags.paced ? ", paced" : "")};
        TRY_VOID(atomicWriteFile(flags.html, htmlReport(head, *validation, report.holdout)));
    }
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson() ? validationJson(report).dump(2) + "\n" : validationText(report)));
    return limit && summariesOf(validation->rows).all.mape > *limit ? static_cast<int>(ErrorCode::AnswerIsNo) : 0;
}

}  // namespace

void addValidate(CommandLine& line) {
    auto flags = std::make_shared<ValidateFlags>();
    Command command = line.add("validate", "predict steps with a profile, run them here, and compare; or compare with runs that others have published", [flags] { return runValidate(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside validate --profile here.json\n"
        "  ringside validate --profile here.json --local-ranks 2 --strategies naive,ddp:bucket_mb=1,ddp,zero2,fsdp2 --html report.html\n"
        "  ringside validate --profile here-200mbit.json --local-ranks 2 --link 200mbit --rounds 5 --limit 5 --json\n"
        "  ringside validate --profile here-1gbit.json --against torch --local-ranks 2 --link 1gbit\n"
        "  ringside validate --published --filter family=llm-foundry --plot scatter.svg\n"
        "  ringside validate --published mine.json --json\n"
        "A strategy may carry settings, each behind a colon: ddp:bucket_mb=1:grad_accum=2.\n"
        "Exit code 1: the mean absolute error is above --limit. Exit code 3: among others, the profile is of another machine or version.");
    command.option("--profile", flags->profile, "the profile to predict with, measured here", "FILE", "Validation");
    command.option("--strategies", flags->strategies, "with settings, if any (default: single on one rank, else those that average gradients in each step)", "LIST", "Validation");
    command.option("--models", flags->models, "names of validation models, 'single' or 'several' for a list of them, or files: a model or a scenario", "LIST", "Validation");
    command.option("--local-ranks", flags->localRanks, "fork so many ranks (default: what the launcher started, or one)", "N", "Validation");
    command.option("--link", flags->link, "shape the links between local ranks to this rate (needs root): 200mbit, 1gbit", "RATE", "Validation");
    command.option("--rounds", flags->rounds, "how often everything is run; their difference is the noise floor (default: 3)", "N", "Validation");
    command.option("--steps", flags->steps, "measured steps of each run (default: about a second's, from 5 to 40)", "N", "Validation");
    command.option("--warm-up", flags->warmUp, "steps before them that are not measured (default: 1)", "N", "Validation");
    command.flag("--paced", flags->paced, "kernels sleep for as long as the profile says; collectives stay real", "Validation");
    command.choice("--run-on", flags->device, "cpu (oneDNN, Gloo) or cuda (cuBLAS, cuDNN, NCCL)", {"cpu", "cuda"}, "Validation");
    command.choice("--against", flags->against, "what is run: our own executor, or PyTorch where it is installed (DDP, FSDP2, ZeroRedundancyOptimizer on Gloo)", {"executor", "torch"}, "Validation");
    command.option("--threads", flags->threads, "threads of each rank's kernels (default: 1)", "N", "Validation");
    command.option("--samples", flags->samples, "raw samples for the held-out points (default: PROFILE.samples.jsonl, if it is there)", "FILE", "Validation");
    command.option("--limit", flags->limit, "exit code 1 when the mean absolute error is above so many per cent", "PCT", "Validation");
    command.option("--timeout", flags->timeout, "seconds without progress after which a run is ended (default: 60)", "S", "Validation");
    command.flag("--as-measured", flags->asMeasured, "predict for the machine as it was when the profile was measured; else the calibration's steps are run between rounds and tell how fast it is now", "Validation");
    command.flag("--any-machine", flags->anyMachine, "take a profile of another machine or version all the same", "Validation");
    command.option("--html", flags->html, "write a page with tables and both timelines of each row", "FILE", "Output");
    command.option("--trace-dir", flags->traceDir, "write both timelines of each row as Chrome traces into this folder", "DIR", "Output");
    addPublishedFlags(command, flags->published);
    addOutputFlags(command, flags->output, true);
}

}  // namespace ringside
