// Published figures: what a fit on published measurements says about profiles, as data (model/catalog/published/figures.json).
//
// `ringside calibrate --from-published` writes the file and datasheetProfile lays its figures over what the datasheet and the code
// assume. A figure has a scope: "all" devices, one generation ("hopper") or one device ("h100-sxm"); the narrower wins.
// docs/models/published-fit.md; format: docs/reference/published-figures.schema.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/cost/profile.h"
#include "model/hardware/device.h"

namespace ringside {

inline constexpr std::string_view kEveryDevice = "all";

struct PublishedFigure {
    std::string key;        ///< as in `--set profile.KEY`
    std::string scope;      ///< kEveryDevice, a generation or a device
    Figure figure;
    std::int64_t rows = 0;  ///< measurements that speak for it; 0: the prior

    bool operator==(const PublishedFigure&) const = default;
};

/// A constant of NCCL's real time (CollectiveConstant), by its key.
struct PublishedConstant {
    std::string key;
    double value = 0, relativeSpread = 0;

    bool operator==(const PublishedConstant&) const = default;
};

struct PublishedFigures {
    std::vector<PublishedFigure> figures;
    std::vector<PublishedConstant> collectives;  ///< constants that are left out have their neutral value

    bool operator==(const PublishedFigures&) const = default;
};

/// What the program ships. Parsed once.
const PublishedFigures& shippedFigures();

/// "volta", "ampere", …: the name of a generation as a scope.
std::string generationScope(const Device& device);

/// Lays every figure whose scope holds the device over the profile, the narrower last. A figure of an arithmetic type that the
/// profile does not hold is passed over.
void layOver(Profile& profile, const Device& device, const std::vector<PublishedFigure>& figures);

/// The profile of a device with these figures in the place of the shipped ones; with none of them it is what a fit starts from.
Profile datasheetProfile(const Device& device, const PublishedFigures& figures);

/// "figures" and "collectives" of a file. Errors (bad input) name the place: an unknown key, a value out of the key's range.
Result<PublishedFigures> publishedFiguresFromJson(const JsonCursor& cursor);
/// The inverse: an object with "figures" and "collectives".
Json toJson(const PublishedFigures& figures);

}  // namespace ringside
