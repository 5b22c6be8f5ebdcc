// NCCL real time: how long the pair that NCCL picked takes. The tuner only ranks pairs; its times leave out the call itself and take
// hops, links and pipelines to be better than they are.
//
// Formulas and sources: docs/models/nccl-achieved.md.
#pragma once

#include "model/base/units.h"
#include "model/cost/nccl_achieved.h"
#include "model/cost/nccl_topology.h"

namespace ringside::nccl {

/// One pair's real time in terms of the tuner's estimate. Computed once per communicator.
struct AchievedTerms {
    double latencyUs = 0, plateauLatencyUs = 0;
    double transferFactor = 1;                    ///< on the tuner's transfer time
    double rampUs = 0;                            ///< per √MiB
    double unevenUsPerByte = 0;                   ///< of the first unevenBytes
    Bytes unevenBytes = 0;
    double smallFactor = 1;                       ///< instead of transferFactor, below smallBytes
    Bytes smallBytes = 0;
    bool fills = true;                            ///< the pipeline's fill counts as the tuner's formula has it
};

/// What the tuner says of the pair: latency (from the plateau on: plateauLatencyUs) and µs per byte.
struct TunerFigures {
    double latencyUs = 0, plateauLatencyUs = 0, usPerByte = 0;
};
AchievedTerms achievedTerms(const Topology& t, const NcclAchieved& achieved, CollectiveOp op, CollectiveAlgorithm algorithm,
                            CollectiveProtocol protocol, const TunerFigures& tuner);
/// `linearUs`: the tuner's transfer time without fill; `fillUs`: that of the fill. O(1).
double achievedTransferUs(const AchievedTerms& terms, Bytes bytes, double linearUs, double fillUs);

}  // namespace ringside::nccl
