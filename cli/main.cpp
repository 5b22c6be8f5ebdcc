// ringside: the command line. Parses, runs one command, turns errors into messages and exit codes.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "cli/command.h"
#include "model/base/names.h"

namespace {

constexpr int kUsage = 2, kInternal = 70;

/// CLI11 says only that a command is missing; say which word was taken for one.
std::string usageMessage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
    using namespace ringside;
    std::vector<std::string> commands;
    for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
    if (argc < 2) return "no command given; expected one of the commands that `ringside --help` lists";
    const std::string first = argv[1];
    const bool isCommand = std::find(commands.begin(), commands.end(), first) != commands.end();
    if (!isCommand && !first.starts_with("-")) return unknownName("command", first, commands);
    if (!isCommand) return error.what();
    // "The following argument was not expected: --modle": name the nearest flag.
    const std::string text = error.what();
    const std::size_t dashes = text.find("expected: --");
    if (dashes == std::string::npos) return text;
    std::string flag = text.substr(dashes + 10);
    flag = flag.substr(0, flag.find_first_of(" ="));
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_subcommand(first)->get_options())
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    return unknownName("flag", flag, flags, "`ringside " + first + " --help` lists them");
}

int realMain(int argc, char** argv) {
    using namespace ringside;
    CLI::App app{
        "Ringside predicts data-parallel deep-learning training: step time, throughput, memory, and why.\n\n"
        "Examples:\n"
        "  ringside predict --model gpt2-xl --device a100-80gb-sxm --devices 16 --micro-batch 4\n"
        "  ringside collective --op all_reduce --device h100-sxm --devices 8 --sizes 1M:1G\n",
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
        std::fprintf(stderr, "ringside: %s\nRun 'ringside --help' or 'ringside COMMAND --help' for what is possible.\n",
                     usageMessage(app, error, argc, argv).c_str());
        return kUsage;
    }
    const Result<int> result = run();
    if (result) return *result;
    if (!result.error().message.empty()) std::fprintf(stderr, "ringside: %s\n", result.error().toString().c_str());
    return static_cast<int>(result.error().code);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an exit code, not a signal
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
