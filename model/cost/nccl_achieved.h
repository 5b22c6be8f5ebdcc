// NCCL achieved: what collectives of a device really reach, relative to the figures of NCCL's tuner.
//
// Meaning, formulas and sources: docs/models/nccl-achieved.md. The figures come from a Profile; calibrate/published fits them.
#pragma once

#include <array>

namespace ringside {

/// What a device's collectives reach, relative to the tuner's figures.
struct NcclAchieved {
    double callUs = 0;                            ///< start and end of the kernel on all ranks: the least a collective takes
    std::array<double, 3> hopFactor{1, 1, 1};     ///< real hop over the tuner's: LL, LL128, Simple
    double linkEfficiency = 1;                    ///< bandwidth within a node over the tuner's
    double networkEfficiency = 1;                 ///< bandwidth between nodes over the tuner's
    double idleStep = 0;                          ///< part of one ring step per round that moves nothing (NVSwitch)
    double rampUs = 0;                            ///< µs per √MiB of the buffer: large transfers reach their rate late (NVSwitch)
    double nvlsStepUs = 0;                        ///< µs per doubling of the ranks that reduce in the switch
    double nvlsEfficiency = 1;                    ///< of the tuner's NVLink rate, in-switch reduction
    double peerUs = 0;                            ///< µs per peer of an all-to-all
    double peerEfficiency = 1;                    ///< of the links, all-to-all
    double smallPartShare = 1;                    ///< of that, while a peer's part is below 1 MiB and goes over few channels (NVSwitch)
    double unevenShare = 1;                       ///< of that, where the ranks are no power of two and load the channels unevenly (NVSwitch)

    bool operator==(const NcclAchieved&) const = default;
};

}  // namespace ringside
