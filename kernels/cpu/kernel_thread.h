// KernelThread: what the kernels of one stream work with: its team of threads, its scratch memory, its oneDNN stream.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/rotary_tables.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_team.h"
#include "kernels/cpu/vector_loops.h"

namespace ringside {

/// What all streams of a device share.
struct SharedKernelState {
    OneDnn oneDnn;
    RotaryTables rotaryTables;
};

class KernelThread {
public:
    KernelThread(SharedKernelState& sharedState, int threads)
        : loops(vectorLoops()), shared(sharedState), oneDnnStream(sharedState.oneDnn.engine()), team(threads), scratch_(static_cast<std::size_t>(threads)) {}

    /// Of one member of the team.
    Scratch& scratch(int member = 0) { return scratch_[static_cast<std::size_t>(member)]; }

    const VectorLoops& loops;
    SharedKernelState& shared;
    dnnl::stream oneDnnStream;
    ThreadTeam team;

private:
    std::vector<Scratch> scratch_;
};

}  // namespace ringside
