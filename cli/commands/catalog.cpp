// ringside catalog: what has a name.
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "model/base/names.h"
#include "model/catalog/profile_catalog.h"
#include "sim/scenario.h"

namespace ringside {
namespace {

struct CatalogFlags {
    std::string what;
    OutputFlags output;
};

std::string familyOf(const ModelSpec& model) {
    if (std::holds_alternative<ConvNetSpec>(model.architecture)) return "convnet";
    if (std::holds_alternative<MlpSpec>(model.architecture)) return "mlp";
    return std::get<TransformerSpec>(model.architecture).causal ? "decoder" : "encoder";
}

Result<Json> models(const Catalogs& catalogs) {
    Json rows = Json::array();
    for (const ModelSpec& model : catalogs.models.models()) {
        TrainingConfig training;
        TRY(const Workload workload, buildWorkload(model, training));
        Json row = {{"name", model.name}, {"parameters", parameterCount(workload)}, {"family", familyOf(model)}};
        if (const auto* t = std::get_if<TransformerSpec>(&model.architecture)) {
            row["layers"] = t->layers;
            row["hidden"] = t->hidden;
            row["heads"] = t->heads;
            row["kv_heads"] = t->kvHeads;
            row["ffn"] = t->ffn;
            row["vocab"] = t->vocab;
            row["context_length"] = t->contextLength;
            if (t->experts > 0) row["experts"] = t->experts;
        } else {
            row["layers"] = workload.layers.size();
        }
        row["source"] = model.source;
        rows.push_back(std::move(row));
    }
    return rows;
}

Json devices(const Catalogs& catalogs) {
    Json rows = Json::array();
    for (const Device& device : catalogs.hardware.devices()) rows.push_back(toJson(device));
    return rows;
}

Json clusters(const Catalogs& catalogs) {
    Json rows = Json::array();
    for (const Cluster& cluster : catalogs.hardware.clusters()) rows.push_back(toJson(cluster));
    return rows;
}

Json nodes(const Catalogs& catalogs) {
    Json rows = Json::array();
    for (const CatalogNodeKind& entry : catalogs.hardware.nodeKinds()) {
        Json row = toJson(entry.kind);
        row["network"] = entry.network;
        row["source"] = entry.source;
        rows.push_back(std::move(row));
    }
    return rows;
}

Json networks(const Catalogs& catalogs) {
    Json rows = Json::array();
    for (const NamedNetwork& network : catalogs.hardware.networks()) {
        Json row = {{"name", network.spec.name}};
        row["nics"] = toJson(network.nics);
        row["network"] = toJson(network.spec);
        rows.push_back(std::move(row));
    }
    return rows;
}

Json strategyRows() {
    Json rows = Json::array();
    for (const auto& strategy : strategies()) {
        Json row = {{"name", strategy->name()}, {"summary", strategy->summary()}, {"knobs", Json::array()}};
        for (const Knob& knob : strategy->knobs()) row["knobs"].push_back({{"key", knob.key}, {"default", knob.defaultValue}, {"help", knob.help}});
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string orDash(const Json& row, const char* key) {
    if (!row.contains(key) || row[key].is_null()) return "–";
    return row[key].is_string() ? row[key].get<std::string>() : row[key].dump();
}

std::string nicsText(const Json& nics) {
    const auto count = nics.value("count", std::int64_t{0});
    if (count == 0) return "no network between nodes";
    return fmt::format("{} NIC{} of {:g} Gbit/s in each node", count, count == 1 ? "" : "s", nics.value("gbit_per_s", 0.0));
}

std::string text(const std::string& what, const Json& rows) {
    std::string out;
    if (what == "models") {
        out = fmt::format("{:<16} {:>18} {:>7} {:>7} {:>6}  {}\n", "name", "parameters", "layers", "hidden", "heads", "family");
        for (const Json& row : rows)
            out += fmt::format("{:<16} {:>18} {:>7} {:>7} {:>6}  {}\n", row["name"].get<std::string>(), formatCount(row["parameters"].get<std::int64_t>()), orDash(row, "layers"),
                               orDash(row, "hidden"), orDash(row, "heads"), row["family"].get<std::string>());
    } else if (what == "devices") {
        out = fmt::format("{:<16} {:<28} {:>11} {:>10} {:>9} {:>7}\n", "name", "full name", "bf16 TFLOPS", "memory GB", "GB/s", "W");
        for (const Json& row : rows) {
            const Json peaks = row.value("peak_dense_tflops", Json::object());
            out += fmt::format("{:<16} {:<28} {:>11} {:>10} {:>9} {:>7}\n", row["name"].get<std::string>(), orDash(row, "full_name"), orDash(peaks, "bf16"), orDash(row, "memory_gb"),
                               orDash(row, "memory_bandwidth_gb_per_s"), orDash(row, "tdp_w"));
        }
    } else if (what == "strategies") {
        const auto knobLine = [](const std::string& key, const std::string& help, const std::string& fallback) {
            return fmt::format("    {:<33} {} (default: {})\n", key, help, fallback);
        };
        const std::vector<Knob> mesh = meshKnobs();
        const auto isMesh = [&](const Json& knob) { return std::any_of(mesh.begin(), mesh.end(), [&](const Knob& m) { return m.key == knob["key"]; }); };
        std::vector<std::string> combined;
        for (const Json& row : rows) {
            out += fmt::format("{:<26} {}\n", row["name"].get<std::string>(), row["summary"].get<std::string>());
            for (const Json& knob : row["knobs"])
                if (!isMesh(knob)) out += knobLine(knob["key"], knob["help"], knob["default"]);
            if (std::any_of(row["knobs"].begin(), row["knobs"].end(), isMesh)) combined.push_back(row["name"]);
        }
        out += fmt::format("\nThe device mesh, for {} (where a strategy lacks one of these, it says so):\n", fmt::join(combined, ", "));
        for (const Knob& knob : mesh) out += knobLine(knob.key, knob.help, knob.defaultValue);
    } else if (what == "clusters") {
        for (const Json& row : rows) {
            std::string nodesText;
            for (const Json& node : row["nodes"]) {
                if (!nodesText.empty()) nodesText += " + ";
                const Json& kind = node.contains("kind") ? node["kind"] : node;
                const std::string kindName = kind.is_string() ? kind.get<std::string>() : kind.value("name", std::string("?"));
                nodesText += fmt::format("{} × {}", node.value("count", 1), kindName);
            }
            out += fmt::format("{:<26} {}\n", row["name"].get<std::string>(), nodesText);
        }
    } else if (what == "nodes") {
        for (const Json& row : rows) {
            const Json& device = row["device"];
            out += fmt::format("{:<18} {} × {}, {}, network {}\n", row["name"].get<std::string>(), orDash(row, "devices"),
                               device.is_string() ? device.get<std::string>() : device.value("name", std::string("any device")), orDash(row, "fabric"), orDash(row, "network"));
        }
    } else if (what == "networks") {
        for (const Json& row : rows)
            out += fmt::format("{:<18} {}\n", row["name"].get<std::string>(), nicsText(row["nics"]));
    } else {
        for (const Json& row : rows) out += row["name"].get<std::string>() + "\n";
    }
    return out;
}

Result<int> runCatalog(const CatalogFlags& flags) {
    TRY(const Catalogs catalogs, Catalogs::builtin());
    const std::vector<std::string> known = {"models", "devices", "clusters", "nodes", "networks", "strategies", "profiles"};
    Json rows;
    if (flags.what == "models") { TRY(rows, models(catalogs)); }
    else if (flags.what == "devices") rows = devices(catalogs);
    else if (flags.what == "clusters") rows = clusters(catalogs);
    else if (flags.what == "nodes") rows = nodes(catalogs);
    else if (flags.what == "networks") rows = networks(catalogs);
    else if (flags.what == "strategies") rows = strategyRows();
    else if (flags.what == "profiles") {
        rows = Json::array();
        for (const std::string& name : profileNames()) rows.push_back({{"name", name}});
    } else {
        return badInput("catalog", unknownName("list", flags.what, known));
    }
    if (!flags.output.wantsJson()) {
        TRY_VOID(writeOutput(flags.output, text(flags.what, rows)));
        return 0;
    }
    Json json;
    json["format"] = "ringside-catalog";
    json["version"] = 1;
    json[flags.what] = std::move(rows);
    TRY_VOID(writeOutput(flags.output, json.dump(2) + "\n"));
    return 0;
}

}  // namespace

void addCatalog(CommandLine& line) {
    auto flags = std::make_shared<CatalogFlags>();
    Command command = line.add("catalog", "list models, devices, clusters, nodes, networks, strategies or profiles", [flags] { return runCatalog(*flags); });
    command.footer("Examples:\n  ringside catalog models\n  ringside catalog devices --json");
    command.required("what", flags->what, "models, devices, clusters, nodes, networks, strategies or profiles");
    addOutputFlags(command, flags->output);
}

}  // namespace ringside
