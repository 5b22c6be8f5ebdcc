#include "calibrate/ranks/rank_env.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace ringside {
namespace {

/// An empty variable counts as unset, as in most launchers.
std::optional<std::string> valueOf(const EnvLookup& lookup, std::string_view name) {
    std::optional<std::string> value = lookup(name);
    if (value && value->empty()) return std::nullopt;
    return value;
}

Result<int> parseNumber(std::string_view name, const std::string& text, int low, int high) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < low || number > high)
        return badInput(std::string(name), fmt::format("found '{}', expected a whole number from {} to {}", text, low, high));
    return number;
}

constexpr int kMostRanks = 1'000'000;

struct Launcher {
    std::string_view name, rank, size, localRank, localSize, howTo;
};
constexpr Launcher kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "start the program with torchrun, or unset them all to run alone"};
constexpr Launcher kOpenMpi = {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                               "start the program with mpirun, or unset them all to run alone"};
constexpr Launcher kSlurm = {"SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "start the program with srun, or unset them all to run alone"};

/// SLURM says it for all nodes in one list.
Result<int> localSizeOf(const EnvLookup& lookup, const Launcher& launcher, const std::string& text) {
    if (launcher.name != kSlurm.name) return parseNumber(launcher.localSize, text, 1, kMostRanks);
    const std::optional<std::string> id = valueOf(lookup, "SLURM_NODEID");
    if (!id) return 0;
    TRY(const int node, parseNumber("SLURM_NODEID", *id, 0, kMostRanks));
    Result<int> tasks = tasksOfNode(text, node);
    if (!tasks) return badInput(std::string(launcher.localSize), tasks.error().message);
    return tasks;
}

/// Rank, size, local rank and local size. REQUIRES: at least one of rank and size is set.
Result<RankEnv> whoAmI(const EnvLookup& lookup, const Launcher& launcher) {
    const std::optional<std::string> rank = valueOf(lookup, launcher.rank), size = valueOf(lookup, launcher.size);
    if (!rank || !size) {
        const bool missesRank = !rank;
        return badInput(std::string(missesRank ? launcher.rank : launcher.size),
                        fmt::format("is not set, but {}={} is: {} sets both; {}", missesRank ? launcher.size : launcher.rank,
                                    missesRank ? *size : *rank, launcher.name, launcher.howTo));
    }
    RankEnv env;
    env.launcher = launcher.name;
    TRY(env.size, parseNumber(launcher.size, *size, 1, kMostRanks));
    TRY(env.rank, parseNumber(launcher.rank, *rank, 0, kMostRanks));
    if (env.rank >= env.size) {
        return badInput(std::string(launcher.rank), fmt::format("found {}, but {}={} has ranks 0 to {} only; check how the program was started",
                                                                env.rank, launcher.size, env.size, env.size - 1));
    }
    if (const std::optional<std::string> local = valueOf(lookup, launcher.localRank)) {
        TRY(env.localRank, parseNumber(launcher.localRank, *local, 0, kMostRanks));
        if (env.localRank > env.rank) {
            return badInput(std::string(launcher.localRank), fmt::format("found {}, but {}={}: a rank on this machine is never above the rank of all",
                                                                         env.localRank, launcher.rank, env.rank));
        }
        if (const std::optional<std::string> localSize = valueOf(lookup, launcher.localSize)) {
            TRY(env.localSize, localSizeOf(lookup, launcher, *localSize));
        }
        if (env.localSize > 0 && env.localRank >= env.localSize) {
            return badInput(std::string(launcher.localRank), fmt::format("found {}, but {} says that this machine has {} ranks; check how the program was started",
                                                                         env.localRank, launcher.localSize, env.localSize));
        }
    }
    return env;
}

/// MASTER_ADDR and MASTER_PORT, where they are set.
Result<void> readMaster(const EnvLookup& lookup, RankEnv& env) {
    if (const std::optional<std::string> address = valueOf(lookup, "MASTER_ADDR")) env.masterAddress = *address;
    if (const std::optional<std::string> port = valueOf(lookup, "MASTER_PORT")) {
        TRY(env.masterPort, parseNumber("MASTER_PORT", *port, 1, 65535));
    }
    return {};
}

Result<RankEnv> fromTorchrun(const EnvLookup& lookup) {
    TRY(RankEnv env, whoAmI(lookup, kTorchrun));
    TRY_VOID(readMaster(lookup, env));
    if (env.size > 1 && env.masterAddress.empty()) {
        return badInput("MASTER_ADDR", fmt::format("is not set, but RANK={} of WORLD_SIZE={} is: set it to the machine of rank 0 (and MASTER_PORT to a "
                                                   "free port there), or start the program with torchrun",
                                                   env.rank, env.size));
    }
    if (env.masterAddress.empty()) env.masterAddress = "127.0.0.1";
    // torchrun's own agent listens at MASTER_PORT: another one, which all ranks can work out.
    if (valueOf(lookup, "TORCHELASTIC_USE_AGENT_STORE") == "True") env.masterPort = (env.masterPort < 20000 ? 20000 : 10000) + env.masterPort % 10000;
    return env;
}

Result<RankEnv> fromOpenMpi(const EnvLookup& lookup) {
    TRY(RankEnv env, whoAmI(lookup, kOpenMpi));
    const std::optional<std::string> localSize = valueOf(lookup, "OMPI_COMM_WORLD_LOCAL_SIZE");
    if (env.size == 1 || (localSize && *localSize == std::to_string(env.size))) env.masterAddress = "127.0.0.1";
    TRY_VOID(readMaster(lookup, env));
    if (env.masterAddress.empty()) {
        return badInput("MASTER_ADDR", "is not set, and Open MPI does not say on which machine rank 0 runs: "
                                       "start with mpirun -x MASTER_ADDR=<the first host>");
    }
    return env;
}

Result<RankEnv> fromSlurm(const EnvLookup& lookup) {
    TRY(RankEnv env, whoAmI(lookup, kSlurm));
    // Two jobs may share a machine: each has a port of its own, which all its ranks can work out.
    if (const std::optional<std::string> job = valueOf(lookup, "SLURM_JOB_ID")) {
        std::uint64_t number = 0;
        std::from_chars(job->data(), job->data() + job->size(), number);
        env.masterPort = static_cast<int>(20000 + number % 10000);
    }
    TRY_VOID(readMaster(lookup, env));
    if (!env.masterAddress.empty()) return env;
    for (const std::string_view name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
        const std::optional<std::string> hosts = valueOf(lookup, name);
        if (!hosts) continue;
        Result<std::string> first = firstHostOf(*hosts);
        if (!first) return badInput(std::string(name), first.error().message);
        env.masterAddress = *first;
        return env;
    }
    if (const std::optional<std::string> address = valueOf(lookup, "SLURM_LAUNCH_NODE_IPADDR")) env.masterAddress = *address;
    else if (env.size == 1) env.masterAddress = "127.0.0.1";
    else {
        return badInput("SLURM_JOB_NODELIST", "is not set, and neither is SLURM_LAUNCH_NODE_IPADDR: set MASTER_ADDR to the machine of rank 0, "
                                              "or start the program with srun");
    }
    return env;
}

}  // namespace

Result<std::string> firstHostOf(std::string_view hostList) {
    std::string host;
    for (std::size_t i = 0; i < hostList.size() && hostList[i] != ','; ++i) {
        if (hostList[i] != '[') {
            host += hostList[i];
            continue;
        }
        const std::size_t close = hostList.find(']', i);
        const std::size_t end = hostList.find_first_of(",-]", i + 1);
        if (close == std::string_view::npos || end == i + 1)
            return badInput("", fmt::format("found '{}', expected a host list such as node[01-04,07] with closed brackets", hostList));
        host += hostList.substr(i + 1, end - i - 1);
        i = close;
    }
    if (host.empty()) return badInput("", fmt::format("found '{}', expected a host list such as node[01-04,07]", hostList));
    return host;
}

Result<int> tasksOfNode(std::string_view tasksPerNode, int node) {
    const std::string list(tasksPerNode);
    int nodes = 0;
    for (std::size_t at = 0; at < list.size();) {
        int tasks = 0, times = 1, length = 0;
        if (std::sscanf(list.c_str() + at, "%d%n", &tasks, &length) != 1 || tasks < 1) break;
        at += static_cast<std::size_t>(length);
        if (at < list.size() && list[at] == '(') {
            length = 0;
            if (std::sscanf(list.c_str() + at, "(x%d)%n", &times, &length) != 1 || length == 0 || times < 1) break;
            at += static_cast<std::size_t>(length);
        }
        nodes += std::min(times, kMostRanks);
        if (node < nodes) return tasks;
        if (at < list.size() && list[at++] != ',') break;
    }
    return badInput("", fmt::format("found '{}', expected the tasks of each node such as 4(x2),1, of node {} too", list, node));
}

Result<std::optional<RankEnv>> rankEnvFrom(const EnvLookup& lookup) {
    const auto isSet = [&](std::string_view name) { return valueOf(lookup, name).has_value(); };
    if (isSet(kTorchrun.rank) || isSet(kTorchrun.size)) {
        TRY(RankEnv env, fromTorchrun(lookup));
        return env;
    }
    if (isSet(kOpenMpi.rank) || isSet(kOpenMpi.size)) {
        TRY(RankEnv env, fromOpenMpi(lookup));
        return env;
    }
    // A batch script has SLURM_PROCID=0 and the job's SLURM_NTASKS too, but is one process: only srun gives a step.
    const bool batchScript = isSet("SLURM_JOB_ID") && !isSet("SLURM_STEP_ID") && !isSet("SLURM_STEPID");
    if (isSet(kSlurm.rank) && !batchScript) {
        TRY(RankEnv env, fromSlurm(lookup));
        return env;
    }
    return std::optional<RankEnv>();
}

Result<std::optional<RankEnv>> rankEnvOfProcess() {
    return rankEnvFrom([](std::string_view name) -> std::optional<std::string> {
        const char* value = std::getenv(std::string(name).c_str());
        if (value == nullptr) return std::nullopt;
        return std::string(value);
    });
}

}  // namespace ringside
