#include <cstdlib>

#include "cli/mpi/rank_session.h"

namespace ringside {

bool underMpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

Result<std::unique_ptr<RankSession>> RankSession::start() {
    return failure(ErrorCode::MissingCapability, "mpirun",
                   "this build has no MPI, so every rank would make every row; install libopenmpi-dev and openmpi-bin and build again, or run "
                   "without mpirun (--jobs uses all cores)");
}

}  // namespace ringside
