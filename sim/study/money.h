// Money: what a job's hours cost (docs/models/money.md).
#pragma once

#include "model/base/result.h"
#include "model/catalog/price_catalog.h"
#include "model/hardware/cluster.h"

namespace ringside {

/// Rent of all devices of the cluster, USD per hour. Error: a device without a price (names the flag that gives one).
Result<double> clusterUsdPerHour(const Cluster& cluster, const PriceCatalog& prices, Commitment commitment);

constexpr double usdFor(double usdPerHour, double seconds) { return usdPerHour * seconds / 3600; }

}  // namespace ringside
