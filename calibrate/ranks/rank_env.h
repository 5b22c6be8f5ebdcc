// RankEnv: who am I among the ranks, as the program's launcher says in environment variables.
//
// Known launchers, in this order (the later ones may have started the earlier): torchrun (RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), Open MPI's mpirun (OMPI_COMM_WORLD_*), SLURM's srun (SLURM_*). MASTER_ADDR and MASTER_PORT win over what the last two say.
// At torchrun's MASTER_PORT its agent listens (TORCHELASTIC_USE_AGENT_STORE), so the ranks meet at another that follows from it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/result.h"

namespace ringside {

inline constexpr int kDefaultMasterPort = 29500;  ///< as in PyTorch

struct RankEnv {
    int rank = 0, size = 1;
    int localRank = 0;          ///< on this machine
    int localSize = 0;          ///< ranks on this machine; 0: the launcher does not say
    std::string masterAddress;  ///< where rank 0 serves the store: a name or digits
    int masterPort = kDefaultMasterPort;
    std::string launcher;   ///< "torchrun", "Open MPI", "SLURM", "local"
    int listenSocket = -1;  ///< rank 0 under launchLocalRanks(): the master port, already open
};

/// The value of an environment variable, if it is set.
using EnvLookup = std::function<std::optional<std::string>(std::string_view)>;

/// Nothing when no launcher speaks. Fails (bad input) when one does, but half or in contradiction.
Result<std::optional<RankEnv>> rankEnvFrom(const EnvLookup& lookup);
/// The same over this process's environment.
Result<std::optional<RankEnv>> rankEnvOfProcess();

/// Tasks of one node in SLURM's list for all: "4(x2),1" has 4 on nodes 0 and 1, and 1 on node 2. Fails where the list has no such node.
Result<int> tasksOfNode(std::string_view tasksPerNode, int node);

/// The first host of a SLURM host list: "gpu[07-09,12],login1" gives "gpu07".
Result<std::string> firstHostOf(std::string_view hostList);

}  // namespace ringside
