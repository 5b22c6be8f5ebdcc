// RankSession: a sweep spread over the ranks that mpirun started. The one seam to MPI: mpi_sweep.cpp is built where Open MPI
// was found, mpi_missing.cpp where it was not.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sim/study/sweep.h"

namespace ringside {

/// Whether mpirun started this process.
bool underMpirun();

class RankSession {
public:
    /// Fails (missing capability) in a build without MPI. REQUIRES: underMpirun(). Once per process.
    static Result<std::unique_ptr<RankSession>> start();
    /// Waits for the other ranks; where an exception leaves, it ends them instead.
    virtual ~RankSession() = default;

    virtual int rank() const = 0;
    /// Rank 0's text, on every rank. Called by all.
    virtual std::string broadcast(const std::string& text) = 0;
    /// Cores for this rank, when the user asked for none: those it is bound to, or its share of the machine's.
    virtual int defaultThreads() const = 0;
    /// Rank 0: runSweep with the rows spread over all ranks; the same rows in the same order.
    virtual Result<std::size_t> lead(const SweepPlan& plan, std::size_t first, const SweepOptions& options,
                                     const std::function<Result<void>(const SweepBlock&)>& take) = 0;
    /// Every other rank: makes rows until rank 0 has had enough.
    virtual void serve(const SweepPlan& plan, const SweepOptions& options) = 0;
    /// Ends all ranks at once with this exit code: for a rank that cannot do its part, as the others would wait for it.
    [[noreturn]] virtual void abandon(int exitCode) = 0;
};

}  // namespace ringside
