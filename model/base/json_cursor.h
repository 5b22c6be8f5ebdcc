// JsonCursor: reading JSON that people wrote, with errors that say file, place, what was found and what was expected.
//
// A cursor is a value plus where it stands ("cluster.json: nodes[1].nics"). Typed getters return Result; `keys` refuses
// keys nobody asked for and names the nearest known one, so that a typo never becomes a default in silence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/base/result.h"

namespace ringside {

using Json = nlohmann::ordered_json;

/// Parses text; the error names `source` with line and column. Duplicate keys are refused.
Result<Json> parseJson(std::string_view text, const std::string& source);
/// Reads and parses a file ("-" is standard input).
Result<Json> readJsonFile(const std::string& path);

class JsonCursor {
public:
    /// Borrows `value`, which must outlive the cursor.
    JsonCursor(const Json& value, std::string source, std::string path = {})
        : value_(&value), source_(std::move(source)), path_(std::move(path)) {}

    const Json& value() const { return *value_; }
    std::string place() const { return path_.empty() ? source_ : source_ + ": " + path_; }
    tl::unexpected<Error> error(std::string message) const { return badInput(place(), std::move(message)); }

    bool has(std::string_view key) const;            ///< present and not null
    Result<JsonCursor> at(std::string_view key) const;  ///< required key
    std::optional<JsonCursor> find(std::string_view key) const;  ///< optional key; null counts as absent
    Result<std::vector<JsonCursor>> items() const;   ///< elements of an array
    /// An object whose keys are all among `known`; the error names the first that is not, and the nearest known one.
    Result<void> keys(const std::vector<std::string>& known) const;

    Result<std::int64_t> asInt(std::int64_t min, std::int64_t max) const;  ///< a whole number (1e9 counts) in [min, max]
    Result<double> asNumber(double min, double max) const;                 ///< finite, in [min, max]
    Result<bool> asBool() const;
    Result<std::string> asString() const;

    // Optional keys with a default.
    Result<std::int64_t> intOr(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max) const;
    Result<double> numberOr(std::string_view key, double fallback, double min, double max) const;
    Result<bool> boolOr(std::string_view key, bool fallback) const;
    Result<std::string> stringOr(std::string_view key, std::string fallback) const;

private:
    const Json* value_;
    std::string source_;
    std::string path_;
};

}  // namespace ringside
