// ringside: the command line. Parses, runs one command, turns errors into messages and exit codes.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>


#include "cli/command.h"

namespace {

constexpr int kUsage = 2, kInternal = 70;

int realMain(int argc, char** argv) {
    using namespace ringside;
    CLI::App app{
        "Ringside predicts data-parallel deep-learning training: step time, throughput, memory, and why.\n\n"
        "Examples:\n"
        "  ringside predict --model gpt2-xl --device a100-80gb-sxm --devices 16 --micro-batch 4\n"
        "  ringside collective --op all_reduce --device h100-sxm --devices 8 --sizes 1M:1G",
        "ringside"};
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("ringside ") + RINGSIDE_VERSION);
    app.fallthrough(false);
    Run run;
    addPredict(app, run);
    addMemory(app, run);
    addCollective(app, run);
    addCatalog(app, run);
    addCompletion(app, run);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
        std::fprintf(stderr, "ringside: %s\nRun 'ringside --help' or 'ringside COMMAND --help' for what is possible.\n", error.what());
        return kUsage;
    }
    const Result<int> result = run();
    if (result) return *result;
    std::fprintf(stderr, "ringside: %s\n", result.error().toString().c_str());
    return static_cast<int>(result.error().code);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error message, not a silent death
    try {
        return realMain(argc, argv);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "ringside: out of host memory; ask for less (fewer ranks, fewer layers)\n");
        return 5;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ringside: internal error: %s\nThis is a bug in Ringside; please report it with the command you ran.\n", error.what());
        return kInternal;
    }
}
