#include "cli/output/comparison_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/output/wrap.h"
#include "model/base/units.h"

namespace ringside {
namespace {

constexpr std::size_t kMostKeys = 12, kMostItems = 8;

std::string left(const std::string& text, std::size_t width) {
    return text + std::string(columnsOf(text) < width ? width - columnsOf(text) : 0, ' ');
}
std::string right(const std::string& text, std::size_t width) {
    return std::string(columnsOf(text) < width ? width - columnsOf(text) : 0, ' ') + text;
}

std::string shortened(std::string text, std::size_t width) { return columnsOf(text) <= width ? text : text.substr(0, width - 1) + "…"; }

enum class Unit { Seconds, Bytes, Rate, Share };

std::string said(double value, Unit unit) {
    switch (unit) {
        case Unit::Seconds:
            return formatSeconds(value);
        case Unit::Bytes:
            return formatBytes(static_cast<Bytes>(std::llround(value)));
        case Unit::Rate:
            return formatShortCount(value);
        case Unit::Share:
            return fmt::format("{:.1f} %", value * 100);
    }
    return {};
}

std::string differenceText(const ComparedFigure& figure, Unit unit) {
    const double difference = figure.difference();
    if (!figure.a || !figure.b) return "–";
    if (difference == 0) return "=";
    return (difference < 0 ? "−" : "+") +
           (unit == Unit::Share ? fmt::format("{:.1f} pp", std::fabs(difference) * 100) : said(std::fabs(difference), unit));
}

std::string changeText(const ComparedFigure& figure) {
    const auto change = figure.change();
    if (!change || *change == 0) return "";
    if (std::fabs(*change) >= 10) return fmt::format("×{:.3g}", *change + 1);
    const double percent = std::round(std::fabs(*change) * 1000) / 10;
    return fmt::format("{}{:.1f} %", percent == 0 ? "" : *change < 0 ? "−" : "+", percent);
}

std::string row(const std::string& name, const ComparedFigure& figure, Unit unit) {
    const auto side = [&](const std::optional<double>& value) { return right(value ? said(*value, unit) : "–", 11); };
    return fmt::format("  {}{}  {}  {}  {}\n", left(shortened(name, 44), 44), side(figure.a), side(figure.b), right(differenceText(figure, unit), 11),
                       right(changeText(figure), 9));
}

std::string words(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

struct Headline {
    const char* key;
    const char* name;
    Unit unit;
};
constexpr Headline kHeadlines[] = {{"step_time_s", "step time", Unit::Seconds},
                                   {"samples_per_s", "samples per second", Unit::Rate},
                                   {"tokens_per_s", "tokens per second", Unit::Rate},
                                   {"mfu", "MFU", Unit::Share},
                                   {"hfu", "HFU", Unit::Share},
                                   {"peak_memory_bytes", "memory at its peak", Unit::Bytes},
                                   {"bytes_sent_per_rank", "bytes sent per rank", Unit::Bytes}};

std::string keyValue(const Json& value) {
    return value.is_null() ? "–" : value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A node's device and fabric are dozens of figures that follow from its name: after the name, only how many differ.
std::string keyLines(const std::vector<ChangedKey>& keys) {
    std::string text;
    std::size_t shown = 0, figures = 0, more = 0;
    for (const ChangedKey& key : keys) {
        const bool inCluster =
            key.path.starts_with("cluster.") && !key.path.ends_with(".name") && !key.path.ends_with(".count") && !key.path.ends_with("kind.devices");
        if (inCluster)
            ++figures;
        else if (shown == kMostKeys)
            ++more;
        else {
            text += fmt::format("  {}{}  {}\n", left(shortened(key.path, 44), 44), right(shortened(keyValue(key.a), 26), 26),
                                shortened("→ " + keyValue(key.b), 34));
            ++shown;
        }
    }
    if (figures > 0 && shown > 0)
        text += fmt::format("  and {} figure{} of the hardware\n", figures, figures == 1 ? "" : "s");
    else if (figures > 0)
        for (const ChangedKey& key : keys)
            if (key.path.starts_with("cluster.") && shown++ < kMostKeys)
                text += fmt::format("  {}{}  {}\n", left(shortened(key.path, 44), 44), right(shortened(keyValue(key.a), 26), 26),
                                    shortened("→ " + keyValue(key.b), 34));
    if (more > 0) text += fmt::format("  and {} more (--json lists all)\n", more);
    return text;
}

}  // namespace

std::string comparisonText(const Comparison& comparison, const std::string& a, const std::string& b, bool color) {
    const auto bold = [&](const std::string& text) { return color ? "\033[1m" + text + "\033[0m" : text; };
    std::string text = fmt::format("A  {}\nB  {}\n\n{}\n", a, b, bold(wrapped(comparison.sentence)));
    text +=
        "\nWhat differs\n" + (comparison.scenario.empty() ? std::string("  nothing: both are the same scenario\n") : keyLines(comparison.scenario));

    text += fmt::format("\n{}{}  {}  {}  {}\n", left("What came of it", 46), right("A", 11), right("B", 11), right("B − A", 11), right("change", 9));
    for (const Headline& headline : kHeadlines)
        for (const ComparedFigure& figure : comparison.headline)
            if (figure.name == headline.key && (figure.a || figure.b)) text += row(headline.name, figure, headline.unit);
    text += fmt::format("  {}{}  {}\n", left("verdict", 44), right(words(comparison.verdictA), 11), right(words(comparison.verdictB), 11));

    text += "\nWhere the time goes\n";
    for (const ComparedFigure& figure : comparison.breakdown)
        if (figure.a.value_or(0) > 0 || figure.b.value_or(0) > 0) text += row(words(figure.name), figure, Unit::Seconds);

    std::string path;
    std::size_t items = 0;
    for (const ComparedFigure& figure : comparison.path)
        if (figure.difference() != 0 && items++ < kMostItems) path += row(figure.name, figure, Unit::Seconds);
    if (!path.empty()) text += "\nOn the critical path, what grew or shrank most\n" + path;

    std::string memory;
    for (const ComparedFigure& figure : comparison.memory)
        if (figure.difference() != 0) memory += row(words(figure.name), figure, Unit::Bytes);
    text += "\nMemory at the peak, by category\n" + (memory.empty() ? std::string("  the same\n") : memory);
    return text;
}

}  // namespace ringside
