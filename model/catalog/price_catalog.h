// PriceCatalog: what a device costs per hour, from prices.json and from what the user gives over it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"

namespace ringside {

enum class Commitment : std::uint8_t { OnDemand, Reserved };
std::string_view nameOf(Commitment commitment);  ///< "on-demand", "reserved"

/// USD for one device and hour, its share of the node included.
struct DevicePrice {
    std::string device;
    double onDemandUsd = 0;
    std::optional<double> reservedUsd;  ///< empty: the catalogue's usual share of the on-demand price
    std::string provenance;             ///< "published", "assumed" or "given" (by the user)
    std::string source, date;
};

class PriceCatalog {
public:
    /// prices.json as compiled in.
    static Result<PriceCatalog> builtin();

    const std::vector<DevicePrice>& prices() const { return prices_; }
    /// Null where nobody has said a price. The name is the device's own, not an alias.
    const DevicePrice* find(std::string_view device) const;
    double usdPerHour(const DevicePrice& price, Commitment commitment) const;
    double reservedFraction() const { return reservedFraction_; }

    /// Lays a file over the catalogue: the catalogue's own format, or simply {"h100-sxm": 2.5, …}. Its prices count as "given"
    /// unless it says otherwise.
    Result<void> overlay(const JsonCursor& json);
    /// One price, "given": on demand and reserved alike.
    void set(const std::string& device, double usdPerHour, const std::string& source);

private:
    void put(DevicePrice price);

    std::vector<DevicePrice> prices_;
    double reservedFraction_ = 1;
};

constexpr double kMaxUsdPerHour = 1e6;

}  // namespace ringside
