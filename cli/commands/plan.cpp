// ringside plan: which hardware, how many devices and which strategy, for a model and a goal.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output/plan_text.h"
#include "model/base/names.h"
#include "sim/study/plan.h"

namespace ringside {
namespace {

struct PlanFlags {
    OutputFlags output;
    std::string file, model, seqLen, precision, optimizer, network, devicesPerNode, recompute, microBatch;
    std::vector<std::string> assignments, hardware, prices;
    std::string devices, maxDevices, strategies, globalBatch;
    std::string tokens, samples, steps, deadlineDays, targetTokensPerS;
    std::string pricesFile, commitment = "on-demand", pue, co2;
    std::string mtbfHours, restartMinutes, checkpointSeconds, checkpointGbPerS;
    bool asyncCheckpoint = false;
};

std::vector<std::string> splitAtCommas(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        parts.push_back(text.substr(begin, comma - begin));
        begin = comma + 1;
    }
    return parts;
}

/// "300e9", "300B", "1.5T", "2M", "64k".
Result<double> parseNumber(const std::string& text, const std::string& flag, double min, double max) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    const std::string suffix = end;
    const double scale = suffix.empty() ? 1 : suffix == "k" || suffix == "K" ? 1e3 : suffix == "M" ? 1e6 : suffix == "B" || suffix == "G" ? 1e9 : suffix == "T" ? 1e12 : 0;
    value *= scale;
    if (end == text.c_str() || scale == 0 || !std::isfinite(value))
        return badInput(flag, fmt::format("'{}' is not a number; expected one such as 12, 300e9 or 300B", text));
    if (value < min || value > max) return badInput(flag, fmt::format("{} is out of range; expected {:g} to {:g}", text, min, max));
    return value;
}

Result<std::optional<double>> optionalNumber(const std::string& text, const std::string& flag, double min, double max) {
    if (text.empty()) return std::optional<double>();
    TRY(const double value, parseNumber(text, flag, min, max));
    return std::optional<double>(value);
}

Result<std::int64_t> parseCount(const std::string& text, const std::string& flag, double max) {
    TRY(const double value, parseNumber(text, flag, 1, max));
    if (value != std::floor(value)) return badInput(flag, fmt::format("'{}' is not a whole number", text));
    return static_cast<std::int64_t>(value);
}

/// The scenario file with the flags over it. Its hardware counts where --hardware is not given.
Result<Json> baseDocument(PlanFlags& flags) {
    Json document = Json::object();
    if (!flags.file.empty()) {
        TRY(document, readJsonFile(flags.file));
        if (!document.is_object()) return badInput(flags.file, "expected a JSON object (a scenario)");
        if (document.contains("format") && document["format"] == "ringside-result" && document.contains("scenario")) document = Json(document["scenario"]);
        if (!document.is_object()) return badInput(flags.file + ": scenario", "expected a JSON object (a scenario)");
    }
    for (const char* key : {"cluster", "device", "node"}) {
        if (!flags.hardware.empty() || !document.contains(key)) continue;
        const Json& value = document[key];
        if (value.is_string()) flags.hardware.push_back(value.get<std::string>());
        else if (value.is_object() && value.contains("name") && value["name"].is_string()) flags.hardware.push_back(value["name"].get<std::string>());
    }
    const std::pair<const char*, const std::string*> names[] = {{"model", &flags.model}, {"network", &flags.network}};
    for (const auto& [key, value] : names)
        if (!value->empty()) document[key] = *value;
    const std::pair<const char*, const std::string*> keys[] = {{"training.seq_len", &flags.seqLen}, {"training.precision", &flags.precision}, {"training.optimizer", &flags.optimizer},
                                                               {"training.recompute", &flags.recompute}, {"training.micro_batch", &flags.microBatch}, {"devices_per_node", &flags.devicesPerNode}};
    for (const auto& [key, value] : keys)
        if (!value->empty()) TRY_VOID(setScenarioKey(document, std::string(key) + "=" + *value));
    for (const std::string& assignment : flags.assignments) TRY_VOID(setScenarioKey(document, assignment));
    return document;
}

/// Prices by the names people use; a name that nobody here has is a slip.
Result<PriceCatalog> readPrices(const PlanFlags& flags, const PlanQuery& query, const Catalogs& catalogs) {
    TRY(PriceCatalog prices, PriceCatalog::builtin());
    std::vector<std::string> planned;
    for (const HardwareOption& option : query.hardware)
        for (const NodeGroup& group : option.cluster.nodes) planned.push_back(group.kind.device.name);
    const auto deviceNamed = [&](const std::string& name, const std::string& place) -> Result<std::string> {
        if (std::find(planned.begin(), planned.end(), name) != planned.end()) return name;
        const auto device = catalogs.hardware.findDevice(name);
        if (!device) return badInput(place, device.error().message);
        return device->name;
    };
    if (!flags.pricesFile.empty()) {
        TRY(const Json json, readJsonFile(flags.pricesFile));
        PriceCatalog given;
        TRY_VOID(given.overlay(JsonCursor(json, flags.pricesFile)));
        TRY_VOID(prices.overlay(JsonCursor(json, flags.pricesFile)));
        for (const DevicePrice& price : given.prices()) {
            TRY(const std::string device, deviceNamed(price.device, flags.pricesFile));
            if (device != price.device) prices.set(device, given.usdPerHour(price, query.commitment), flags.pricesFile);
        }
    }
    for (const std::string& text : flags.prices) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0) return failure(ErrorCode::Usage, "--price", fmt::format("expected DEVICE=USD, found '{}'", text));
        TRY(const std::string device, deviceNamed(text.substr(0, equals), "--price"));
        TRY(const double usd, parseNumber(text.substr(equals + 1), "--price", 0, kMaxUsdPerHour));
        prices.set(device, usd, "--price");
    }
    return prices;
}

Result<PlanQuery> readQuery(PlanFlags flags, const Catalogs& catalogs) {
    PlanQuery query;
    TRY(query.base, baseDocument(flags));
    if (!flags.file.empty()) query.source = flags.file == "-" ? "standard input" : flags.file;
    CountRequest counts;
    if (!flags.devices.empty())
        for (const std::string& part : splitAtCommas(flags.devices)) {
            TRY(const std::int64_t count, parseCount(part, "--devices", 1 << 20));
            counts.given.push_back(count);
        }
    if (!flags.devices.empty() && !flags.maxDevices.empty()) return failure(ErrorCode::Usage, "--max-devices", "give the counts with --devices or their limit with --max-devices, not both");
    if (!flags.maxDevices.empty()) {
        TRY(counts.most, parseCount(flags.maxDevices, "--max-devices", 1 << 20));
    }
    for (const std::string& list : flags.hardware)
        for (const std::string& name : splitAtCommas(list)) {
            TRY(HardwareOption option, hardwareOption(name, counts, query.base, catalogs));
            query.hardware.push_back(std::move(option));
        }
    if (!flags.strategies.empty()) query.strategies = splitAtCommas(flags.strategies);
    if (!flags.globalBatch.empty()) {
        TRY(const std::int64_t batch, parseCount(flags.globalBatch, "--global-batch", 1e12));
        query.globalBatch = batch;
    }
    TRY(query.tokens, optionalNumber(flags.tokens, "--tokens", 1, 1e18));
    TRY(query.samples, optionalNumber(flags.samples, "--samples", 1, 1e18));
    TRY(query.steps, optionalNumber(flags.steps, "--steps", 1, 1e12));
    TRY(query.deadlineDays, optionalNumber(flags.deadlineDays, "--deadline-days", 1e-6, 1e6));
    TRY(query.tokensPerSecond, optionalNumber(flags.targetTokensPerS, "--target-tokens-per-s", 1e-6, 1e15));
    query.commitment = flags.commitment == "reserved" ? Commitment::Reserved : Commitment::OnDemand;
    TRY(query.prices, readPrices(flags, query, catalogs));
    if (!flags.pue.empty()) {
        TRY(query.energy.pue, parseNumber(flags.pue, "--pue", 1, 10));
    }
    TRY(query.energy.gramsCo2PerKwh, optionalNumber(flags.co2, "--co2-g-per-kwh", 0, 1e4));
    if (!flags.mtbfHours.empty()) {
        TRY(query.failures.deviceMtbfHours, parseNumber(flags.mtbfHours, "--mtbf-hours", 1e-3, 1e12));
    }
    if (!flags.restartMinutes.empty()) {
        TRY(const double minutes, parseNumber(flags.restartMinutes, "--restart-minutes", 0, 1e5));
        query.failures.restartSeconds = minutes * 60;
    }
    TRY(query.checkpoint.seconds, optionalNumber(flags.checkpointSeconds, "--checkpoint-seconds", 0, 1e6));
    TRY(query.checkpoint.gbPerS, optionalNumber(flags.checkpointGbPerS, "--checkpoint-gb-per-s", 1e-6, 1e9));
    query.checkpoint.async = flags.asyncCheckpoint;
    return query;
}

Result<int> runPlan(const PlanFlags& flags) {
    TRY(const Catalogs catalogs, Catalogs::builtin());
    TRY(const PlanQuery query, readQuery(flags, catalogs));
    PlanProgress progress;
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (terminal) progress = [](std::size_t done, std::size_t all) { std::fprintf(stderr, "\rplanning: %zu of %zu", done, all); };
    const Result<Plan> plan = makePlan(query, catalogs, progress);
    if (terminal) std::fprintf(stderr, "\r\033[K");
    if (!plan) return tl::unexpected<Error>(plan.error());
    TRY_VOID(writeOutput(flags.output, flags.output.wantsJson() ? toJson(query, *plan).dump(2) + "\n" : planText(query, *plan, flags.output.wantsColor())));
    return plan->found() ? 0 : static_cast<int>(ErrorCode::AnswerIsNo);
}

}  // namespace

void addPlan(CommandLine& line) {
    auto flags = std::make_shared<PlanFlags>();
    Command command = line.add("plan", "find hardware, device count, strategy and settings: the fastest, the cheapest and what lies between", [flags] { return runPlan(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside plan --model gpt2-xl --tokens 100e9 --deadline-days 30 --hardware h100-sxm,a100-80gb-sxm --max-devices 64\n"
        "  ringside plan --model gpt2 --target-tokens-per-s 1e6 --hardware a100-80gb-sxm --devices 8,16 --price a100-80gb-sxm=1.8 --json\n"
        "Exit code 1: nothing tried meets the goal; the nearest miss is shown.");
    command.option("scenario", flags->file, "scenario file (JSON; '-' reads standard input) for model and training; flags go over it", "FILE", "");
    command.option("--model", flags->model, "model of the catalogue, or path to a Hugging Face config.json", "NAME", "Training");
    command.option("--seq-len", flags->seqLen, "tokens per sample (default: the model's own)", "N", "Training");
    command.option("--global-batch", flags->globalBatch, "samples per step, the same for every candidate (default: by model size)", "N", "Training");
    command.option("--precision", flags->precision, "as for predict", "WORD", "Training");
    command.option("--optimizer", flags->optimizer, "as for predict", "WORD", "Training");
    command.repeated("--set", flags->assignments, "any key of the scenario; what is set is not searched", "KEY=VALUE", "Training");
    command.option("--tokens", flags->tokens, "tokens to train on: 300e9 or 300B", "N", "Goal");
    command.option("--samples", flags->samples, "samples to train on, instead of --tokens", "N", "Goal");
    command.option("--steps", flags->steps, "steps to train, instead of --tokens", "N", "Goal");
    command.option("--deadline-days", flags->deadlineDays, "wall-clock days it may take, failures included", "D", "Goal");
    command.option("--target-tokens-per-s", flags->targetTokensPerS, "tokens per second it must reach", "X", "Goal");
    command.repeated("--hardware", flags->hardware, "devices, node kinds or clusters, separated by commas", "NAMES", "Search");
    command.option("--devices", flags->devices, "device counts to try: 8,16,32", "LIST", "Search");
    command.option("--max-devices", flags->maxDevices, "try doubling counts up to this (default: 1024, or the cluster)", "N", "Search");
    command.option("--strategies", flags->strategies, "strategies to try (default: single, ddp, zero1-3, megatron, fsdp1, fsdp2, hsdp)", "NAMES", "Search");
    command.option("--micro-batch", flags->microBatch, "only this micro-batch (default: powers of two while they fit)", "N", "Search");
    command.option("--recompute", flags->recompute, "only this recompute: none, selective, selective-op or full (default: whichever fits)", "WORD", "Search");
    command.option("--devices-per-node", flags->devicesPerNode, "devices in each node (default: the node kind's)", "N", "Search");
    command.option("--network", flags->network, "network of the catalogue (default: the node kind's usual one)", "NAME", "Search");
    command.repeated("--price", flags->prices, "USD per device-hour: --price h100-sxm=2.5 (may be repeated)", "DEVICE=USD", "Money and energy");
    command.option("--prices", flags->pricesFile, "price file (JSON)", "FILE", "Money and energy");
    command.choice("--commitment", flags->commitment, "on-demand or reserved", {"on-demand", "reserved"}, "Money and energy");
    command.option("--pue", flags->pue, "power usage effectiveness of the facility (default: 1.2)", "X", "Money and energy");
    command.option("--co2-g-per-kwh", flags->co2, "carbon intensity of the grid; without it CO2 is not stated", "X", "Money and energy");
    command.option("--mtbf-hours", flags->mtbfHours, "hours between failures of one device (default: 50,677, Llama 3)", "H", "Failures");
    command.option("--restart-minutes", flags->restartMinutes, "from a failure until training goes on (default: 10)", "M", "Failures");
    command.option("--checkpoint-seconds", flags->checkpointSeconds, "time of a checkpoint (default: its bytes over the storage rate)", "S", "Failures");
    command.option("--checkpoint-gb-per-s", flags->checkpointGbPerS, "storage rate of the job (default: 1 GB/s for each node)", "X", "Failures");
    command.flag("--async-checkpoint", flags->asyncCheckpoint, "training waits only for the copy to host memory", "Failures");
    addOutputFlags(command, flags->output);
}

}  // namespace ringside
