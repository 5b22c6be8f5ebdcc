// ringside: the command line. Runs one command, turns errors into messages and exit codes.
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/command.h"
#include "model/base/heap.h"

namespace {

int realMain(int argc, char** argv) {
    using namespace ringside;
    CommandLine line(
        "Ringside predicts data-parallel deep-learning training: step time, throughput, memory, and why.\n\n"
        "Examples:\n"
        "  ringside predict --model gpt2-xl --device a100-80gb-sxm --devices 16 --micro-batch 4\n"
        "  ringside collective --op all_reduce --device h100-sxm --devices 8 --sizes 1M:1G\n",
        "ringside", std::string("ringside ") + RINGSIDE_VERSION);
    addPredict(line);
    addMemory(line);
    addScale(line);
    addSweep(line);
    addCompare(line);
    addCollective(line);
    addCalibrate(line);
    addRun(line);
    addValidate(line);
    addTrace(line);
    addPlan(line);
    addCatalog(line);
    addCompletion(line);
    const Result<int> result = line.run(argc, argv);
    if (result) return *result;
    if (!result.error().message.empty()) std::fprintf(stderr, "ringside: %s\n", result.error().toString().c_str());
    return static_cast<int>(result.error().code);
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int kInternal = 70;
    ringside::keepFreedMemory();
    std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an exit code, not a signal
    try {
        return realMain(argc, argv);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "ringside: out of host memory; ask for less (fewer ranks, fewer layers)\n");
        return static_cast<int>(ringside::ErrorCode::RuntimeFailure);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ringside: internal error: %s\nThis is a bug in Ringside; please report it with the command you ran.\n", error.what());
        return kInternal;
    }
}
