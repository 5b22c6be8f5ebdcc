#include "sim/scenario.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/names.h"
#include "model/catalog/profile_catalog.h"
#include "model/workload/hf_config.h"

namespace ringside {
namespace {

constexpr std::int64_t kMaxDevices = 1 << 20;
constexpr std::int64_t kMaxBatch = 1 << 20;
constexpr std::int64_t kMaxSeqLen = 1 << 24;
constexpr std::int64_t kMaxGradAccum = 4096;

const std::vector<std::string>& scenarioKeys() {
    static const std::vector<std::string> keys = {"format", "version", "comment", "model", "device", "devices", "devices_per_node", "node", "network",
                                                  "cluster", "training", "strategy", "profile", "collectives", "memory", "step"};
    return keys;
}
const std::vector<std::string>& trainingKeys() {
    static const std::vector<std::string> keys = {"micro_batch", "global_batch", "seq_len", "grad_accum", "precision", "optimizer", "recompute",
                                                  "attention", "dropout", "gradient_clipping", "read_loss_each_step"};
    return keys;
}
const std::vector<std::string>& collectiveKeys() {
    static const std::vector<std::string> keys = {"backend", "nccl_version", "algorithm", "protocol", "level", "network_reduces"};
    return keys;
}
const std::vector<std::string>& strategyKeys() {
    static const std::vector<std::string> keys = {"name", "bucket_mb", "gradient_as_bucket_view", "find_unused_parameters", "static_graph", "comm_hook", "no_sync",
                                                  "broadcast_buffers"};
    return keys;
}

/// {"a": {"b": 1}} → ("a.b", cursor of 1).
void flatten(const JsonCursor& cursor, const std::string& prefix, std::vector<std::pair<std::string, JsonCursor>>& out) {
    for (const auto& entry : cursor.value().items()) {
        const auto child = cursor.find(entry.key());
        if (!child) continue;
        const std::string key = prefix.empty() ? entry.key() : prefix + "." + entry.key();
        if (child->value().is_object())
            flatten(*child, key, out);
        else
            out.emplace_back(key, *child);
    }
}

/// Errors from lookups by name do not know where the name stood: say so.
template <class T>
Result<T> located(Result<T> result, const JsonCursor& cursor) {
    if (result) return result;
    Error error = std::move(result).error();
    error.place = cursor.place();
    return tl::unexpected<Error>(std::move(error));
}

/// The same for a name that may be a path: an error inside that file keeps its own file, line and key.
template <class T>
Result<T> locatedOrInFile(Result<T> result, const std::string& nameOrPath, const JsonCursor& cursor) {
    if (result || result.error().place.starts_with(nameOrPath)) return result;
    return located(std::move(result), cursor);
}

class Resolver {
public:
    Resolver(const Json& document, const std::string& source, const Catalogs& catalogs) : root_(document, source), catalogs_(catalogs) {}

    Result<Scenario> run() {
        TRY_VOID(root_.keys(scenarioKeys()));
        TRY(const std::string format, root_.stringOr("format", "ringside-scenario"));
        if (format != "ringside-scenario") return root_.error(fmt::format("expected \"format\": \"ringside-scenario\", found \"{}\"", format));
        TRY_VOID(root_.intOr("version", 1, 1, 1));
        TRY_VOID(readModel());
        TRY_VOID(readCluster());
        TRY_VOID(readDeviceFigures());
        TRY_VOID(readStrategy());
        TRY_VOID(readTraining());
        TRY_VOID(readProfiles());
        TRY_VOID(readCollectives());
        TRY_VOID(readMemory());
        TRY(const std::string step, root_.stringOr("step", "steady"));
        if (step != "steady" && step != "first") return root_.find("step")->error(fmt::format("expected \"steady\" or \"first\", found \"{}\"", step));
        scenario_.step = step == "first" ? StepKind::First : StepKind::Steady;
        return std::move(scenario_);
    }

private:
    Result<ModelSpec> readModelNamed(const std::string& nameOrPath, const JsonCursor& cursor) const {
        return locatedOrInFile(resolveModel(catalogs_.models, nameOrPath), nameOrPath, cursor);
    }

    Result<void> readModel() {
        const auto model = root_.find("model");
        if (!model)
            return root_.error("no model given; use --model NAME or --model path/to/config.json (`ringside catalog models` lists the names)");
        scenario_.modelAsGiven = model->value();
        if (model->value().is_string()) {
            TRY(scenario_.model, readModelNamed(model->value().get<std::string>(), *model));
            return {};
        }
        if (!model->value().is_object()) return model->error("expected a model's name, a path or an inline configuration");
        if (model->has("config")) {
            TRY(const JsonCursor path, model->at("config"));
            TRY(const std::string text, path.asString());
            TRY(scenario_.model, readModelNamed(text, path));
            return {};
        }
        if (model->has("name") && !model->has("model_type")) {
            if (model->value().size() > 1) return model->error("a catalogue model has no settings; give a configuration with \"model_type\" to change its shape");
            TRY(const std::string name, model->at("name")->asString());
            TRY(scenario_.model, readModelNamed(name, *model));
            return {};
        }
        TRY(scenario_.model, modelFromHfConfig(*model));
        return {};
    }

    /// The device's name, from "device": "name" or "device": {"name": …, figures}.
    Result<std::string> deviceName() const {
        const auto device = root_.find("device");
        if (!device) return std::string();
        if (device->value().is_object()) return device->stringOr("name", "");
        return device->asString();
    }

    Result<void> readCluster() {
        TRY(const std::string device, deviceName());
        const auto cluster = root_.find("cluster");
        if (cluster) {
            for (const char* key : {"devices", "devices_per_node", "node"})
                if (root_.has(key)) return root_.find(key)->error("the cluster says how many devices there are; leave this out, or leave out \"cluster\"");
            if (!device.empty()) return root_.find("device")->error("the cluster says which devices there are; leave this out, or leave out \"cluster\"");
            if (cluster->value().is_string()) {
                const std::string nameOrPath = cluster->value().get<std::string>();
                TRY(scenario_.cluster, locatedOrInFile(resolveCluster(catalogs_.hardware, nameOrPath), nameOrPath, *cluster));
            } else {
                TRY(scenario_.cluster, clusterFromJson(*cluster, catalogs_.hardware.lookups()));
            }
            if (const auto network = root_.find("network")) {
                TRY(const std::string name, network->asString());
                TRY(const NamedNetwork named, located(catalogs_.hardware.findNetwork(name), *network));
                applyNetwork(scenario_.cluster, named);
            }
        } else {
            HardwareCatalog::ClusterRequest request;
            request.device = device;
            TRY(request.devices, root_.intOr("devices", 1, 1, kMaxDevices));
            TRY(request.devicesPerNode, root_.intOr("devices_per_node", 0, 1, 1024));
            TRY(request.nodeKind, root_.stringOr("node", ""));
            TRY(request.network, root_.stringOr("network", ""));
            if (request.device.empty() && request.nodeKind.empty())
                return root_.error("no hardware given; use --device NAME --devices N, or --cluster NAME (`ringside catalog devices` and `ringside catalog clusters` list them)");
            auto made = catalogs_.hardware.makeCluster(request);
            if (!made) {
                Error error = std::move(made).error();
                if (error.place.empty()) error.place = root_.place();
                return tl::unexpected<Error>(std::move(error));
            }
            scenario_.cluster = std::move(*made);
        }
        if (scenario_.cluster.deviceCount() > kMaxDevices) return root_.error(fmt::format("{} devices are too many; expected at most {}", scenario_.cluster.deviceCount(), kMaxDevices));
        return {};
    }

    Result<void> readDeviceFigures() {
        const auto device = root_.find("device");
        if (!device || !device->value().is_object()) return {};
        std::vector<std::pair<std::string, JsonCursor>> figures;
        flatten(*device, "", figures);
        for (const auto& [key, cursor] : figures) {
            if (key == "name") continue;
            TRY(const double value, cursor.asNumber(0, 1e18));
            for (NodeGroup& group : scenario_.cluster.nodes) TRY_VOID(located(setDeviceFigure(group.kind.device, key, value), cursor));
        }
        return {};
    }

    Result<void> readStrategy() {
        ParallelConfig& parallel = scenario_.parallel;
        parallel.strategy = scenario_.cluster.deviceCount() > 1 ? "ddp" : "single";
        const auto given = root_.find("strategy");
        if (!given) return {};
        if (given->value().is_string()) {
            parallel.strategy = given->value().get<std::string>();
            TRY_VOID(located(strategyByName(parallel.strategy), *given));
            return {};
        }
        TRY_VOID(given->keys(strategyKeys()));
        TRY(parallel.strategy, given->stringOr("name", parallel.strategy));
        TRY(const auto strategy, located(strategyByName(parallel.strategy), *given));
        std::vector<std::string> knobs;
        for (const Knob& knob : strategy->knobs()) knobs.push_back(knob.key);
        for (const auto& entry : given->value().items()) {
            if (entry.key() == "name" || entry.value().is_null()) continue;
            if (std::find(knobs.begin(), knobs.end(), entry.key()) == knobs.end())
                return given->find(entry.key())
                    ->error(fmt::format("the strategy '{}' has no such setting{}; leave it out or choose another strategy", parallel.strategy,
                                        knobs.empty() ? "" : fmt::format(" (it takes: {})", fmt::join(knobs, ", "))));
            parallel.given.insert(entry.key());
        }
        if (const auto bucket = given->find("bucket_mb")) {
            TRY(parallel.bucketMb, bucket->asNumber(1e-3, 1e6));
        }
        TRY(parallel.gradientAsBucketView, given->boolOr("gradient_as_bucket_view", false));
        TRY(parallel.findUnusedParameters, given->boolOr("find_unused_parameters", false));
        TRY(parallel.staticGraph, given->boolOr("static_graph", false));
        TRY(parallel.noSync, given->boolOr("no_sync", true));
        TRY(parallel.broadcastBuffers, given->boolOr("broadcast_buffers", true));
        TRY(const std::string hook, given->stringOr("comm_hook", "none"));
        if (hook == "none") parallel.commHook = CommHook::None;
        else if (hook == "fp16") parallel.commHook = CommHook::Fp16;
        else if (hook == "bf16") parallel.commHook = CommHook::Bf16;
        else return given->find("comm_hook")->error(unknownName("communication hook", hook, {"none", "fp16", "bf16"}));
        return {};
    }

    Result<void> readTraining() {
        TrainingConfig& training = scenario_.training;
        static const Json nothing = Json::object();
        const auto found = root_.find("training");
        const JsonCursor given = found ? *found : JsonCursor(nothing, root_.place(), "training");
        TRY_VOID(given.keys(trainingKeys()));
        TRY(training.seqLen, given.intOr("seq_len", 0, 1, kMaxSeqLen));
        training.seqLen = effectiveSeqLen(scenario_.model, training);
        if (training.seqLen == 0 && given.has("seq_len"))
            return given.find("seq_len")->error(fmt::format("{} does not read text and has no sequence length; leave it out", scenario_.model.name));
        TRY_VOID(readBatch(given));

        const Device& device = scenario_.cluster.nodes.front().kind.device;
        const bool hasBf16 = device.peakDenseTflops.count(DType::Bf16) > 0;
        const bool hasFp16 = device.peakDenseTflops.count(DType::Fp16) > 0;
        TRY(const std::string precision, given.stringOr("precision", hasBf16 || !hasFp16 ? "bf16-autocast" : "fp16-autocast"));
        TRY(training.precision, located(precisionByName(precision), given.find("precision").value_or(given)));
        TRY(const std::string optimizer, given.stringOr("optimizer", "adamw"));
        TRY(training.optimizer, located(optimizerByName(optimizer), given.find("optimizer").value_or(given)));
        TRY(const std::string recompute, given.stringOr("recompute", "none"));
        TRY(training.recompute, located(recomputeByName(recompute), given.find("recompute").value_or(given)));
        TRY(const std::string attention, given.stringOr("attention", "flash"));
        TRY(training.attention, located(attentionKernelByName(attention), given.find("attention").value_or(given)));
        TRY(training.dropout, given.boolOr("dropout", false));
        TRY(training.gradientClipping, given.boolOr("gradient_clipping", false));
        TRY(training.readLossEachStep, given.boolOr("read_loss_each_step", true));
        return {};
    }

    /// micro_batch × grad_accum × devices = global_batch: any two of the three settle the third.
    Result<void> readBatch(const JsonCursor& given) {
        TrainingConfig& training = scenario_.training;
        const std::int64_t devices = scenario_.cluster.deviceCount();
        TRY(training.microBatch, given.intOr("micro_batch", 1, 1, kMaxBatch));
        TRY(training.gradAccum, given.intOr("grad_accum", 1, 1, kMaxGradAccum));
        const auto global = given.find("global_batch");
        if (!global) return {};
        TRY(const std::int64_t batch, global->asInt(1, std::int64_t{1} << 40));
        const bool microGiven = given.has("micro_batch"), accumGiven = given.has("grad_accum");
        const auto mustDivide = [&](std::int64_t by, const std::string& what) -> Result<std::int64_t> {
            if (batch % by != 0) return global->error(fmt::format("a global batch of {} cannot be split evenly over {} ({}); take a multiple of {}", batch, by, what, by));
            return batch / by;
        };
        if (microGiven && accumGiven) {
            const std::int64_t product = training.microBatch * training.gradAccum * devices;
            if (product != batch)
                return global->error(fmt::format("{} is not micro_batch {} × grad_accum {} × {} devices = {}; leave one of them out", batch, training.microBatch, training.gradAccum, devices, product));
        } else if (microGiven) {
            TRY(training.gradAccum, mustDivide(training.microBatch * devices, fmt::format("micro_batch {} × {} devices", training.microBatch, devices)));
            if (training.gradAccum > kMaxGradAccum) return global->error(fmt::format("needs {} micro-steps; expected at most {}", training.gradAccum, kMaxGradAccum));
        } else {
            TRY(training.microBatch, mustDivide(training.gradAccum * devices, fmt::format("grad_accum {} × {} devices", training.gradAccum, devices)));
            if (training.microBatch > kMaxBatch) return global->error(fmt::format("needs {} samples per rank; expected at most {}", training.microBatch, kMaxBatch));
        }
        return {};
    }

    Result<void> readProfiles() {
        const auto given = root_.find("profile");
        if (given) scenario_.profileAsGiven = given->value();
        for (const NodeGroup& group : scenario_.cluster.nodes) {
            const Device& device = group.kind.device;
            Profile profile = datasheetProfile(device);
            if (given && given->value().is_string()) {
                const std::string nameOrPath = given->value().get<std::string>();
                TRY(profile, locatedOrInFile(resolveProfile(nameOrPath, device), nameOrPath, *given));
            } else if (given && given->value().is_object()) {
                if (const auto name = given->find("name")) {
                    TRY(const std::string text, name->asString());
                    TRY(profile, locatedOrInFile(resolveProfile(text, device), text, *name));
                }
                std::vector<std::pair<std::string, JsonCursor>> figures;
                flatten(*given, "", figures);
                for (const auto& [key, cursor] : figures) {
                    if (key == "name") continue;
                    TRY(const double value, cursor.asNumber(0, 1e18));
                    TRY_VOID(located(setProfileFigure(profile, key, value), cursor));
                }
            } else if (given) {
                return given->error("expected a profile's name, a path or an object of figures");
            }
            scenario_.profiles.push_back(std::move(profile));
        }
        return {};
    }

    Result<void> readCollectives() {
        const auto given = root_.find("collectives");
        // Ranks on a host's own processor have no NCCL.
        const bool cpu = scenario_.cluster.nodes.front().kind.fabric == IntraNodeFabric::Loopback;
        scenario_.pricing.backend = cpu ? CollectiveBackend::Gloo : CollectiveBackend::Nccl;
        if (!given) return {};
        TRY_VOID(given->keys(collectiveKeys()));
        if (const auto backend = given->find("backend")) {
            TRY(const std::string name, backend->asString());
            TRY(scenario_.pricing.backend, located(collectiveBackendByName(name), *backend));
        }
        NcclOptions& nccl = scenario_.pricing.collectives.nccl;
        if (const auto version = given->find("nccl_version")) {
            const std::string text = version->value().is_string() ? version->value().get<std::string>() : version->value().dump();
            if (text == "2.27") nccl.version = NcclVersion::V2_27;
            else if (text == "2.30" || text == "2.3") nccl.version = NcclVersion::V2_30;
            else return version->error(unknownName("NCCL version", text, {"2.27", "2.30"}));
        }
        if (const auto algorithm = given->find("algorithm")) {
            TRY(const std::string name, algorithm->asString());
            TRY(const CollectiveAlgorithm value, located(collectiveAlgorithmByName(name), *algorithm));
            nccl.algorithm = value;
            scenario_.pricing.collectives.gloo.algorithm = value;
        }
        if (const auto protocol = given->find("protocol")) {
            TRY(const std::string name, protocol->asString());
            TRY(const CollectiveProtocol value, located(collectiveProtocolByName(name), *protocol));
            nccl.protocol = value;
        }
        TRY(nccl.networkReduces, given->boolOr("network_reduces", false));
        TRY(const std::string level, given->stringOr("level", "closed"));
        if (level != "closed" && level != "message") return given->find("level")->error(unknownName("level", level, {"closed", "message"}));
        scenario_.pricing.level = level == "message" ? CollectiveLevel::Message : CollectiveLevel::Closed;
        return {};
    }

    Result<void> readMemory() {
        const auto given = root_.find("memory");
        if (!given) return {};
        TRY_VOID(given->keys({"expandable_segments"}));
        TRY(scenario_.expandableSegments, given->boolOr("expandable_segments", false));
        return {};
    }

    JsonCursor root_;
    const Catalogs& catalogs_;
    Scenario scenario_;
};

}  // namespace

Result<Catalogs> Catalogs::builtin() {
    TRY(ModelCatalog models, ModelCatalog::builtin());
    TRY(HardwareCatalog hardware, HardwareCatalog::builtin());
    return Catalogs{std::move(models), std::move(hardware)};
}

Result<Scenario> resolveScenario(const Json& document, const std::string& source, const Catalogs& catalogs) {
    return Resolver(document, source, catalogs).run();
}

Json toJson(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    const ParallelConfig& parallel = scenario.parallel;
    Json json;
    json["format"] = "ringside-scenario";
    json["version"] = 1;
    json["model"] = scenario.modelAsGiven;
    json["cluster"] = toJson(scenario.cluster);
    Json& t = json["training"];
    t["micro_batch"] = training.microBatch;
    t["grad_accum"] = training.gradAccum;
    t["global_batch"] = scenario.globalBatch();
    if (training.seqLen > 0) t["seq_len"] = training.seqLen;
    t["precision"] = training.precision.name;
    t["optimizer"] = nameOf(training.optimizer);
    t["recompute"] = nameOf(training.recompute);
    t["attention"] = nameOf(training.attention);
    t["dropout"] = training.dropout;
    t["gradient_clipping"] = training.gradientClipping;
    t["read_loss_each_step"] = training.readLossEachStep;
    Json& s = json["strategy"];
    s["name"] = parallel.strategy;
    const auto strategy = strategyByName(parallel.strategy);
    if (strategy)
        for (const Knob& knob : (*strategy)->knobs()) {
            if (knob.key == "bucket_mb") s[knob.key] = parallel.bucketMb ? Json(*parallel.bucketMb) : Json(nullptr);
            if (knob.key == "gradient_as_bucket_view") s[knob.key] = parallel.gradientAsBucketView;
            if (knob.key == "find_unused_parameters") s[knob.key] = parallel.findUnusedParameters;
            if (knob.key == "static_graph") s[knob.key] = parallel.staticGraph;
            if (knob.key == "no_sync") s[knob.key] = parallel.noSync;
            if (knob.key == "broadcast_buffers") s[knob.key] = parallel.broadcastBuffers;
            if (knob.key == "comm_hook") s[knob.key] = parallel.commHook == CommHook::None ? "none" : parallel.commHook == CommHook::Fp16 ? "fp16" : "bf16";
        }
    if (!scenario.profileAsGiven.is_null()) json["profile"] = scenario.profileAsGiven;
    Json& c = json["collectives"];
    c["backend"] = nameOf(scenario.pricing.backend);
    const NcclOptions& nccl = scenario.pricing.collectives.nccl;
    c["nccl_version"] = nccl.version == NcclVersion::V2_27 ? "2.27" : "2.30";
    if (nccl.algorithm) c["algorithm"] = nameOf(*nccl.algorithm);
    if (nccl.protocol) c["protocol"] = nameOf(*nccl.protocol);
    c["level"] = scenario.pricing.level == CollectiveLevel::Message ? "message" : "closed";
    c["network_reduces"] = nccl.networkReduces;
    json["memory"]["expandable_segments"] = scenario.expandableSegments;
    json["step"] = scenario.step == StepKind::First ? "first" : "steady";
    return json;
}

Result<void> setScenarioKey(Json& document, const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
        return failure(ErrorCode::Usage, "--set", fmt::format("expected key=value, found '{}'", assignment));
    std::string key = assignment.substr(0, equals);
    const std::string text = assignment.substr(equals + 1);
    const Result<Json> parsed = parseJson(text, "--set " + key);
    const Json value = parsed ? *parsed : Json(text);  // a bare word is a string

    if (key.find('.') == std::string::npos && std::find(scenarioKeys().begin(), scenarioKeys().end(), key) == scenarioKeys().end()) {
        const auto has = [&](const std::vector<std::string>& keys) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
        if (has(trainingKeys())) key = "training." + key;
        else if (has(strategyKeys())) key = "strategy." + key;
        else if (has(collectiveKeys())) key = "collectives." + key;
        else {
            std::vector<std::string> all = scenarioKeys();
            all.insert(all.end(), trainingKeys().begin(), trainingKeys().end());
            all.insert(all.end(), strategyKeys().begin(), strategyKeys().end());
            all.insert(all.end(), collectiveKeys().begin(), collectiveKeys().end());
            return badInput("--set", unknownName("key", key, all, "docs/reference/scenario.md lists the keys"));
        }
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
