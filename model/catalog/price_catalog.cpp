#include "model/catalog/price_catalog.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/catalog/embedded_catalog.h"

namespace ringside {
namespace {

Result<DevicePrice> readPrice(const JsonCursor& json) {
    TRY_VOID(json.keys({"device", "on_demand_usd_per_hour", "reserved_usd_per_hour", "provenance", "source", "date"}));
    DevicePrice price;
    TRY(const JsonCursor device, json.at("device"));
    TRY(price.device, device.asString());
    TRY(const JsonCursor onDemand, json.at("on_demand_usd_per_hour"));
    TRY(price.onDemandUsd, onDemand.asNumber(0, kMaxUsdPerHour));
    if (const auto reserved = json.find("reserved_usd_per_hour")) {
        TRY(const double usd, reserved->asNumber(0, kMaxUsdPerHour));
        price.reservedUsd = usd;
    }
    TRY(price.provenance, json.stringOr("provenance", "given"));
    if (price.provenance != "published" && price.provenance != "assumed" && price.provenance != "given")
        return json.find("provenance")->error(fmt::format("expected \"published\", \"assumed\" or \"given\", found \"{}\"", price.provenance));
    TRY(price.source, json.stringOr("source", ""));
    TRY(price.date, json.stringOr("date", ""));
    return price;
}

}  // namespace

std::string_view nameOf(Commitment commitment) { return commitment == Commitment::OnDemand ? "on-demand" : "reserved"; }

Result<PriceCatalog> PriceCatalog::builtin() {
    PriceCatalog catalog;
    for (const EmbeddedFile& file : embeddedCatalog()) {
        if (file.path != "prices.json") continue;
        TRY(const Json json, parseJson(file.text, "catalog/prices.json"));
        TRY_VOID(catalog.overlay(JsonCursor(json, "catalog/prices.json")));
    }
    return catalog;
}

const DevicePrice* PriceCatalog::find(std::string_view device) const {
    const auto found = std::find_if(prices_.begin(), prices_.end(), [&](const DevicePrice& price) { return price.device == device; });
    return found == prices_.end() ? nullptr : &*found;
}

double PriceCatalog::usdPerHour(const DevicePrice& price, Commitment commitment) const {
    return commitment == Commitment::OnDemand ? price.onDemandUsd : price.reservedUsd.value_or(price.onDemandUsd * reservedFraction_);
}

Result<void> PriceCatalog::overlay(const JsonCursor& json) {
    if (!json.value().is_object()) return json.error("expected an object: {\"h100-sxm\": 2.5, …}, or the format of the catalogue's prices.json");
    if (!json.has("format") && !json.has("prices")) {
        for (const auto& entry : json.value().items()) {
            TRY(const JsonCursor value, json.at(entry.key()));
            TRY(const double usd, value.asNumber(0, kMaxUsdPerHour));
            set(entry.key(), usd, json.place());
        }
        return {};
    }
    TRY_VOID(json.keys({"format", "version", "currency", "notes", "reserved", "prices"}));
    TRY(const std::string format, json.stringOr("format", "ringside-prices"));
    if (format != "ringside-prices") return json.error(fmt::format("expected \"format\": \"ringside-prices\", found \"{}\"", format));
    TRY_VOID(json.intOr("version", 1, 1, 1));
    TRY(const std::string currency, json.stringOr("currency", "USD"));
    if (currency != "USD") return json.find("currency")->error(fmt::format("expected \"USD\", found \"{}\"; convert the prices", currency));
    if (const auto reserved = json.find("reserved")) {
        TRY_VOID(reserved->keys({"fraction_of_on_demand", "provenance", "source", "date"}));
        TRY(const JsonCursor fraction, reserved->at("fraction_of_on_demand"));
        TRY(reservedFraction_, fraction.asNumber(0, 1));
    }
    TRY(const JsonCursor list, json.at("prices"));
    TRY(const auto entries, list.items());
    for (const JsonCursor& entry : entries) {
        TRY(DevicePrice price, readPrice(entry));
        if (price.source.empty()) price.source = entry.place();
        put(std::move(price));
    }
    return {};
}

void PriceCatalog::set(const std::string& device, double usdPerHour, const std::string& source) {
    put({device, usdPerHour, usdPerHour, "given", source, ""});
}

void PriceCatalog::put(DevicePrice price) {
    const auto found = std::find_if(prices_.begin(), prices_.end(), [&](const DevicePrice& other) { return other.device == price.device; });
    if (found == prices_.end()) prices_.push_back(std::move(price));
    else *found = std::move(price);
}

}  // namespace ringside
