// ringside collective: one collective over a range of sizes on a cluster, as the table that nccl-tests prints.
#include <algorithm>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/commands/scenario_flags.h"
#include "model/cost/published_collectives.h"
#include "sim/collective/message_cost.h"

namespace ringside {
namespace {

struct CollectiveFlags {
    ScenarioFlags scenario;
    OutputFlags output;
    std::string op = "all_reduce", sizes = "1M:1G", level, backend, ncclVersion, algorithm, protocol;
    bool candidates = false;
};

struct Row {
    Bytes bytes = 0;
    CollectiveCost cost;
    double algbw = 0, busbw = 0;  // GB/s
    std::vector<CollectiveCost> candidates;
};

/// "1M:1G" doubles from one to the other; "25M,1G" lists.
Result<std::vector<Bytes>> parseSizes(const std::string& text) {
    const auto one = [&](const std::string& part) -> Result<Bytes> {
        const Bytes bytes = parseSize(part);
        if (bytes <= 0) return badInput("--sizes", fmt::format("'{}' is not a size; expected a number with K, M or G (powers of 1024), as in 1M:1G or 25M,1G", part));
        if (bytes > (Bytes{1} << 46)) return badInput("--sizes", fmt::format("'{}' is too large; expected at most 64T", part));
        return bytes;
    };
    std::vector<Bytes> sizes;
    if (const std::size_t colon = text.find(':'); colon != std::string::npos) {
        TRY(const Bytes first, one(text.substr(0, colon)));
        TRY(const Bytes last, one(text.substr(colon + 1)));
        if (first > last) return badInput("--sizes", fmt::format("'{}' starts above its end; write the smaller size first", text));
        for (Bytes bytes = first; bytes <= last; bytes *= 2) sizes.push_back(bytes);
        return sizes;
    }
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        TRY(const Bytes bytes, one(text.substr(begin, comma - begin)));
        sizes.push_back(bytes);
        begin = comma + 1;
    }
    return sizes;
}

/// The collective flags are keys of the scenario's "collectives".
Result<Scenario> resolve(const CollectiveFlags& flags, const Catalogs& catalogs) {
    TRY(Json document, flags.scenario.document());
    if (!document.contains("model")) document["model"] = "mlp";  // any: a collective needs none
    const std::pair<const char*, const std::string*> keys[] = {{"level", &flags.level}, {"backend", &flags.backend}, {"nccl_version", &flags.ncclVersion},
                                                               {"algorithm", &flags.algorithm}, {"protocol", &flags.protocol}};
    for (const auto& [key, value] : keys)
        if (!value->empty()) document["collectives"][key] = *value;
    return flags.scenario.resolve(document, catalogs);
}

std::string tableText(const Scenario& scenario, const GroupShape& shape, CollectiveOp op, const std::vector<Row>& rows, bool candidates) {
    const Cluster& cluster = scenario.cluster;
    std::string text = fmt::format("# {} over {} ranks on {} node{} ({}), {}, {} level\n", nameOf(op), formatCount(shape.ranks), formatCount(shape.nodes), shape.nodes == 1 ? "" : "s",
                                   cluster.nodes.front().kind.name,
                                   scenario.pricing.backend == CollectiveBackend::Gloo ? "Gloo"
                                   : scenario.pricing.collectives.nccl.version == NcclVersion::V2_27 ? "NCCL 2.27"
                                                                                                     : "NCCL 2.30",
                                   scenario.pricing.level == CollectiveLevel::Message ? "message" : "closed");
    text += "#       size         time    algbw    busbw  algorithm  protocol\n#        (B)         (us)   (GB/s)   (GB/s)\n";
    for (const Row& row : rows) {
        text += fmt::format("{:>12} {:>12.2f} {:>8.2f} {:>8.2f}  {:<9}  {}\n", row.bytes, row.cost.seconds * 1e6, row.algbw, row.busbw, nameOf(row.cost.algorithm), nameOf(row.cost.protocol));
        if (candidates)
            for (const CollectiveCost& other : row.candidates)
                text += fmt::format("#{:>11} {:>12.2f} {:>8} {:>8}  {:<9}  {}\n", "", other.seconds * 1e6, "", "", nameOf(other.algorithm), nameOf(other.protocol));
    }
    return text;
}

Result<int> runCollective(const CollectiveFlags& flags) {
    TRY(const Catalogs catalogs, Catalogs::builtin());
    const Result<CollectiveOp> known = collectiveOpByName(flags.op);
    if (!known) return badInput("--op", known.error().message);
    const CollectiveOp op = *known;
    TRY(const std::vector<Bytes> sizes, parseSizes(flags.sizes));
    TRY(const Scenario scenario, resolve(flags, catalogs));
    const std::int64_t ranks = scenario.cluster.deviceCount();
    if (ranks < 2) return badInput("command line", "a collective needs at least two ranks; use --devices N with N ≥ 2");
    const GroupShape shape = groupShape(scenario.cluster, {0, 1, ranks});
    CollectiveOptions options = scenario.pricing.collectives;
    const Profile& profile = scenario.profiles[shape.nodeKind];
    options.nccl.bandwidthScale *= profile.collectiveBandwidth.value;
    options.nccl.latencyScale *= profile.collectiveLatency.value;
    options.nccl.achieved = ncclAchieved(profile);
    if (!profile.collectives.empty()) options.measured = std::make_shared<const std::vector<CollectiveCurve>>(profile.collectives);
    TRY(const CollectiveModel model, CollectiveModel::create(scenario.cluster, shape, scenario.pricing.backend, options));

    std::vector<Row> rows;
    for (const Bytes bytes : sizes) {
        Row row;
        row.bytes = bytes;
        if (scenario.pricing.level == CollectiveLevel::Message) {
            TRY(const MessageCost message, messageLevelCost(scenario.cluster, shape, model, op, bytes));
            row.cost = message.cost;
        } else {
            TRY(row.cost, model.checkedCost(op, bytes));
        }
        row.algbw = static_cast<double>(bytes) / row.cost.seconds / 1e9;
        row.busbw = row.algbw * busBandwidthFactor(op, ranks);
        if (flags.candidates) row.candidates = model.candidates(op, bytes);
        rows.push_back(std::move(row));
    }
    std::string text;
    if (flags.output.wantsJson()) {
        Json json;
        json["format"] = "ringside-collective";
        json["version"] = 1;
        json["op"] = nameOf(op);
        json["ranks"] = ranks;
        json["nodes"] = shape.nodes;
        json["cluster"] = toJson(scenario.cluster);
        json["backend"] = nameOf(scenario.pricing.backend);
        json["level"] = scenario.pricing.level == CollectiveLevel::Message ? "message" : "closed";
        json["rows"] = Json::array();
        for (const Row& row : rows) {
            Json out = {{"bytes", row.bytes}, {"time_us", row.cost.seconds * 1e6}, {"algbw_gb_per_s", row.algbw}, {"busbw_gb_per_s", row.busbw},
                        {"algorithm", nameOf(row.cost.algorithm)}, {"protocol", nameOf(row.cost.protocol)}, {"channels", row.cost.channels}};
            for (const CollectiveCost& other : row.candidates)
                out["candidates"].push_back({{"algorithm", nameOf(other.algorithm)}, {"protocol", nameOf(other.protocol)}, {"time_us", other.seconds * 1e6}});
            json["rows"].push_back(std::move(out));
        }
        text = json.dump(2) + "\n";
    } else if (flags.output.wantsCsv()) {
        text = "bytes,time_us,algbw_gb_per_s,busbw_gb_per_s,algorithm,protocol\n";
        for (const Row& row : rows)
            text += fmt::format("{},{:.6g},{:.6g},{:.6g},{},{}\n", row.bytes, row.cost.seconds * 1e6, row.algbw, row.busbw, nameOf(row.cost.algorithm), nameOf(row.cost.protocol));
    } else {
        text = tableText(scenario, shape, op, rows, flags.candidates);
    }
    TRY_VOID(writeOutput(flags.output, text));
    return 0;
}

}  // namespace

void addCollective(CommandLine& line) {
    auto flags = std::make_shared<CollectiveFlags>();
    Command command = line.add("collective", "one collective over a range of sizes, as nccl-tests prints it", [flags] { return runCollective(*flags); });
    command.footer(
        "Examples:\n"
        "  ringside collective --op all_reduce --device h100-sxm --devices 8 --sizes 1M:1G\n"
        "  ringside collective --op all_gather --cluster dgx-a100-2 --sizes 25M,1G --level message --json\n"
        "Sizes are powers of 1024; all_gather and reduce_scatter count the whole buffer, as nccl-tests does.");
    command.option("--op", flags->op, "all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_recv, gather or scatter", "WORD", "Collective");
    command.option("--sizes", flags->sizes, "FIRST:LAST doubling, or a list: 25M,1G (default: 1M:1G)", "SIZES", "Collective");
    command.option("--level", flags->level, "closed (formula) or message (every message over shared links)", "WORD", "Collective");
    command.option("--backend", flags->backend, "nccl or gloo", "WORD", "Collective");
    command.option("--nccl-version", flags->ncclVersion, "2.27 or 2.30", "X.Y", "Collective");
    command.option("--algorithm", flags->algorithm, "force one: ring, tree, nvls, …", "WORD", "Collective");
    command.option("--protocol", flags->protocol, "force one: LL, LL128, Simple", "WORD", "Collective");
    command.flag("--candidates", flags->candidates, "also show what the losing algorithms would take", "Collective");
    flags->scenario.addTo(command, false);
    addOutputFlags(command, flags->output, true);
}

}  // namespace ringside
