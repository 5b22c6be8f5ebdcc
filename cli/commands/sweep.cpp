// ringside sweep: a grid or a list of scenarios, a row of figures for each; on all cores, or on all ranks of mpirun.
#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/commands/scenario_flags.h"
#include "cli/mpi/rank_session.h"
#include "cli/output/progress.h"
#include "cli/stop_signals.h"
#include "sim/study/sweep.h"
#include "sim/study/sweep_file.h"

namespace ringside {
namespace {

struct SweepFlags {
    ScenarioFlags scenario;
    std::vector<std::string> axes;
    std::string list, out, format = "jsonl", jobs;
    bool overwrite = false, quiet = false;
};

/// What a sweep needs before its first row. On rank 0, or where there is only one process.
struct Prepared {
    SweepDefinition definition;
    int jobs = 0;
};

Result<Prepared> prepare(const SweepFlags& flags) {
    Prepared prepared;
    if (!flags.jobs.empty()) {
        const auto [end, error] = std::from_chars(flags.jobs.data(), flags.jobs.data() + flags.jobs.size(), prepared.jobs);
        if (error != std::errc() || end != flags.jobs.data() + flags.jobs.size() || prepared.jobs < 1 || prepared.jobs > 4096)
            return badInput("--jobs", fmt::format("'{}' is not a number of threads; expected 1 to 4096", flags.jobs));
    }
    if (flags.out.empty() && flags.overwrite) return failure(ErrorCode::Usage, "--overwrite", "needs --out FILE, the file to start anew");
    TRY(prepared.definition.base, flags.scenario.document());
    prepared.definition.source = flags.scenario.source();
    prepared.definition.axes = flags.axes;
    if (!flags.list.empty()) {
        TRY(prepared.definition.patches, readPatches(flags.list));
    }
    return prepared;
}

/// Where rows go: a file that can be resumed, or standard output.
class Rows {
public:
    static Result<Rows> open(const SweepFlags& flags, const SweepPlan& plan, RowFormat format) {
        Rows rows;
        if (!flags.out.empty() && flags.out != "-") {
            TRY(SweepFile file, SweepFile::open(flags.out, plan.header(format), plan.rows(), flags.overwrite));
            rows.file_ = std::make_unique<SweepFile>(std::move(file));
        } else {
            TRY_VOID(rows.print(plan.header(format)));
        }
        return rows;
    }
    std::size_t there() const { return file_ ? file_->rows() : 0; }
    Result<void> add(const SweepBlock& block) { return file_ ? file_->append(block.text, block.count) : print(block.text); }
    Result<void> flush() { return file_ ? file_->flush() : Result<void>(); }
    bool resumable() const { return file_ != nullptr; }

private:
    static Result<void> print(const std::string& text) { return writeOutput(OutputFlags{}, text); }
    std::unique_ptr<SweepFile> file_;
};

std::string outcomeText(const std::array<std::size_t, kRowOutcomes>& outcomes) {
    static const char* const words[] = {"fit", "tight", "out of memory", "could not be predicted"};
    std::string text;
    for (std::size_t o = 0; o < kRowOutcomes; ++o)
        if (outcomes[o] > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", formatCount(static_cast<std::int64_t>(outcomes[o])), words[o]);
    return text;
}

using Runner = std::function<Result<std::size_t>(std::size_t first, const std::function<Result<void>(const SweepBlock&)>& take)>;

/// Rows from where the file stops to the end, with progress; then what is to be said about them.
Result<int> writeRows(const SweepFlags& flags, const SweepPlan& plan, RowFormat format, const Runner& run) {
    TRY(Rows rows, Rows::open(flags, plan, format));
    const std::size_t there = rows.there();
    std::array<std::size_t, kRowOutcomes> outcomes{};
    std::string firstError;
    Result<std::size_t> done = there;
    {
        Progress progress("rows", there, plan.rows(), flags.quiet);
        done = run(there, [&](const SweepBlock& block) -> Result<void> {
            for (std::size_t o = 0; o < kRowOutcomes; ++o) outcomes[o] += block.outcomes[o];
            if (firstError.empty()) firstError = block.firstError;
            TRY_VOID(rows.add(block));
            progress.update(block.first + block.count);
            return {};
        });
    }
    if (!done) return tl::unexpected<Error>(done.error());
    TRY_VOID(rows.flush());
    if (*done < plan.rows()) {
        std::fprintf(stderr, "ringside: stopped after %s of %s rows; %s\n", formatCount(static_cast<std::int64_t>(*done)).c_str(),
                     formatCount(static_cast<std::int64_t>(plan.rows())).c_str(),
                     rows.resumable() ? fmt::format("{} is valid; the same command goes on from there", flags.out).c_str()
                                      : "use --out FILE to be able to go on");
        return kInterrupted;
    }
    const std::size_t made = *done - there;
    if (rows.resumable() && !flags.quiet) {
        std::string text = fmt::format("{}: {} rows", flags.out, formatCount(static_cast<std::int64_t>(plan.rows())));
        if (there > 0) text += fmt::format(", {} of them from before", formatCount(static_cast<std::int64_t>(there)));
        if (made > 0) text += fmt::format("{}{}", there > 0 ? "; of the new ones " : ": ", outcomeText(outcomes));
        if (!firstError.empty()) text += "\n  first: " + firstError;
        TRY_VOID(writeOutput(OutputFlags{}, text + "\n"));
    }
    const bool allFailed = made > 0 && there == 0 && outcomes[static_cast<std::size_t>(RowOutcome::Failed)] == made;
    if (allFailed) return badInput("", "no row could be predicted; " + firstError);
    return 0;
}

const char* const kProgram = "ringside " RINGSIDE_VERSION;

Result<int> runAlone(const SweepFlags& flags, RowFormat format, const StopSignals& signals) {
    TRY(const Prepared prepared, prepare(flags));
    TRY(const Catalogs catalogs, Catalogs::builtin());
    const auto plan = SweepPlan::create(prepared.definition, kProgram, catalogs);
    if (!plan) return tl::unexpected<Error>(flags.scenario.named(plan.error()));
    const SweepOptions options{format, prepared.jobs, [&] { return signals.came(); }};
    return writeRows(flags, *plan, format, [&](std::size_t first, const auto& take) { return runSweep(*plan, first, options, take); });
}

/// Rank 0 reads and writes files; the others get the plan from it, so that they need none.
Result<int> runOverRanks(const SweepFlags& flags, RowFormat format, const StopSignals& signals) {
    TRY(const auto session, RankSession::start());
    TRY(const Catalogs catalogs, Catalogs::builtin());
    if (session->rank() != 0) {
        const Json job = Json::parse(session->broadcast({}));
        if (job.contains("failed")) return job["failed"].get<int>();  // rank 0 says why
        const auto plan = SweepPlan::create(sweepDefinitionFromJson(job["definition"]), kProgram, catalogs);
        if (!plan) {  // rank 0 could: a file that the scenario names is not on this machine
            std::fprintf(stderr, "ringside: rank %d: %s\n", session->rank(), plan.error().toString().c_str());
            session->abandon(static_cast<int>(plan.error().code));
        }
        const int jobs = job["jobs"].get<int>();
        session->serve(*plan, SweepOptions{format, jobs > 0 ? jobs : session->defaultThreads(), [] { return false; }});
        return 0;
    }
    bool sent = false;
    const auto led = [&]() -> Result<int> {
        TRY(const Prepared prepared, prepare(flags));
        const auto plan = SweepPlan::create(prepared.definition, kProgram, catalogs);
        if (!plan) return tl::unexpected<Error>(flags.scenario.named(plan.error()));
        const SweepOptions options{format, prepared.jobs > 0 ? prepared.jobs : session->defaultThreads(), [&] { return signals.came(); }};
        return writeRows(flags, *plan, format, [&](std::size_t first, const auto& take) {
            session->broadcast(Json{{"definition", toJson(prepared.definition)}, {"jobs", prepared.jobs}}.dump());
            sent = true;
            return session->lead(*plan, first, options, take);
        });
    }();
    if (!sent) session->broadcast(Json{{"failed", led ? *led : static_cast<int>(led.error().code)}}.dump());
    return led;
}

}  // namespace

void addSweep(CommandLine& line) {
    auto flags = std::make_shared<SweepFlags>();
    Command command = line.add("sweep", "a grid or a list of scenarios, a row of figures for each; resumable", [flags] {
        const StopSignals signals;  // before MPI and the threads, which inherit it
        const RowFormat format = flags->format == "csv" ? RowFormat::Csv : RowFormat::Jsonl;
        return underMpirun() ? runOverRanks(*flags, format, signals) : runAlone(*flags, format, signals);
    });
    command.footer(
        "Examples:\n"
        "  ringside sweep --model gpt2 --device a100-80gb-sxm --set devices=8,16,32 --set micro_batch=1,2,4,8 --set bucket_mb=10,25,100 --out "
        "grid.jsonl\n"
        "  ringside sweep scenario.json --set strategy=ddp,naive --set training.recompute=none,full --format csv --out grid.csv\n"
        "The first --set varies slowest. A sweep that was stopped goes on when the same command is given again.\n"
        "mpirun -n 4 ringside sweep … spreads it over ranks; the file is the same.");
    command.repeated("--set", flags->axes, "a key of the scenario and its values: --set devices=8,16 (may be repeated: all combinations)",
                     "KEY=V,V,…", "Sweep");
    command.option("--list", flags->list, "scenarios as patches over the base, a JSON object per line ('-': standard input)", "FILE", "Sweep");
    command.option("-o,--out", flags->out, "append rows to this file, resuming it if it is there (default: standard output)", "FILE", "Output");
    command.choice("--format", flags->format, "jsonl (default) or csv", {"jsonl", "csv"}, "Output");
    command.flag("--overwrite", flags->overwrite, "start the file anew", "Output");
    command.flag("--quiet", flags->quiet, "no progress, no summary", "Output");
    command.option("--jobs", flags->jobs, "threads (default: all cores)", "N", "Sweep");
    flags->scenario.leaveOut("--set");
    flags->scenario.addTo(command);
}

}  // namespace ringside
