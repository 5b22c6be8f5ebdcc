#include "model/cost/published_figures.h"

#include <fmt/format.h>

#include "model/base/check.h"
#include "model/base/names.h"
#include "model/cost/published_figures_text.h"

namespace ringside {
namespace {

/// Later wins: all, then the generation, then the device itself.
constexpr int kScopes = 3;
bool holds(const std::string& scope, int width, const Device& device) {
    return scope == (width == 0 ? std::string(kEveryDevice) : width == 1 ? generationScope(device) : device.name);
}

Result<PublishedFigure> figureFromJson(const JsonCursor& cursor) {
    TRY_VOID(cursor.keys({"key", "scope", "value", "relative_spread", "provenance", "source", "rows"}));
    PublishedFigure out;
    TRY(const JsonCursor key, cursor.at("key"));
    TRY(out.key, key.asString());
    TRY(const JsonCursor scope, cursor.at("scope"));
    TRY(out.scope, scope.asString());
    TRY(const JsonCursor value, cursor.at("value"));
    TRY(out.figure.value, value.asNumber(0, 1e18));
    Profile scratch;  // knows keys and ranges
    if (const auto set = setProfileFigure(scratch, out.key, out.figure.value); !set) return value.error(set.error().message);
    TRY(out.figure.relativeSpread, cursor.numberOr("relative_spread", 0, 0, 10));
    TRY(const std::string provenance, cursor.stringOr("provenance", std::string(nameOf(Provenance::Published))));
    for (const Provenance p : {Provenance::Assumed, Provenance::Datasheet, Provenance::Published, Provenance::Measured})
        if (nameOf(p) == provenance) out.figure.provenance = p;
    TRY(out.figure.source, cursor.stringOr("source", {}));
    TRY(out.rows, cursor.intOr("rows", 0, 0, std::int64_t{1} << 40));
    return out;
}

}  // namespace

std::string generationScope(const Device& device) { return std::string(nameOf(device.arch)); }

void layOver(Profile& profile, const Device& device, const std::vector<PublishedFigure>& figures) {
    for (int width = 0; width < kScopes; ++width)
        for (const PublishedFigure& one : figures) {
            if (!holds(one.scope, width, device)) continue;
            if (Figure* known = findProfileFigure(profile, one.key)) *known = one.figure;
        }
}

const PublishedFigures& shippedFigures() {
    static const PublishedFigures shipped = [] {
        const std::string place = "catalogue published/figures.json";
        const auto json = parseJson(publishedFiguresText(), place);
        CHECK(json.has_value());  // tests read the file
        auto figures = publishedFiguresFromJson(JsonCursor(*json, place));
        CHECK(figures.has_value());
        return std::move(*figures);
    }();
    return shipped;
}

Profile datasheetProfile(const Device& device) { return datasheetProfile(device, shippedFigures()); }

Result<PublishedFigures> publishedFiguresFromJson(const JsonCursor& cursor) {
    PublishedFigures out;
    TRY(const JsonCursor figures, cursor.at("figures"));
    TRY(const std::vector<JsonCursor> rows, figures.items());
    for (const JsonCursor& row : rows) {
        TRY(PublishedFigure figure, figureFromJson(row));
        out.figures.push_back(std::move(figure));
    }
    TRY(const JsonCursor collectives, cursor.at("collectives"));
    TRY(const std::vector<JsonCursor> constants, collectives.items());
    for (const JsonCursor& one : constants) {
        TRY_VOID(one.keys({"key", "value", "relative_spread"}));
        PublishedConstant constant;
        TRY(const JsonCursor key, one.at("key"));
        TRY(constant.key, key.asString());
        TRY(const JsonCursor value, one.at("value"));
        TRY(constant.value, value.asNumber(0, 1e9));
        TRY(constant.relativeSpread, one.numberOr("relative_spread", 0, 0, 10));
        out.collectives.push_back(std::move(constant));
    }
    return out;
}

Json toJson(const PublishedFigures& figures) {
    Json json{{"figures", Json::array()}, {"collectives", Json::array()}};
    for (const PublishedFigure& one : figures.figures) {
        Json row{{"key", one.key}, {"scope", one.scope}, {"value", one.figure.value}, {"relative_spread", one.figure.relativeSpread},
                 {"provenance", std::string(nameOf(one.figure.provenance))}, {"rows", one.rows}};
        if (!one.figure.source.empty()) row["source"] = one.figure.source;
        json["figures"].push_back(std::move(row));
    }
    for (const PublishedConstant& one : figures.collectives) json["collectives"].push_back({{"key", one.key}, {"value", one.value}, {"relative_spread", one.relativeSpread}});
    return json;
}

}  // namespace ringside
