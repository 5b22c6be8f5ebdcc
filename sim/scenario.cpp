#include "sim/scenario.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "model/base/names.h"
#include "model/catalog/profile_catalog.h"
#include "model/training/parallel_knobs.h"
#include "model/workload/hf_config.h"
#include "sim/scenario_keys.h"

namespace ringside {
namespace {

/// The range of a key, as its table has it.
std::int64_t mostOf(std::string_view path) { return static_cast<std::int64_t>(scenarioKey(path).spec.max); }

/// What an optional number of a section is, checked against the table.
Result<std::int64_t> wholeOr(const JsonCursor& section, const std::string& path, std::int64_t fallback) {
    const ValueSpec& spec = scenarioKey(path).spec;
    return section.intOr(path.substr(path.rfind('.') + 1), fallback, static_cast<std::int64_t>(spec.min), static_cast<std::int64_t>(spec.max));
}
Result<double> numberOr(const JsonCursor& section, const std::string& path, double fallback) {
    const ValueSpec& spec = scenarioKey(path).spec;
    return section.numberOr(path.substr(path.rfind('.') + 1), fallback, spec.min, spec.max);
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
        TRY_VOID(root_.keys(keysOfSection("")));
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
        TRY_VOID(readPerturbation());
        TRY_VOID(readWhatIf());
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
            TRY(request.devices, wholeOr(root_, "devices", 1));
            TRY(request.devicesPerNode, wholeOr(root_, "devices_per_node", 0));
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
        if (scenario_.cluster.deviceCount() > mostOf("devices")) return root_.error(fmt::format("{} devices are too many; expected at most {}", scenario_.cluster.deviceCount(), mostOf("devices")));
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
            TRY(const auto strategy, located(strategyByName(parallel.strategy), *given));
            strategy->applyDefaults(parallel);
            return {};
        }
        TRY_VOID(given->keys(keysOfSection("strategy")));
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
        strategy->applyDefaults(parallel);
        for (const std::string& key : parallel.given) TRY_VOID(readParallelKnob(parallel, key, *given->find(key)));
        return {};
    }

    Result<void> readTraining() {
        TrainingConfig& training = scenario_.training;
        static const Json nothing = Json::object();
        const auto found = root_.find("training");
        const JsonCursor given = found ? *found : JsonCursor(nothing, root_.place(), "training");
        TRY_VOID(given.keys(keysOfSection("training")));
        TRY(training.seqLen, wholeOr(given, "training.seq_len", 0));
        training.seqLen = effectiveSeqLen(scenario_.model, training);
        if (training.seqLen == 0 && given.has("seq_len"))
            return given.find("seq_len")->error(fmt::format("{} does not read text and has no sequence length; leave it out", scenario_.model.name));
        TRY(scenario_.mesh, meshOf(scenario_.parallel, scenario_.cluster.deviceCount()));
        TRY_VOID(readBatch(given));
        TRY_VOID(readUnequalBatches(given));
        TRY(training.inputMsPerSample, numberOr(given, "training.input_ms_per_sample", 0));
        TRY(training.inputWorkers, wholeOr(given, "training.input_workers", 4));

        const Device& device = scenario_.cluster.nodes.front().kind.device;
        const bool hasBf16 = device.peakDenseTflops.count(DType::Bf16) > 0;
        const bool hasFp16 = device.peakDenseTflops.count(DType::Fp16) > 0;
        TRY(const std::string precision, given.stringOr("precision", hasBf16 || !hasFp16 ? "bf16-autocast" : "fp16-autocast"));
        TRY(training.precision, located(precisionByName(precision), given.find("precision").value_or(given)));
        TRY_VOID(applyParamDtype(given));
        TRY(const std::string optimizer, given.stringOr("optimizer", "adamw"));
        TRY(training.optimizer, located(optimizerByName(optimizer), given.find("optimizer").value_or(given)));
        TRY(const std::string recompute, given.stringOr("recompute", "none"));
        TRY(training.recompute, located(recomputeByName(recompute), given.find("recompute").value_or(given)));
        TRY_VOID(readRecomputeModules(given));
        TRY_VOID(readEarlyStop(given));
        TRY(const std::string attention, given.stringOr("attention", "flash"));
        TRY(training.attention, located(attentionKernelByName(attention), given.find("attention").value_or(given)));
        TRY(const std::string framework, given.stringOr("framework", "pytorch"));
        TRY(training.framework, located(frameworkByName(framework), given.find("framework").value_or(given)));
        scenario_.pricing.framework = training.framework;
        TRY(training.compiled, given.boolOr("compile", false));
        const char* kernels = training.compiled ? "fused" : "eager";
        TRY(const std::string loss, given.stringOr("loss", kernels));
        TRY(training.loss, located(lossKernelByName(loss), given.find("loss").value_or(given)));
        TRY(training.lossMetrics, wholeOr(given, "training.loss_metrics", 0));
        if (training.lossMetrics > 0 && training.loss == LossKernel::FusedLinear)
            return given.find("loss_metrics")->error("needs logits, which the loss 'fused-linear' never holds; use another loss or leave it out");
        TRY(const std::string gated, given.stringOr("gated_activation", kernels));
        TRY(training.gatedActivation, located(gatedKernelByName(gated), given.find("gated_activation").value_or(given)));
        TRY(const std::string norm, given.stringOr("rms_norm", "fused"));
        TRY(training.rmsNorm, located(normKernelByName(norm), given.find("rms_norm").value_or(given)));
        TRY(const std::string format, given.stringOr("memory_format", "contiguous"));
        TRY(training.memoryFormat, located(memoryFormatByName(format), given.find("memory_format").value_or(given)));
        TRY(training.dropout, given.boolOr("dropout", false));
        TRY(training.gradientClipping, given.boolOr("gradient_clipping", false));
        TRY(training.fp8Attention, given.boolOr("fp8_dot_product_attention", false));
        if (training.fp8Attention && (training.precision.math != DType::Fp8 || !isFlash(training.attention)))
            return given.find("fp8_dot_product_attention")->error("needs precision 'fp8' and a fused attention; choose those, or leave it out");
        if (training.fp8Attention && scenario_.parallel.cp > 1) return given.find("fp8_dot_product_attention")->error("does not go with context parallelism yet; set cp to 1, or leave it out");
        TRY(training.repeatKeysAndValues, given.boolOr("repeat_kv", false));
        TRY(training.zeroGradSetToNone, given.boolOr("zero_grad_set_to_none", true));
        TRY(training.optimizerInBackward, given.boolOr("optimizer_in_backward", false));
        TRY(training.offloadActivations, given.boolOr("offload_activations", false));
        TRY(training.readLossEachStep, given.boolOr("read_loss_each_step", true));
        return {};
    }

    /// Modules of Megatron-Core; the core of attention is what selective recompute means to everyone.
    Result<void> readRecomputeModules(const JsonCursor& given) {
        const auto list = given.find("recompute_modules");
        if (!list) return {};
        TrainingConfig& training = scenario_.training;
        if (training.recompute != Recompute::Selective) return list->error("says what selective recompute runs again; set recompute to selective, or leave it out");
        TRY(const std::vector<JsonCursor> items, list->items());
        training.recomputeModules.clear();
        const auto* spec = std::get_if<TransformerSpec>(&scenario_.model.architecture);
        for (const JsonCursor& item : items) {
            TRY(const std::string name, item.asString());
            TRY(const RecomputeModule module, located(recomputeModuleByName(name), item));
            const bool latent = module == RecomputeModule::LatentUp, shared = module == RecomputeModule::SharedExperts;
            const bool experts = module == RecomputeModule::ExpertActivation || module == RecomputeModule::Experts || shared;
            if (module != RecomputeModule::CoreAttention && scenario_.parallel.strategy != "megatron")
                return item.error(fmt::format("'{}' is a module of Megatron-Core; set strategy.name to megatron, found '{}'", name, scenario_.parallel.strategy));
            if (spec == nullptr || (latent && !spec->latent) || (experts && spec->experts == 0) || (shared && spec->sharedExperts == 0))
                return item.error(fmt::format("{} has no module '{}'; leave it out", scenario_.model.name, name));
            training.recomputeModules.push_back(module);
        }
        return {};
    }

    /// Checkpoints of DeepSpeed and Megatron re-enter autograd, which needs the block's output: they run all of it again.
    Result<void> readEarlyStop(const JsonCursor& given) {
        TRY(scenario_.training.recomputeEarlyStop, given.boolOr("recompute_early_stop", false));
        const std::string& strategy = scenario_.parallel.strategy;
        if (scenario_.training.recomputeEarlyStop && (strategy == "megatron" || strategy.starts_with("zero1") || strategy.starts_with("zero2") || strategy.starts_with("zero3")))
            return given.find("recompute_early_stop")->error(fmt::format("is of PyTorch's own checkpoints; those of {} run the whole block again: leave it out", strategy));
        return {};
    }

    /// FSDP's MixedPrecision(param_dtype): parameters are computed with in that type and kept in fp32.
    Result<void> applyParamDtype(const JsonCursor& given) {
        const auto dtype = scenario_.parallel.paramDtype;
        if (!dtype) return {};
        Precision& precision = scenario_.training.precision;
        if (*dtype == precision.parameter && !precision.autocast) return {};
        if (given.has("precision"))
            return given.find("precision")->error(fmt::format("'{}' does not go with param_dtype {}; leave one of them out", precision.name, nameOf(*dtype)));
        if (*dtype == DType::Fp32) {
            TRY(precision, precisionByName("fp32"));
        } else {
            TRY(precision, precisionByName("bf16-master"));
            precision.parameter = precision.math = precision.activation = *dtype;
            precision.lossScaling = *dtype == DType::Fp16;
        }
        return {};
    }

    /// Batches that differ between data-parallel ranks: a list, or in proportion to what each kind of device can do.
    Result<void> readUnequalBatches(const JsonCursor& given) {
        TrainingConfig& training = scenario_.training;
        const std::int64_t ranks = scenario_.mesh.dp;
        TRY(const std::string split, given.stringOr("batch_split", "equal"));
        if (const auto list = given.find("rank_batches")) {
            if (given.has("batch_split") && split != "equal") return list->error("says each rank's batch; leave out batch_split");
            TRY(const std::vector<JsonCursor> items, list->items());
            if (static_cast<std::int64_t>(items.size()) != ranks)
                return list->error(fmt::format("has {} entries; expected one for each of the {} data-parallel ranks", items.size(), ranks));
            for (const JsonCursor& item : items) {
                TRY(const std::int64_t batch, item.asInt(1, mostOf("training.micro_batch")));
                training.rankBatches.push_back(batch);
            }
            const std::int64_t sum = std::accumulate(training.rankBatches.begin(), training.rankBatches.end(), std::int64_t{0}) * training.gradAccum;
            if (const auto global = given.find("global_batch"); global && global->value() != sum)
                return global->error(fmt::format("is not {}, the sum of rank_batches times grad_accum; leave it out", sum));
        } else if (split == "balanced") {
            TRY_VOID(balanceBatches(*given.find("batch_split")));
        } else if (split != "equal") {
            return given.find("batch_split")->error(unknownName("split", split, {"equal", "balanced"}));
        }
        if (!training.rankBatches.empty()) {
            training.microBatch = training.rankBatches.front();
            if (std::all_of(training.rankBatches.begin(), training.rankBatches.end(), [&](std::int64_t b) { return b == training.microBatch; })) training.rankBatches.clear();
        }
        return {};
    }

    /// Keeps the sum, and shares it out by the peak rate of each rank's device; remainders go to the ranks that lack most.
    Result<void> balanceBatches(const JsonCursor& given) {
        TrainingConfig& training = scenario_.training;
        const DeviceMesh& mesh = scenario_.mesh;
        const DType math = DType::Bf16;
        std::vector<double> rate;
        double sum = 0;
        for (std::int64_t d = 0; d < mesh.dp; ++d) {
            const Device& device = scenario_.cluster.nodes[scenario_.cluster.groupOf(d * mesh.tp * mesh.cp)].kind.device;
            auto peak = device.peakDenseTflops.find(math);
            if (peak == device.peakDenseTflops.end()) peak = device.peakDenseTflops.find(DType::Fp16);
            if (peak == device.peakDenseTflops.end()) return given.error(fmt::format("the rate of {} is not known, so batches cannot be balanced; give rank_batches", device.name));
            rate.push_back(peak->second);
            sum += peak->second;
        }
        const std::int64_t total = training.microBatch * mesh.dp;
        std::vector<std::pair<double, std::size_t>> lacking;
        std::int64_t given_ = 0;
        for (std::size_t d = 0; d < rate.size(); ++d) {
            const double share = static_cast<double>(total) * rate[d] / sum;
            training.rankBatches.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(share)));
            given_ += training.rankBatches.back();
            lacking.emplace_back(share - static_cast<double>(training.rankBatches.back()), d);
        }
        std::stable_sort(lacking.begin(), lacking.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        for (std::size_t i = 0; given_ < total; ++given_, ++i) ++training.rankBatches[lacking[i % lacking.size()].second];
        return {};
    }

    /// micro_batch × grad_accum × devices = global_batch: any two of the three settle the third.
    Result<void> readBatch(const JsonCursor& given) {
        TrainingConfig& training = scenario_.training;
        const std::int64_t devices = scenario_.mesh.dp;  // ranks with a batch of their own
        TRY(training.microBatch, wholeOr(given, "training.micro_batch", 1));
        TRY(training.gradAccum, wholeOr(given, "training.grad_accum", 1));
        const auto global = given.find("global_batch");
        if (!global || given.has("rank_batches")) return {};
        TRY(const std::int64_t batch, global->asInt(1, mostOf("training.global_batch")));
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
            if (const std::int64_t most = mostOf("training.grad_accum"); training.gradAccum > most) return global->error(fmt::format("needs {} micro-steps; expected at most {}", training.gradAccum, most));
        } else {
            TRY(training.microBatch, mustDivide(training.gradAccum * devices, fmt::format("grad_accum {} × {} devices", training.gradAccum, devices)));
            if (const std::int64_t most = mostOf("training.micro_batch"); training.microBatch > most) return global->error(fmt::format("needs {} samples per rank; expected at most {}", training.microBatch, most));
        }
        return {};
    }

    Result<void> readProfiles() {
        const auto given = root_.find("profile");
        if (given) scenario_.profileAsGiven = given->value();
        for (NodeGroup& group : scenario_.cluster.nodes) {
            Device& device = group.kind.device;
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
            TRY(device, withMeasuredFigures(device, profile));
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
        TRY_VOID(given->keys(keysOfSection("collectives")));
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
        TRY_VOID(given->keys(keysOfSection("memory")));
        TRY(scenario_.expandableSegments, given->boolOr("expandable_segments", false));
        return {};
    }

    Result<void> readPerturbation() {
        const auto given = root_.find("perturbation");
        if (!given) return {};
        TRY_VOID(given->keys(keysOfSection("perturbation")));
        Perturbation& p = scenario_.perturbation;
        TRY(p.jitter, numberOr(*given, "perturbation.jitter", 0));
        TRY(p.pauseProbability, numberOr(*given, "perturbation.pause_probability", 0));
        TRY(p.pauseMs, numberOr(*given, "perturbation.pause_ms", 10));
        TRY(p.pauseTail, numberOr(*given, "perturbation.pause_tail", 1.5));
        TRY(const std::int64_t seed, wholeOr(*given, "perturbation.seed", 1));
        p.seed = static_cast<std::uint64_t>(seed);
        TRY(p.samples, wholeOr(*given, "perturbation.samples", p.isRandom() ? 10 : 1));
        if (!p.isRandom() && p.samples > 1) return given->find("samples")->error("nothing is random: give jitter or pause_probability, or leave this out");
        if (const auto list = given->find("stragglers")) {
            TRY(const std::vector<JsonCursor> items, list->items());
            for (const JsonCursor& item : items) {
                TRY_VOID(item.keys({"rank", "compute", "link"}));
                Straggler straggler;
                TRY(const JsonCursor rank, item.at("rank"));
                TRY(straggler.rank, rank.asInt(0, scenario_.cluster.deviceCount() - 1));
                TRY(straggler.compute, item.numberOr("compute", 1, 0.01, 1e4));
                TRY(straggler.link, item.numberOr("link", 1, 1, 1e6));
                p.stragglers.push_back(straggler);
            }
        }
        return {};
    }

    /// Over whatever the profile says; a profile's own figures stay what was measured.
    Result<void> readWhatIf() {
        const auto given = root_.find("what_if");
        if (!given) return {};
        TRY_VOID(given->keys(keysOfSection("what_if")));
        PricingOptions& pricing = scenario_.pricing;
        TRY(pricing.computeScale, numberOr(*given, "what_if.compute", 1));
        TRY(pricing.memoryScale, numberOr(*given, "what_if.memory_bandwidth", 1));
        TRY(pricing.networkScale, numberOr(*given, "what_if.network", 1));
        TRY(pricing.hostScale, numberOr(*given, "what_if.host", 1));
        TRY(pricing.extraLatencyUs, numberOr(*given, "what_if.latency_us", 0));
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

std::int64_t Scenario::globalBatch() const {
    std::int64_t samples = training.microBatch * mesh.dp;
    if (!training.rankBatches.empty()) samples = std::accumulate(training.rankBatches.begin(), training.rankBatches.end(), std::int64_t{0});
    return samples * training.gradAccum;
}

Result<Scenario> resolveScenario(const Json& document, const std::string& source, const Catalogs& catalogs) {
    return Resolver(document, source, catalogs).run();
}

}  // namespace ringside
