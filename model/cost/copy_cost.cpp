#include "model/cost/copy_cost.h"

#include <fmt/format.h>

namespace ringside {

Result<CopyCost> CopyCost::create(const Device& device, const CopyOptions& options) {
    if (!(options.efficiency > 0 && options.efficiency <= 1) || !(options.fixedUs >= 0) || !(options.hostCopyGbPerS > 0) ||
        !(options.devicesSharingLink >= 1)) {
        return badInput("copy", fmt::format("a copy needs 0 < efficiency ≤ 1, fixed time ≥ 0, host copy rate > 0 and at least one device on "
                                            "the link; found {}, {} µs, {} GB/s, {}",
                                            options.efficiency, options.fixedUs, options.hostCopyGbPerS, options.devicesSharingLink));
    }
    TRY(const double rate, require(device.pcieGbPerS ? device.pcieGbPerS : device.pcieNcclGbPerS, device, "pcie_gb_per_s"));
    CopyCost cost;
    cost.fixedSeconds_ = options.fixedUs * 1e-6;
    cost.pinnedSecondsPerByte_ = options.devicesSharingLink / (rate * 1e9 * options.efficiency);
    // The driver copies into a pinned buffer and sends from there, piece by piece: the thread and the link take turns.
    cost.pageableSecondsPerByte_ = cost.pinnedSecondsPerByte_ + 1 / (options.hostCopyGbPerS * 1e9);
    return cost;
}

double CopyCost::seconds(Bytes bytes, HostMemory memory) const {
    if (bytes <= 0) return 0;
    return fixedSeconds_ + static_cast<double>(bytes) * (memory == HostMemory::Pinned ? pinnedSecondsPerByte_ : pageableSecondsPerByte_);
}

}  // namespace ringside
