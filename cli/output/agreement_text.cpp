#include "cli/output/agreement_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "cli/output/wrap.h"
#include "model/base/units.h"

namespace ringside {
namespace {

constexpr std::size_t kMostEntries = 10;

std::string left(const std::string& text, std::size_t width) { return text + std::string(columnsOf(text) < width ? width - columnsOf(text) : 0, ' '); }

std::string signedPercent(double share) { return fmt::format("{}{:.1f} %", share < 0 ? "−" : "+", std::abs(share) * 100); }
std::string percent(double share, int digits = 1) { return fmt::format("{:.{}f} %", share * 100, digits); }

std::string right(const std::string& text, std::size_t width) { return std::string(columnsOf(text) < width ? width - columnsOf(text) : 0, ' ') + text; }

std::string groupLine(const AgreementGroup& group) {
    return fmt::format("  {}{}{}{}{}{}{}\n", left(group.name, 28), right(std::to_string(group.entries), 8), right(signedPercent(group.bias), 12), right(percent(group.typical), 12), right(percent(group.spread), 12),
                       right(percent(group.withinOne, 0), 10), right(percent(group.withinTwo, 0), 10));
}

std::string list(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

}  // namespace

std::string agreementText(const ProfileAgreement& agreement, const std::string& a, const std::string& b) {
    std::string text;
    if (agreement.all.entries == 0) {
        text = fmt::format("{} and {} have measured nothing in common\n", a, b);
    } else {
        text = wrapped(fmt::format("{} and {} {}: {} of {} measured entries lie within two of their combined spreads, {} within one (95 and 68 % are what chance leaves)", a, b,
                                   agreement.agree() ? "agree" : "do not agree", percent(agreement.all.withinTwo, 0), formatCount(static_cast<std::int64_t>(agreement.all.entries)), percent(agreement.all.withinOne, 0))) +
               "\n";
    }
    if (!agreement.sameMachine) text += wrapped("They are of different machines or versions, or do not say of which: what they differ by is more than noise.") + "\n";
    if (!agreement.groups.empty()) {
        text += fmt::format("\n  {}{}{}{}{}{}{}\n", left("", 28), right("entries", 8), right("median", 12), right("typical", 12), right("spread", 12), right("within 1", 10), right("within 2", 10));
        for (const AgreementGroup& group : agreement.groups) text += groupLine(group);
        if (agreement.groups.size() > 1) text += groupLine(agreement.all);
    }
    if (!agreement.farthest.empty()) {
        text += "\nFarthest apart, in spreads\n";
        for (std::size_t i = 0; i < std::min(kMostEntries, agreement.farthest.size()); ++i) {
            const ProfileEntry& entry = agreement.farthest[i];
            text += fmt::format("  {}{}{}\n", left(fmt::format("{}, {}", entry.group, entry.what), 74), right(signedPercent(entry.change()), 11), right(fmt::format("{:.1f}", entry.deviations()), 8));
        }
        if (agreement.farthest.size() > kMostEntries) text += fmt::format("  and {} more (--json lists all)\n", agreement.farthest.size() - kMostEntries);
    }
    if (!agreement.withoutSpread.empty()) {
        text += "\nWithout a spread of their own\n";
        for (const ProfileEntry& entry : agreement.withoutSpread) text += fmt::format("  {}{}\n", left(fmt::format("{}, {}", entry.group, entry.what), 74), right(signedPercent(entry.change()), 11));
    }
    for (const auto& [side, names] : {std::pair{&a, &agreement.onlyA}, {&b, &agreement.onlyB}})
        if (!names->empty()) text += "\n" + wrapped(fmt::format("Only in {}: {}", *side, list(*names))) + "\n";
    return text;
}

}  // namespace ringside
