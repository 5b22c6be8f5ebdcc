// Published collectives: the constants of NCCL's real time that public nccl-tests tables give, with their spread.
//
// Few and physical: one value for all devices, or one per GPU generation or fabric; never one per table. `fitCollectives`
// (calibrate/published) makes them from the tables; model/catalog/published/figures.json holds them; docs/models/nccl-achieved.md says what
// each means.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "model/cost/nccl_achieved.h"
#include "model/cost/profile.h"
#include "model/cost/published_figures.h"
#include "model/hardware/device.h"

namespace ringside {

enum class CollectiveConstant : std::size_t {
    CallUs, HopLl, HopLl128, HopSimple,
    LinkVolta, LinkAmpere, LinkHopper, LinkBlackwell,
    IdleStep, RampUs, NvlsStepUs, NvlsHopper, NvlsBlackwell,
    PeerEfficiency, SmallPart, Uneven,
    RcclCallUs, RcclHopUs, RcclLink,
};
inline constexpr std::size_t kCollectiveConstants = 19;

struct CollectiveConstantInfo {
    std::string_view key;
    double value;           ///< as fitted
    double relativeSpread;  ///< one standard deviation, from refits on resampled tables
    double neutral;         ///< what is taken where no table tells: NCCL's own figure, or a round guess
};
using CollectiveConstants = std::array<CollectiveConstantInfo, kCollectiveConstants>;  ///< in the order of CollectiveConstant
/// Those that a fit has left; what it does not name is neutral.
CollectiveConstants collectiveConstants(const PublishedFigures& figures);
/// Those that the program ships.
CollectiveConstants collectiveConstants();

using CollectiveConstantValues = std::array<double, kCollectiveConstants>;
/// The values that the program ships.
CollectiveConstantValues shippedCollectiveConstants();

/// Sets the profile's figures about collectives for a device of that kind.
void setCollectiveFigures(Profile& profile, const Device& device, const CollectiveConstants& constants);
/// The same with the shipped spreads and other values.
void setCollectiveFigures(Profile& profile, const Device& device, const CollectiveConstantValues& values = shippedCollectiveConstants());

/// What a profile says about NCCL, for NcclOptions.
NcclAchieved ncclAchieved(const Profile& profile);

}  // namespace ringside
