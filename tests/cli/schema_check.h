// A small check of a document against a JSON Schema: type, required, properties, additionalProperties, items, enum, const,
// minimum, propertyNames, anyOf, oneOf and local $ref. Other keywords fail the test, so that no rule is skipped in silence.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ringside {

/// What does not fit, each with its place; empty when the document is valid.
std::vector<std::string> schemaFaults(const nlohmann::json& schema, const nlohmann::json& document);

}  // namespace ringside
