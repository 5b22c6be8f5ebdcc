#include "tests/cli/schema_check.h"

#include <set>

namespace ringside {
namespace {

using nlohmann::json;

bool hasType(const json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_number_integer();
    return type == "number" && value.is_number();
}

class Checker {
public:
    explicit Checker(const json& root) : root_(root) {}

    void check(const json& schema, const json& value, const std::string& at, std::vector<std::string>& faults) const {
        static const std::set<std::string> known = {"$schema", "$id", "$ref", "$defs", "title", "description", "default", "examples", "type", "required", "properties",
                                                    "additionalProperties", "items", "enum", "const", "minimum", "exclusiveMinimum", "maximum", "anyOf", "oneOf", "propertyNames", "minItems"};
        if (schema.is_boolean()) {
            if (!schema.get<bool>()) faults.push_back(at + ": is not allowed");
            return;
        }
        for (const auto& entry : schema.items())
            if (!known.contains(entry.key())) faults.push_back(at + ": the check does not know the keyword " + entry.key());
        if (schema.contains("$ref")) check(root_.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1))), value, at, faults);
        if (schema.contains("const") && value != schema["const"]) faults.push_back(at + ": is not " + schema["const"].dump());
        if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) faults.push_back(at + ": " + value.dump() + " is none of the values");
        if (schema.contains("type")) checkType(schema["type"], value, at, faults);
        if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) faults.push_back(at + ": is below the minimum");
        if (schema.contains("exclusiveMinimum") && value.is_number() && value <= schema["exclusiveMinimum"]) faults.push_back(at + ": is not above the minimum");
        if (schema.contains("maximum") && value.is_number() && value > schema["maximum"]) faults.push_back(at + ": is above the maximum");
        if (schema.contains("minItems") && value.is_array() && value.size() < schema["minItems"].get<std::size_t>()) faults.push_back(at + ": has too few items");
        if (schema.contains("anyOf")) checkAny(schema["anyOf"], value, at, faults);
        if (schema.contains("oneOf")) checkOne(schema["oneOf"], value, at, faults);
        if (schema.contains("propertyNames"))
            for (const auto& entry : value.items()) check(schema["propertyNames"], entry.key(), at + "." + entry.key(), faults);
        if (value.is_object()) checkObject(schema, value, at, faults);
        if (value.is_array() && schema.contains("items"))
            for (std::size_t i = 0; i < value.size(); ++i) check(schema["items"], value[i], at + "[" + std::to_string(i) + "]", faults);
    }

private:
    static void checkType(const json& type, const json& value, const std::string& at, std::vector<std::string>& faults) {
        bool fits = false;
        for (const json& one : type.is_array() ? type : json::array({type})) fits = fits || hasType(value, one.get<std::string>());
        if (!fits) faults.push_back(at + ": " + value.dump().substr(0, 60) + " is not of type " + type.dump());
    }
    void checkOne(const json& choices, const json& value, const std::string& at, std::vector<std::string>& faults) const {
        int fitting = 0;
        for (const json& choice : choices) {
            std::vector<std::string> here;
            check(choice, value, at, here);
            fitting += here.empty() ? 1 : 0;
        }
        if (fitting != 1) faults.push_back(at + ": fits " + std::to_string(fitting) + " of the choices instead of one");
    }
    void checkAny(const json& choices, const json& value, const std::string& at, std::vector<std::string>& faults) const {
        for (const json& choice : choices) {
            std::vector<std::string> here;
            check(choice, value, at, here);
            if (here.empty()) return;
        }
        faults.push_back(at + ": fits none of the choices");
    }
    void checkObject(const json& schema, const json& value, const std::string& at, std::vector<std::string>& faults) const {
        for (const json& key : schema.value("required", json::array()))
            if (!value.contains(key.get<std::string>())) faults.push_back(at + ": lacks " + key.get<std::string>());
        const json properties = schema.value("properties", json::object());
        for (const auto& entry : value.items()) {
            const std::string place = at + "." + entry.key();
            if (properties.contains(entry.key())) check(properties[entry.key()], entry.value(), place, faults);
            else if (schema.contains("additionalProperties")) check(schema["additionalProperties"], entry.value(), place, faults);
        }
    }

    const json& root_;
};

}  // namespace

std::vector<std::string> schemaFaults(const json& schema, const json& document) {
    std::vector<std::string> faults;
    Checker(schema).check(schema, document, "$", faults);
    return faults;
}

}  // namespace ringside
