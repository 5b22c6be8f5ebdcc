// ringside calibrate: measures this machine and writes its profile.
#include <charconv>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "calibrate/execute/local_scenario.h"
#include "calibrate/fit/import_samples.h"
#include "calibrate/measure/calibration.h"
#include "calibrate/ranks/rank_env.h"
#include "cli/command.h"
#include "cli/commands/from_published.h"
#include "cli/commands/numbers.h"
#include "cli/output/progress.h"
#include "model/cost/measured_collectives.h"
#include "traces/export/atomic_file.h"

namespace ringside {
namespace {

struct CalibrateFlags {
    OutputFlags output;
    std::string out, base, localRanks, link, timeout = "120", threads = "1", samples, port;
    std::vector<std::string> ncclTests, torchTraces;
    FromPublishedFlags published;
    bool quick = false, thorough = false, trial = false, fresh = false, collectivesOnly = false;
};

std::string linkNameOf(double bitsPerSecond) {
    return bitsPerSecond >= 1e9 ? fmt::format("{:g}gbit", bitsPerSecond / 1e9) : fmt::format("{:g}mbit", bitsPerSecond / 1e6);
}

Result<std::optional<Profile>> baseOf(const CalibrateFlags& flags) {
    if (flags.base.empty()) return std::optional<Profile>();
    TRY(const Json json, readJsonFile(flags.base));
    TRY(Profile profile, profileFromJson(JsonCursor(json, flags.base)));
    return std::optional(std::move(profile));
}

/// Before a minute of measuring: whether the profile can be written there.
Result<void> checkWritable(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return failure(ErrorCode::RuntimeFailure, path, "is a directory; name a file in it");
    if (!std::filesystem::is_directory(folder, ignored)) return failure(ErrorCode::RuntimeFailure, path, fmt::format("there is no directory {}; make it first", folder.string()));
    if (::access(folder.c_str(), W_OK) != 0) return failure(ErrorCode::RuntimeFailure, path, fmt::format("the directory {} cannot be written to; choose another", folder.string()));
    return {};
}

/// A reader of another tool's text does not know the file.
template <class T>
Result<T> ofFile(const std::string& path, Result<T> read) {
    if (read || read.error().place.find(path) != std::string::npos) return read;
    Error error = read.error();
    error.place = path;
    return tl::unexpected<Error>(std::move(error));
}

/// Tables from other tools instead of measurements of our own.
Result<int> importInto(const CalibrateFlags& flags, std::optional<Profile> base) {
    if (!base) return failure(ErrorCode::Usage, "--from-nccl-tests", "measurements of other tools complete a profile; give the one to complete with --base FILE");
    std::string said;
    ImportOptions options;
    options.link = flags.link;
    for (const std::string& path : flags.ncclTests) {
        TRY(const NcclTestsTable table, ofFile(path, readNcclTests(path)));
        TRY(const ImportReport report, importNcclTests(*base, table, options));
        said += fmt::format("{}: {} points of collectives\n", path, report.collectivePoints);
        for (const std::string& note : report.notes) said += fmt::format("  {}\n", note);
    }
    for (const std::string& path : flags.torchTraces) {
        TRY(const ProfiledKernels kernels, ofFile(path, readTorchProfile(path)));
        TRY(const ImportReport report, importTorchProfile(*base, kernels, options));
        said += fmt::format("{}: {} shapes of products, {} points of collectives\n", path, report.gemmShapes, report.collectivePoints);
        for (const std::string& note : report.notes) said += fmt::format("  {}\n", note);
    }
    TRY_VOID(atomicWriteFile(flags.out, toJson(*base).dump(2) + "\n"));
    TRY_VOID(writeOutput(flags.output, said + fmt::format("Wrote {}\n", flags.out)));
    return 0;
}

Json summary(const CalibrateFlags& flags, const Calibration& calibration, const std::string& samples) {
    return {{"format", "ringside-calibration"}, {"version", 1}, {"profile", flags.out}, {"samples", samples}, {"measured_series", calibration.measured}, {"reused_series", calibration.reused},
            {"noise", calibration.noise}, {"kernels", calibration.profile.kernels.size()}, {"collectives", calibration.profile.collectives.size()}, {"notes", calibration.notes}};
}

Result<int> runCalibrate(const CalibrateFlags& flags) {
    if (flags.quick + flags.thorough + flags.trial > 1) return failure(ErrorCode::Usage, flags.quick ? "--quick" : "--thorough", fmt::format("goes without {}; choose one", flags.quick && flags.thorough ? "--thorough" : "--trial"));
    if (flags.published.given) return runFromPublished(flags.published, flags.out, flags.output);
    if (flags.out.empty()) return failure(ErrorCode::Usage, "--out", "name the file to write the profile to: --out here.json");
    TRY(const std::optional<RankEnv> launched, rankEnvOfProcess());
    if (!launched || launched->rank == 0) TRY_VOID(checkWritable(flags.out));
    TRY(const std::optional<Profile> base, baseOf(flags));
    if (!flags.ncclTests.empty() || !flags.torchTraces.empty()) return importInto(flags, base);
    if (flags.collectivesOnly && !base) return failure(ErrorCode::Usage, "--collectives-only", "keeps the kernels of a profile; give it with --base FILE");

    CalibrationOptions options;
    options.effort = flags.trial ? CalibrationEffort::Trial : flags.quick ? CalibrationEffort::Quick : flags.thorough ? CalibrationEffort::Thorough : CalibrationEffort::Normal;
    if (!flags.localRanks.empty()) {
        TRY(const std::int64_t ranks, wholeNumber("--local-ranks", flags.localRanks, 1, 256));
        options.ranks.localRanks = static_cast<int>(ranks);
    }
    TRY(const std::int64_t timeout, wholeNumber("--timeout", flags.timeout, 1, 86'400));
    TRY(const std::int64_t threads, wholeNumber("--threads", flags.threads, 1, 1024));
    if (!flags.port.empty()) {
        TRY(const std::int64_t port, wholeNumber("--port", flags.port, 1, 65'535));
        options.ranks.port = static_cast<int>(port);
    }
    options.ranks.timeout = std::chrono::seconds(timeout);
    options.ranks.threads = static_cast<int>(threads);
    if (!flags.link.empty()) {
        TRY(const double rate, linkRate(flags.link));
        options.ranks.linkBitsPerSecond = rate;
        options.link = linkNameOf(rate);
        if (options.ranks.localRanks == 0) return failure(ErrorCode::Usage, "--link", "shapes the links between local ranks; give --local-ranks too");
    }
    options.samplesPath = flags.samples.empty() ? flags.out + ".samples.jsonl" : flags.samples;
    options.version = RINGSIDE_VERSION;
    options.fresh = flags.fresh;
    options.base = base ? &*base : nullptr;
    options.collectivesOnly = flags.collectivesOnly;

    Progress progress("calibrating", 0, 1, flags.output.wantsJson());
    TRY(const Calibration calibration, calibrateMachine(options, [&](double share, const std::string& doing) { progress.updateShare(share, doing); }));
    if (calibration.profile.device.empty()) return 0;  // rank 0 reports
    TRY_VOID(atomicWriteFile(flags.out, toJson(calibration.profile).dump(2) + "\n"));
    if (flags.output.wantsJson()) {
        TRY_VOID(writeOutput(flags.output, summary(flags, calibration, options.samplesPath).dump(2) + "\n"));
        return 0;
    }
    std::string text = fmt::format("{}\n\n", calibration.profile.name);
    text += fmt::format("  kernels      {} names, {} series measured, {} taken from {}\n", calibration.profile.kernels.size(), calibration.measured, calibration.reused, options.samplesPath);
    text += fmt::format("  collectives  {} curves\n", calibration.profile.collectives.size());
    text += fmt::format("  noise        {:.1f} % (median spread of a kernel's time)\n", calibration.noise * 100);
    for (const auto& [key, value] : calibration.profile.deviceFigures) text += fmt::format("  {:<40} {:.4g}\n", key, value);
    for (const std::string& note : calibration.notes) text += fmt::format("  note: {}\n", note);
    text += fmt::format("\nWrote {}; raw samples are in {}\n", flags.out, options.samplesPath);
    TRY_VOID(writeOutput(flags.output, text));
    return 0;
}

}  // namespace

void addCalibrate(CommandLine& line) {
    auto flags = std::make_shared<CalibrateFlags>();
    Command command = line.add("calibrate", "measure this machine (or a launcher's ranks) and write its profile; or fit profiles to published measurements", [flags] { return runCalibrate(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside calibrate --quick --local-ranks 2 --out here.json\n"
        "  ringside calibrate --collectives-only --base here.json --local-ranks 2 --link 200mbit --out here-200mbit.json\n"
        "  srun --ntasks-per-node 1 ringside calibrate --thorough --out cluster.json\n"
        "  ringside calibrate --from-nccl-tests all_reduce.txt --base h100.json --out h100-measured.json\n"
        "  ringside calibrate --from-published --out model/catalog/published\n"
        "An interrupted calibration goes on from its samples; --fresh measures again. The old profile stays until the new one is whole.");
    command.option("--out", flags->out, "write the profile here", "FILE", "Calibration");
    command.flag("--quick", flags->quick, "below a minute: few shapes, few sizes", "Calibration");
    command.flag("--thorough", flags->thorough, "more shapes, more sizes, more repetitions", "Calibration");
    command.flag("--trial", flags->trial, "a few seconds: shows that it works; its figures are poor", "Calibration");
    command.option("--local-ranks", flags->localRanks, "fork so many ranks, measured together (default: what the launcher started, or one)", "N", "Calibration");
    command.option("--threads", flags->threads, "threads of each rank's kernels (default: 1)", "N", "Calibration");
    command.option("--link", flags->link, "shape the links between local ranks to this rate (needs root): 200mbit, 1gbit", "RATE", "Calibration");
    command.option("--base", flags->base, "profile to start from; what is not measured stays", "FILE", "Calibration");
    command.flag("--collectives-only", flags->collectivesOnly, "keep the kernels of --base", "Calibration");
    command.option("--samples", flags->samples, "raw samples (default: OUT.samples.jsonl)", "FILE", "Calibration");
    command.flag("--fresh", flags->fresh, "measure again what the samples have already", "Calibration");
    command.option("--timeout", flags->timeout, "seconds without progress after which it is ended (default: 120)", "S", "Calibration");
    command.option("--port", flags->port, "of the store through which local ranks meet (default: a free one)", "N", "Calibration");
    command.repeated("--from-nccl-tests", flags->ncclTests, "take collectives from the output of nccl-tests (text or JSON)", "FILE", "Import");
    command.repeated("--from-torch-trace", flags->torchTraces, "take products and collectives from a PyTorch-profiler trace", "FILE", "Import");
    addFromPublishedFlags(command, flags->published);
    addOutputFlags(command, flags->output);
}

}  // namespace ringside
