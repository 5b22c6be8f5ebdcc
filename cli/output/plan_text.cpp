#include "cli/output/plan_text.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/output/wrap.h"

namespace ringside {
namespace {

constexpr std::size_t kMostLosers = 16;

std::string money(double usd) { return usd >= 100 ? "$" + formatCount(std::llround(usd)) : fmt::format("${:.3g}", usd); }

std::string energy(const std::optional<double>& kwh) {
    if (!kwh) return "–";
    return *kwh >= 1e6 ? fmt::format("{:.3g} GWh", *kwh / 1e6) : *kwh >= 1e3 ? fmt::format("{:.3g} MWh", *kwh / 1e3) : fmt::format("{:.3g} kWh", *kwh);
}

std::string days(double d) { return d >= 1 ? fmt::format("{:.3g} days", d) : d >= 1.0 / 24 ? fmt::format("{:.3g} hours", d * 24) : formatSeconds(d * 86400); }

std::string goalWords(const PlanQuery& query, const Plan& plan) {
    std::string words;
    if (query.tokens) words = formatShortCount(*query.tokens) + " tokens";
    else if (query.samples) words = formatShortCount(*query.samples) + " samples";
    else if (query.steps) words = formatShortCount(*query.steps) + " steps";
    if (query.deadlineDays) words += fmt::format(" in at most {}", days(*query.deadlineDays));
    if (query.tokensPerSecond) words += fmt::format("{}at least {} tokens/s", words.empty() ? "" : " at ", formatCount(std::llround(*query.tokensPerSecond)));
    if (words.empty()) words = "no amount given";
    return fmt::format("{} ({} parameters): {}", plan.model, formatShortCount(static_cast<double>(plan.parameters)), words);
}

/// "21.3 days, $32,600 ($109 per billion tokens), 4.2 MWh"
std::string priceWords(const Candidate& c, const Plan& plan) {
    std::vector<std::string> parts;
    if (c.days) parts.push_back(days(*c.days));
    else parts.push_back(formatSeconds(c.stepSeconds) + " a step");
    const std::string unit = plan.tokensPerSample > 0 ? money(c.usdPerSample / static_cast<double>(plan.tokensPerSample) * 1e9) + " per billion tokens"
                                                      : money(c.usdPerSample * 1e6) + " per million samples";
    parts.push_back(c.totalUsd ? fmt::format("{} ({})", money(*c.totalUsd), unit) : unit);
    if (c.totalKwh) parts.push_back(energy(c.totalKwh));
    if (c.totalCo2Kg) parts.push_back(fmt::format("{:.3g} t CO2", *c.totalCo2Kg / 1000));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string settings(const Candidate& c) {
    std::string text = c.recompute == Recompute::None ? "" : fmt::format("recompute {}", nameOf(c.recompute));
    for (const auto& knob : c.knobs.items()) {
        if (knob.key() == "gradient_as_bucket_view") continue;  // always the better choice
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", knob.key(), knob.value().is_string() ? knob.value().get<std::string>() : knob.value().dump());
    }
    return text;
}

std::string table(const std::vector<Candidate>& rows, const Plan& plan) {
    const bool total = plan.samples.has_value(), tokens = plan.tokensPerSample > 0;
    std::size_t hardware = 8, strategy = 8;
    for (const Candidate& c : rows) {
        hardware = std::max(hardware, c.hardware.size() + formatCount(c.devices).size() + 3);
        strategy = std::max(strategy, c.strategy.size());
    }
    std::string text = fmt::format("  {:<{}}  {:<{}} {:>9} {:>8} {:>9} {:>7} {:>6} {:>10} {:>10} {:>9}\n", "devices", hardware, "strategy", strategy, "batch", "step",
                                   tokens ? "tokens/s" : "samples/s", "goodput", total ? "days" : "", total ? "total" : "", tokens ? "per 1 B" : "per 1 M", total ? "energy" : "");
    for (const Candidate& c : rows) {
        text += fmt::format("  {:<{}}  {:<{}} {:>9} {:>8} {:>9} {:>7} {:>6} {:>10} {:>10} {:>9}\n", fmt::format("{} × {}", formatCount(c.devices), c.hardware), hardware, c.strategy,
                            strategy, fmt::format("{} × {}", c.microBatch, c.gradAccum), formatSeconds(c.stepSeconds), formatShortCount(tokens ? c.tokensPerSecond : c.samplesPerSecond),
                            fmt::format("{:.1f} %", 100 * c.goodput.goodput), c.days ? fmt::format("{:.3g}", *c.days) : "", c.totalUsd ? money(*c.totalUsd) : "",
                            money(tokens ? c.usdPerSample / static_cast<double>(plan.tokensPerSample) * 1e9 : c.usdPerSample * 1e6), total ? energy(c.totalKwh) : "");
        if (const std::string extra = settings(c); !extra.empty()) text += fmt::format("  {:<{}}    {}\n", "", hardware, extra);
    }
    return text;
}

/// Neighbouring counts of one hardware and strategy that lose for the same kind of reason, as one line; also strategies that
/// are refused for the very same reason.
struct Loser {
    const Rejection *first = nullptr, *last = nullptr, *told = nullptr;  ///< told: whose reason is given, the nearest to winning
    std::vector<std::string> strategies;
};

std::vector<Loser> losers(const Plan& plan) {
    std::vector<const Rejection*> order;
    for (const Rejection& r : plan.rejected) order.push_back(&r);
    std::stable_sort(order.begin(), order.end(), [](const Rejection* a, const Rejection* b) { return std::tie(a->hardware, a->strategy) < std::tie(b->hardware, b->strategy); });
    std::vector<Loser> out;
    for (const Rejection* r : order) {
        if (!out.empty() && out.back().last->hardware == r->hardware && out.back().last->strategy == r->strategy && out.back().last->why == r->why) {
            Loser& loser = out.back();
            loser.last = r;
            const bool nearer = r->why == Rejection::Why::OutOfMemory ? r->lackingBytes < loser.told->lackingBytes
                                : r->candidate                       ? r->candidate->secondsPerSample < loser.told->candidate->secondsPerSample
                                                                     : false;
            if (nearer) loser.told = r;
        } else {
            out.push_back({r, r, r, {r->strategy}});
        }
    }
    std::vector<Loser> merged;
    for (Loser& loser : out) {
        const auto same = std::find_if(merged.begin(), merged.end(), [&](const Loser& other) {
            return loser.told->why == Rejection::Why::Refused && other.told->reason == loser.told->reason && other.first->hardware == loser.first->hardware &&
                   other.first->devices == loser.first->devices && other.last->devices == loser.last->devices;
        });
        if (same == merged.end()) merged.push_back(std::move(loser));
        else same->strategies.push_back(loser.strategies.front());
    }
    return merged;
}

std::string labelOf(const Loser& loser) {
    const std::string counts = loser.first == loser.last ? formatCount(loser.first->devices)
                                                         : fmt::format("{}–{}", formatCount(loser.first->devices), formatCount(loser.last->devices));
    return fmt::format("{} × {}, {}", counts, loser.first->hardware, loser.strategies.size() > 2 ? "any strategy" : fmt::format("{}", fmt::join(loser.strategies, "/")));
}

std::string losersText(const Plan& plan) {
    const std::vector<Loser> all = losers(plan);
    if (all.empty()) return {};
    const std::size_t shown = std::min(all.size(), kMostLosers);
    std::size_t width = 0;
    for (std::size_t i = 0; i < shown; ++i) width = std::max(width, columnsOf(labelOf(all[i])));
    std::string text = "\nWhy the others lose\n";
    for (std::size_t i = 0; i < shown; ++i) {
        const Loser& loser = all[i];
        const std::string at = loser.first == loser.last ? "" : fmt::format("at {}: ", formatCount(loser.told->devices));
        text += fmt::format("  {:<{}}  {}\n", labelOf(loser), width, wrapped(at + loser.told->reason, width + 4));
    }
    if (all.size() > kMostLosers) text += fmt::format("  … and {} more; --json lists them all\n", all.size() - kMostLosers);
    return text;
}

/// Of those that do not fit, the one that comes closest; null if there is none.
const Rejection* leastLacking(const Plan& plan) {
    const Rejection* least = nullptr;
    for (const Rejection& r : plan.rejected)
        if (r.why == Rejection::Why::OutOfMemory && (least == nullptr || r.lackingBytes < least->lackingBytes)) least = &r;
    return least;
}

std::string restsOn(const PlanQuery& query, const Plan& plan) {
    std::vector<std::string> prices;
    for (const HardwareOption& option : query.hardware)
        for (const NodeGroup& group : option.cluster.nodes)
            if (const DevicePrice* price = query.prices.find(group.kind.device.name)) {
                const std::string one = fmt::format("{} ${:.4g} ({}{})", price->device, query.prices.usdPerHour(*price, query.commitment), price->provenance,
                                                    price->date.empty() ? "" : " " + price->date);
                if (std::find(prices.begin(), prices.end(), one) == prices.end()) prices.push_back(one);
            }
    std::string words = fmt::format("{} samples a step ({}); rent per device-hour, {}: {}; one failure in {} device-hours, {} to restart", formatCount(plan.globalBatch),
                                    plan.globalBatchGiven ? "given" : "default by model size", nameOf(query.commitment), fmt::join(prices, ", "),
                                    formatCount(std::llround(query.failures.deviceMtbfHours)), formatSeconds(query.failures.restartSeconds));
    words += fmt::format("; PUE {:.3g}", query.energy.pue);
    return fmt::format("\nRests on    {}\n", wrapped(words, 12));
}

std::string checkLine(const Candidate& c) {
    for (const GoodputPoint& point : c.goodputCheck)
        if (point.intervalSeconds == c.goodput.intervalSeconds)
            return fmt::format("            a checkpoint every {} ({} each); goodput {:.2f} %, simulated {:.2f} %\n", formatSeconds(point.intervalSeconds),
                               formatSeconds(c.goodput.checkpoint.blockingSeconds), 100 * point.closedForm, 100 * point.simulated);
    return {};
}

}  // namespace

std::string predictCommand(const Candidate& candidate) {
    const Json& s = candidate.scenario;
    if (!s.contains("model") || !s["model"].is_string() || (s.contains("cluster") && !s["cluster"].is_string()) || (s.contains("device") && !s["device"].is_string())) return {};
    std::string line = fmt::format("ringside predict --model {}", s["model"].get<std::string>());
    for (const char* key : {"device", "node", "devices", "devices_per_node", "cluster", "network"})
        if (s.contains(key)) {
            std::string flag = key;
            std::replace(flag.begin(), flag.end(), '_', '-');
            line += fmt::format(" --{} {}", flag, s[key].is_string() ? s[key].get<std::string>() : s[key].dump());
        }
    for (const char* section : {"training", "strategy"})
        for (const auto& entry : s[section].items()) {
            const std::string value = entry.value().is_string() ? entry.value().get<std::string>() : entry.value().dump();
            if (entry.key() == "recompute" && value == "none") continue;
            static const std::vector<std::string> flags = {"micro_batch", "global_batch", "seq_len", "precision", "optimizer", "recompute"};
            std::string flag = entry.key();
            std::replace(flag.begin(), flag.end(), '_', '-');
            if (entry.key() == "name") line += fmt::format(" --strategy {}", value);
            else if (std::find(flags.begin(), flags.end(), entry.key()) != flags.end()) line += fmt::format(" --{} {}", flag, value);
            else line += fmt::format(" --set {}.{}={}", section, entry.key(), value);
        }
    return line;
}

std::string planText(const PlanQuery& query, const Plan& plan, bool color) {
    const auto bold = [&](const std::string& text) { return color ? fmt::format("\033[1m{}\033[0m", text) : text; };
    std::string text = goalWords(query, plan) + "\n\n";
    if (!plan.found()) {
        const bool memory = std::all_of(plan.rejected.begin(), plan.rejected.end(), [](const Rejection& r) { return r.why == Rejection::Why::OutOfMemory; });
        text += bold(plan.nearestMiss ? "Nothing tried meets the goal." : memory ? "Nothing tried fits in memory." : "Nothing tried can run.") + "\n";
        if (plan.nearestMiss)
            text += fmt::format("Nearest     {}: {}\n", bold(labelOf(*plan.nearestMiss)), priceWords(*plan.nearestMiss, plan));
        else if (const Rejection* least = memory ? leastLacking(plan) : nullptr)
            text += fmt::format("Nearest     {} × {} with {}: {} of memory lacking\n", formatCount(least->devices), least->hardware, least->strategy, formatBytes(least->lackingBytes));
    } else if (plan.pareto.size() == 1) {
        text += fmt::format("Best        {}: {}\n{}", bold(labelOf(plan.fastest())), priceWords(plan.fastest(), plan), checkLine(plan.fastest()));
    } else {
        text += fmt::format("Cheapest    {}: {}\n{}", bold(labelOf(plan.cheapest())), priceWords(plan.cheapest(), plan), checkLine(plan.cheapest()));
        text += fmt::format("Fastest     {}: {}\n{}", bold(labelOf(plan.fastest())), priceWords(plan.fastest(), plan), checkLine(plan.fastest()));
    }
    const Candidate* shown = plan.found() ? &plan.cheapest() : plan.nearestMiss ? &*plan.nearestMiss : nullptr;
    if (plan.found()) text += "\nThe front: nothing tried is both faster and cheaper\n" + table(plan.pareto, plan);
    else if (shown != nullptr) text += "\n" + table({*shown}, plan);
    text += losersText(plan);
    text += restsOn(query, plan);
    for (const std::string& warning : plan.warnings) text += fmt::format("Note        {}\n", wrapped(warning, 12));
    if (shown != nullptr)
        if (const std::string command = predictCommand(*shown); !command.empty()) text += fmt::format("\nLook closer: {}\n", command);
    return text;
}

}  // namespace ringside
