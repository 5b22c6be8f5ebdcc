// Copy cost: how long a copy between host and device memory takes.
//
// Formulas and sources: docs/models/host-copy.md.
#pragma once

#include "model/base/result.h"
#include "model/base/units.h"
#include "model/hardware/device.h"

namespace ringside {

enum class HostMemory : std::uint8_t { Pinned, Pageable };

struct CopyOptions {
    double efficiency = 0.9;        ///< fraction of the PCIe rate that a large pinned copy reaches; 0 < e ≤ 1
    double fixedUs = 8;             ///< of every copy: driver, doorbell, completion
    double hostCopyGbPerS = 8;      ///< one thread copying pageable memory into the driver's pinned staging buffer
    double devicesSharingLink = 1;  ///< devices below one PCIe uplink that copy at once; ≥ 1
};

/// Value type, cheap to copy.
class CopyCost {
public:
    /// Fails (bad input) where the device's PCIe rate is not known or an option is out of range.
    static Result<CopyCost> create(const Device& device, const CopyOptions& options = {});

    /// Either direction. No bytes cost nothing.
    double seconds(Bytes bytes, HostMemory memory = HostMemory::Pinned) const;

private:
    CopyCost() = default;
    double fixedSeconds_ = 0, pinnedSecondsPerByte_ = 0, pageableSecondsPerByte_ = 0;
};

}  // namespace ringside
