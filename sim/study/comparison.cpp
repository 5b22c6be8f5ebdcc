#include "sim/study/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/base/units.h"

namespace ringside {
namespace {

/// Every leaf with its path, in the document's order.
void leavesOf(const Json& value, const std::string& path, std::vector<std::pair<std::string, Json>>& out) {
    if (value.is_object() && !value.empty()) {
        for (const auto& entry : value.items()) leavesOf(entry.value(), path.empty() ? entry.key() : path + "." + entry.key(), out);
    } else if (value.is_array() && !value.empty()) {
        for (std::size_t i = 0; i < value.size(); ++i) leavesOf(value[i], fmt::format("{}[{}]", path, i), out);
    } else {
        out.emplace_back(path, value);
    }
}

std::vector<ChangedKey> changedKeys(const Json& a, const Json& b) {
    std::vector<std::pair<std::string, Json>> left, right;
    leavesOf(a, "", left);
    leavesOf(b, "", right);
    const std::map<std::string, Json> inLeft(left.begin(), left.end()), inRight(right.begin(), right.end());
    std::vector<ChangedKey> changed;
    for (const auto& [path, value] : left) {
        const auto other = inRight.find(path);
        if (other == inRight.end() ? !value.is_null() : other->second != value)
            changed.push_back({path, value, other == inRight.end() ? Json(nullptr) : other->second});
    }
    for (const auto& [path, value] : right)
        if (!inLeft.contains(path) && !value.is_null()) changed.push_back({path, Json(nullptr), value});
    return changed;
}

/// "all_reduce bucket 12" → "all_reduce bucket": which bucket it was depends on how many there are, so they are compared as one.
std::string unnumbered(std::string name) {
    const std::size_t last = name.find_last_not_of("0123456789");
    if (last != std::string::npos && last + 1 < name.size() && last > 0 && name[last] == ' ') name.resize(last);
    return name;
}

/// One result, read with errors that say where.
class Reader {
public:
    Reader(const Json& result, const std::string& source) : root_(result, source) {}

    Result<void> check() const {
        TRY(const std::string format, root_.stringOr("format", ""));
        if (format != "ringside-result")
            return root_.error("expected a result (\"format\": \"ringside-result\"), as `ringside predict --json` prints it");
        for (const char* key : {"scenario", "step_time_s", "throughput", "breakdown_s", "memory", "communication", "critical_path"})
            TRY_VOID(root_.at(key));
        return {};
    }
    /// "memory.peak_device_bytes"; empty for null or absent.
    Result<std::optional<double>> number(const std::string& path) const {
        std::optional<JsonCursor> at = root_;
        for (std::size_t begin = 0; begin <= path.size() && at;) {
            const std::size_t dot = std::min(path.find('.', begin), path.size());
            at = at->find(path.substr(begin, dot - begin));
            begin = dot + 1;
        }
        if (!at) return std::optional<double>();
        TRY(const double value, at->asNumber(-1e300, 1e300));
        return std::optional<double>(value);
    }
    Result<std::vector<std::pair<std::string, double>>> numbers(const JsonCursor& object) const {
        std::vector<std::pair<std::string, double>> all;
        for (const auto& entry : object.value().items()) {
            const auto value = object.find(entry.key());
            if (!value) continue;
            TRY(const double number, value->asNumber(-1e300, 1e300));
            all.emplace_back(entry.key(), number);
        }
        return all;
    }
    Result<std::vector<std::pair<std::string, double>>> section(const std::string& outer, const std::string& inner = {}) const {
        TRY(JsonCursor at, root_.at(outer));
        if (!inner.empty()) {
            TRY(at, at.at(inner));
        }
        return numbers(at);
    }
    Result<std::vector<std::pair<std::string, double>>> pathItems() const {
        TRY(const JsonCursor path, root_.at("critical_path"));
        TRY(const JsonCursor items, path.at("items"));
        TRY(const auto all, items.items());
        std::vector<std::pair<std::string, double>> out;
        for (const JsonCursor& item : all) {
            TRY(std::string name, item.stringOr("name", "?"));
            TRY(const double seconds, item.numberOr("seconds", 0, 0, 1e300));
            name = unnumbered(std::move(name));
            const auto same = std::find_if(out.begin(), out.end(), [&](const auto& other) { return other.first == name; });
            if (same == out.end())
                out.emplace_back(name, seconds);
            else
                same->second += seconds;
        }
        return out;
    }
    Result<std::string> verdict() const { return root_.at("memory")->stringOr("verdict", "?"); }
    const Json& scenario() const { return root_.value()["scenario"]; }

private:
    JsonCursor root_;
};

/// Names of either side in order, with both values; a name that one side lacks counts 0 there.
std::vector<ComparedFigure> joined(const std::vector<std::pair<std::string, double>>& a, const std::vector<std::pair<std::string, double>>& b) {
    std::vector<ComparedFigure> all;
    for (const auto& [name, value] : a) all.push_back({name, value, 0.0});
    for (const auto& [name, value] : b) {
        const auto at = std::find_if(all.begin(), all.end(), [&, wanted = name](const ComparedFigure& figure) { return figure.name == wanted; });
        if (at == all.end())
            all.push_back({name, 0.0, value});
        else
            at->b = value;
    }
    return all;
}

std::string signedSeconds(double seconds) { return fmt::format("{}{}", seconds < 0 ? "−" : "+", formatSeconds(std::fabs(seconds))); }

std::string words(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name == "communication exposed" ? "exposed communication" : name == "host" ? "waiting for the host" : name;
}

std::string sentenceOf(const Comparison& comparison, double batchA, double batchB) {
    const ComparedFigure& step = comparison.headline.front();
    // Steps that do different work are compared by the sample.
    const bool perSample = batchA != batchB && batchA > 0 && batchB > 0;
    const double scaleA = perSample ? 1 / batchA : 1, scaleB = perSample ? 1 / batchB : 1;
    const double timeA = *step.a * scaleA, timeB = *step.b * scaleB, difference = timeB - timeA;
    const char* unit = perSample ? "time per sample" : "step";
    if (timeA == timeB) return fmt::format("A and B have the same {}, {}.", unit, formatSeconds(timeA));
    std::string text = fmt::format("B's {} is {:.1f} % {} ({} against {})", unit, std::fabs(difference) / timeA * 100,
                                   difference < 0 ? "shorter" : "longer", formatSeconds(timeB), formatSeconds(timeA));

    std::vector<std::pair<double, std::string>> parts;
    for (const ComparedFigure& part : comparison.breakdown) {
        if (part.name == "communication_hidden") continue;  // runs beside the others
        const double change = *part.b * scaleB - *part.a * scaleA;
        if (std::fabs(change) >= 0.05 * std::fabs(difference)) parts.emplace_back(change, words(part.name));
    }
    std::stable_sort(parts.begin(), parts.end(), [](const auto& x, const auto& y) { return std::fabs(x.first) > std::fabs(y.first); });
    std::vector<std::string> said;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, parts.size()); ++i)
        said.push_back(fmt::format("{} {}", signedSeconds(parts[i].first), parts[i].second));
    if (!said.empty()) text += fmt::format(": {}", fmt::join(said, ", "));

    const ComparedFigure* most = nullptr;
    double mostChange = 0;
    for (const ComparedFigure& item : comparison.path) {
        const double change = *item.b * scaleB - *item.a * scaleA;
        if (change * difference > 0 && std::fabs(change) > std::fabs(mostChange)) {
            most = &item;
            mostChange = change;
        }
    }
    if (most != nullptr) text += fmt::format("; on the critical path the largest part of it is \"{}\" ({})", most->name, signedSeconds(mostChange));
    text += ".";
    if (perSample)
        text += fmt::format(" The steps do different work: {} samples in A, {} in B.", formatCount(static_cast<std::int64_t>(batchA)),
                            formatCount(static_cast<std::int64_t>(batchB)));
    if (comparison.verdictA != comparison.verdictB) {
        const auto memoryWords = [](const std::string& verdict) {
            return verdict == "out_of_memory" ? std::string("does not fit in memory") : verdict == "tight" ? "is tight in memory" : "fits in memory";
        };
        text += fmt::format(" A {}, B {}.", memoryWords(comparison.verdictA), memoryWords(comparison.verdictB));
    }
    return text;
}

Json toJson(const std::vector<ComparedFigure>& figures) {
    Json json = Json::array();
    const auto valueOf = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
    for (const ComparedFigure& figure : figures)
        json.push_back({{"name", figure.name},
                        {"a", valueOf(figure.a)},
                        {"b", valueOf(figure.b)},
                        {"difference", figure.a && figure.b ? Json(figure.difference()) : Json(nullptr)},
                        {"change", valueOf(figure.change())}});
    return json;
}

}  // namespace

std::optional<double> ComparedFigure::change() const {
    if (!a || !b || *a == 0) return std::nullopt;
    return *b / *a - 1;
}

Result<Comparison> compareResults(const Json& a, const std::string& sourceA, const Json& b, const std::string& sourceB) {
    const Reader left(a, sourceA), right(b, sourceB);
    TRY_VOID(left.check());
    TRY_VOID(right.check());
    Comparison comparison;
    comparison.scenario = changedKeys(left.scenario(), right.scenario());
    for (const auto& [name, path] : {std::pair<const char*, const char*>{"step_time_s", "step_time_s.median"},
                                     {"step_time_p10_s", "step_time_s.p10"},
                                     {"step_time_p90_s", "step_time_s.p90"},
                                     {"samples_per_s", "throughput.samples_per_s"},
                                     {"tokens_per_s", "throughput.tokens_per_s"},
                                     {"mfu", "mfu"},
                                     {"hfu", "hfu"},
                                     {"peak_memory_bytes", "memory.peak_device_bytes"},
                                     {"memory_capacity_bytes", "memory.capacity_bytes"},
                                     {"bytes_sent_per_rank", "communication.bytes_sent_per_rank"}}) {
        ComparedFigure figure{name, {}, {}};
        TRY(figure.a, left.number(path));
        TRY(figure.b, right.number(path));
        if (std::string(name) == "step_time_s" && (!figure.a || !figure.b || *figure.a <= 0 || *figure.b <= 0))
            return badInput(figure.a && *figure.a > 0 ? sourceB : sourceA,
                            "step_time_s.median is missing or not positive; expected a result as `ringside predict --json` prints it");
        comparison.headline.push_back(std::move(figure));
    }
    TRY(const auto breakdownA, left.section("breakdown_s"));
    TRY(const auto breakdownB, right.section("breakdown_s"));
    comparison.breakdown = joined(breakdownA, breakdownB);
    TRY(const auto memoryA, left.section("memory", "by_category"));
    TRY(const auto memoryB, right.section("memory", "by_category"));
    comparison.memory = joined(memoryA, memoryB);
    TRY(const auto pathA, left.pathItems());
    TRY(const auto pathB, right.pathItems());
    comparison.path = joined(pathA, pathB);
    std::stable_sort(comparison.path.begin(), comparison.path.end(),
                     [](const ComparedFigure& x, const ComparedFigure& y) { return std::fabs(x.difference()) > std::fabs(y.difference()); });
    TRY(comparison.verdictA, left.verdict());
    TRY(comparison.verdictB, right.verdict());
    TRY(const auto batchA, left.number("scenario.training.global_batch"));
    TRY(const auto batchB, right.number("scenario.training.global_batch"));
    comparison.sentence = sentenceOf(comparison, batchA.value_or(0), batchB.value_or(0));
    return comparison;
}

Json toJson(const Comparison& comparison) {
    Json json;
    json["format"] = "ringside-comparison";
    json["version"] = 1;
    json["sentence"] = comparison.sentence;
    json["scenario"] = Json::array();
    for (const ChangedKey& key : comparison.scenario) json["scenario"].push_back({{"key", key.path}, {"a", key.a}, {"b", key.b}});
    json["figures"] = toJson(comparison.headline);
    json["breakdown_s"] = toJson(comparison.breakdown);
    json["critical_path_s"] = toJson(comparison.path);
    json["memory_bytes"] = toJson(comparison.memory);
    json["verdict"] = {{"a", comparison.verdictA}, {"b", comparison.verdictB}};
    return json;
}

}  // namespace ringside
