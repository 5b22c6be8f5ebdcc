#include <algorithm>

#include <fmt/format.h>

#include "model/base/names.h"
#include "sim/scenario.h"
#include "sim/scenario_keys.h"

namespace ringside {

Result<void> setScenarioKey(Json& document, const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
        return failure(ErrorCode::Usage, "--set", fmt::format("expected key=value, found '{}'", assignment));
    std::string key = assignment.substr(0, equals);
    const std::string text = assignment.substr(equals + 1);
    const Result<Json> parsed = parseJson(text, "--set " + key);
    const Json value = parsed ? *parsed : Json(text);  // a bare word is a string

    const std::vector<std::string> top = keysOfSection("");
    if (key.find('.') == std::string::npos && std::find(top.begin(), top.end(), key) == top.end()) {
        std::vector<std::string> all = top;
        std::string section;
        for (const std::string name : {"training", "strategy", "collectives", "perturbation"}) {
            const std::vector<std::string> keys = keysOfSection(name);
            if (section.empty() && std::find(keys.begin(), keys.end(), key) != keys.end()) section = name;
            all.insert(all.end(), keys.begin(), keys.end());
        }
        if (section.empty()) return badInput("--set", unknownName("key", key, all, "docs/reference/scenario.md lists the keys"));
        key = section + "." + key;
    }
    if (!document.is_null() && !document.is_object()) return badInput("--set", "the scenario must be a JSON object");
    Json* node = &document;
    std::size_t begin = 0;
    while (true) {
        const std::size_t dot = key.find('.', begin);
        const std::string part = key.substr(begin, dot == std::string::npos ? dot : dot - begin);
        if (part.empty()) return failure(ErrorCode::Usage, "--set", fmt::format("'{}' has an empty part", key));
        if (dot == std::string::npos) {
            (*node)[part] = value;
            return {};
        }
        Json& child = (*node)[part];
        if (child.is_string()) child = Json{{"name", child}};  // "device": "a10g" gets room for figures
        if (!child.is_null() && !child.is_object()) return badInput("--set", fmt::format("'{}' is not an object, so '{}' cannot be set in it", part, key));
        if (child.is_null()) child = Json::object();
        node = &child;
        begin = dot + 1;
    }
}

}  // namespace ringside
