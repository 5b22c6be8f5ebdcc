// Published clusters: a source's words for its machines ("A100-80GB-SXM", "8x200Gb/s HDR InfiniBand per node") as a Cluster of the
// catalogue's devices, node kinds and networks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calibrate/published/records.h"
#include "model/catalog/hardware_catalog.h"
#include "model/hardware/cluster.h"

namespace ringside {

/// The catalogue's name of a device that a source names in its own way; "" if it names none ("not stated").
std::string deviceNameOf(const std::string& gpu);

/// NICs of a node as a source states them: "8x200Gb/s", "1 x 100Gb/s EDR", "1600 Gbps". Nothing where no rate is stated.
std::optional<Nics> nicsOf(const std::string& interconnect, std::int64_t devicesPerNode);

/// What is not stated is the device's usual: node kind, fabric, network. Errors (bad input) say why there is no such cluster; their
/// message alone is a reason to show.
Result<Cluster> clusterOf(const PublishedHardware& hardware, const HardwareCatalog& catalog);

}  // namespace ringside
