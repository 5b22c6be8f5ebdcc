#include "calibrate/published/folds.h"

#include <algorithm>
#include <map>

#include "model/base/check.h"
#include "model/catalog/embedded_catalog.h"

namespace ringside {

bool Fold::holdsOut(const std::string& repository) const { return std::find(heldOut.begin(), heldOut.end(), repository) != heldOut.end(); }

std::vector<Fold> dealFolds(const std::vector<PublishedRecord>& records, std::size_t folds) {
    CHECK(folds >= 2);
    std::map<std::string, std::size_t> count;
    for (const PublishedRecord& record : records) ++count[record.repository];
    std::vector<std::pair<std::string, std::size_t>> sources(count.begin(), count.end());
    std::stable_sort(sources.begin(), sources.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<Fold> out(std::min(folds, sources.size()));
    std::vector<std::size_t> filled(out.size(), 0);
    for (const auto& [repository, number] : sources) {
        const auto least = static_cast<std::size_t>(std::min_element(filled.begin(), filled.end()) - filled.begin());
        filled[least] += number;
        out[least].heldOut.push_back(repository);
    }
    return out;
}

const std::vector<Fold>& shippedFolds() {
    static const std::vector<Fold> shipped = [] {
        for (const EmbeddedFile& file : embeddedCatalog()) {
            if (file.path != "published/folds.json") continue;
            const std::string place = "catalogue " + std::string(file.path);
            const auto json = parseJson(file.text, place);
            CHECK(json.has_value());  // tests read the file
            auto folds = foldsFromJson(JsonCursor(*json, place));
            CHECK(folds.has_value());
            return std::move(*folds);
        }
        return std::vector<Fold>();
    }();
    return shipped;
}

const PublishedFigures& heldOutFigures(const std::string& repository, const std::vector<Fold>& folds) {
    for (const Fold& fold : folds)
        if (fold.holdsOut(repository)) return fold.figures;
    return shippedFigures();
}

Result<std::vector<Fold>> foldsFromJson(const JsonCursor& cursor) {
    TRY(const JsonCursor list, cursor.at("folds"));
    TRY(const std::vector<JsonCursor> items, list.items());
    std::vector<Fold> folds;
    for (const JsonCursor& item : items) {
        Fold fold;
        TRY(const JsonCursor held, item.at("held_out"));
        TRY(const std::vector<JsonCursor> names, held.items());
        for (const JsonCursor& name : names) {
            TRY(std::string text, name.asString());
            fold.heldOut.push_back(std::move(text));
        }
        TRY(fold.figures, publishedFiguresFromJson(item));
        folds.push_back(std::move(fold));
    }
    return folds;
}

Json toJson(const std::vector<Fold>& folds) {
    Json list = Json::array();
    for (const Fold& fold : folds) {
        Json item = toJson(fold.figures);
        item["held_out"] = fold.heldOut;
        list.push_back(std::move(item));
    }
    return list;
}

}  // namespace ringside
