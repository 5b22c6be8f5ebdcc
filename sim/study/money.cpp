#include "sim/study/money.h"

#include <fmt/format.h>

namespace ringside {

Result<double> clusterUsdPerHour(const Cluster& cluster, const PriceCatalog& prices, Commitment commitment) {
    double usd = 0;
    for (const NodeGroup& group : cluster.nodes) {
        const std::string& device = group.kind.device.name;
        const DevicePrice* price = prices.find(device);
        if (price == nullptr)
            return badInput("--price", fmt::format("no price is known for {}; give what an hour of one costs: --price {}=USD, or a file with --prices", device, device));
        usd += static_cast<double>(group.count * group.kind.devices) * prices.usdPerHour(*price, commitment);
    }
    return usd;
}

}  // namespace ringside
