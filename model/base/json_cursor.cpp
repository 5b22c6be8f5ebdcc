#include "model/base/json_cursor.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "model/base/names.h"

namespace ringside {
namespace {

std::string shown(const Json& value) {
    std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 37) + "...";
    return text;
}

// Nobody nests a description this deep; a file that does would overflow the stack of whatever walks it.
constexpr int kMaxDepth = 64;

struct LineColumn {
    std::size_t line = 1, column = 1;
};

LineColumn locate(std::string_view text, std::size_t byte) {
    LineColumn at;
    for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
        if (text[i] == '\n') {
            ++at.line;
            at.column = 1;
        } else {
            ++at.column;
        }
    }
    return at;
}

}  // namespace

Result<Json> parseJson(std::string_view text, const std::string& source) {
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return badInput(source, "this is empty; expected a JSON document");
    // Duplicate keys would silently keep the last one: refuse them, per object depth.
    std::vector<std::set<std::string>> seen;
    std::string duplicate;
    bool tooDeep = false;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth > kMaxDepth) {
            tooDeep = true;
            return false;  // drops the value, so that nothing deep is ever built
        }
        if (event == Json::parse_event_t::object_start) seen.emplace_back();
        if (event == Json::parse_event_t::object_end && !seen.empty()) seen.pop_back();
        if (event == Json::parse_event_t::key && !seen.empty() && !seen.back().insert(parsed.get<std::string>()).second && duplicate.empty())
            duplicate = parsed.get<std::string>();
        return true;
    };
    try {
        Json value = Json::parse(text, watch);
        if (tooDeep) return badInput(source, fmt::format("values are nested more than {} deep; this is not a file that Ringside reads", kMaxDepth));
        if (!duplicate.empty()) return badInput(source, fmt::format("the key '{}' appears twice in one object; keep one of them", duplicate));
        return value;
    } catch (const Json::parse_error& error) {
        const LineColumn at = locate(text, error.byte);
        std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
        if (const auto colon = what.find(": "); colon != std::string::npos) what = what.substr(colon + 2);
        for (char& c : what)  // it quotes what it read, which may be anything
            if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
        return badInput(fmt::format("{}:{}:{}", source, at.line, at.column), "not valid JSON: " + what);
    } catch (const Json::exception& error) {
        return badInput(source, std::string("not valid JSON: ") + error.what());
    }
}

Result<Json> readJsonFile(const std::string& path) {
    std::string text;
    if (path == "-") {
        text.assign(std::istreambuf_iterator<char>(std::cin), {});
        return parseJson(text, "standard input");
    }
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return badInput(path, "this is a directory; expected a JSON file");
    std::ifstream file(path, std::ios::binary);
    if (!file) return badInput(path, "cannot open this file; check the path and its permissions");
    std::ostringstream content;
    content << file.rdbuf();
    if (file.bad() || (content.fail() && file.peek() != EOF)) return badInput(path, "reading this file failed; check its permissions and its disk");
    return parseJson(content.str(), path);
}

bool JsonCursor::has(std::string_view key) const {
    if (!value_->is_object()) return false;
    const auto it = value_->find(std::string(key));
    return it != value_->end() && !it->is_null();
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    return JsonCursor(value_->at(std::string(key)), source_, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
}

Result<JsonCursor> JsonCursor::at(std::string_view key) const {
    if (!value_->is_object()) return error(fmt::format("expected an object with the key '{}', found {}", key, shown(*value_)));
    if (auto found = find(key)) return *found;
    return error(fmt::format("the key '{}' is missing", key));
}

Result<std::vector<JsonCursor>> JsonCursor::items() const {
    if (!value_->is_array()) return error(fmt::format("expected an array, found {}", shown(*value_)));
    std::vector<JsonCursor> out;
    for (std::size_t i = 0; i < value_->size(); ++i) out.emplace_back((*value_)[i], source_, fmt::format("{}[{}]", path_, i));
    return out;
}

Result<void> JsonCursor::keys(const std::vector<std::string>& known) const {
    if (!value_->is_object()) return error(fmt::format("expected an object, found {}", shown(*value_)));
    for (const auto& entry : value_->items()) {
        bool isKnown = false;
        for (const std::string& name : known) isKnown = isKnown || name == entry.key();
        if (!isKnown) return error(unknownName("key", entry.key(), known));
    }
    return {};
}

Result<std::int64_t> JsonCursor::asInt(std::int64_t min, std::int64_t max) const {
    if (!value_->is_number()) return error(fmt::format("expected a whole number, found {}", shown(*value_)));
    if (value_->is_number_float()) {
        const double number = value_->get<double>();
        if (!std::isfinite(number) || number != std::floor(number) || std::fabs(number) > 9.0e15)
            return error(fmt::format("expected a whole number, found {}", shown(*value_)));
    } else if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
        return error(fmt::format("{} is too large; expected {} to {}", shown(*value_), min, max));
    }
    const std::int64_t number = value_->is_number_float() ? static_cast<std::int64_t>(value_->get<double>()) : value_->get<std::int64_t>();
    if (number < min || number > max) return error(fmt::format("{} is out of range; expected {} to {}", number, min, max));
    return number;
}

Result<double> JsonCursor::asNumber(double min, double max) const {
    if (!value_->is_number()) return error(fmt::format("expected a number, found {}", shown(*value_)));
    const double number = value_->get<double>();
    if (!std::isfinite(number) || number < min || number > max) return error(fmt::format("{} is out of range; expected {:g} to {:g}", number, min, max));
    return number;
}

Result<bool> JsonCursor::asBool() const {
    if (!value_->is_boolean()) return error(fmt::format("expected true or false, found {}", shown(*value_)));
    return value_->get<bool>();
}

Result<std::string> JsonCursor::asString() const {
    if (!value_->is_string()) return error(fmt::format("expected a string, found {}", shown(*value_)));
    return value_->get<std::string>();
}

Result<std::int64_t> JsonCursor::intOr(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max) const {
    const auto found = find(key);
    return found ? found->asInt(min, max) : Result<std::int64_t>(fallback);
}
Result<double> JsonCursor::numberOr(std::string_view key, double fallback, double min, double max) const {
    const auto found = find(key);
    return found ? found->asNumber(min, max) : Result<double>(fallback);
}
Result<bool> JsonCursor::boolOr(std::string_view key, bool fallback) const {
    const auto found = find(key);
    return found ? found->asBool() : Result<bool>(fallback);
}
Result<std::string> JsonCursor::stringOr(std::string_view key, std::string fallback) const {
    const auto found = find(key);
    return found ? found->asString() : Result<std::string>(std::move(fallback));
}

}  // namespace ringside
