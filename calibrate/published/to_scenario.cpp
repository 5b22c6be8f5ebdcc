#include "calibrate/published/to_scenario.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "calibrate/published/published_cluster.h"
#include "calibrate/published/published_model.h"
#include "model/base/check.h"
#include "model/workload/hf_config.h"
#include "model/workload/model_spec.h"

namespace ringside {
namespace {

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

/// Text under a key that nobody must give.
std::string textAt(const Json& object, const char* key) { return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : std::string(); }

constexpr const char* kNoRecompute = "recompute not stated: none";

/// Who trains: this settles precision, optimizer and reduction where a source does not.
enum class Trainer : std::uint8_t { Torch, Fsdp, DeepSpeed, Megatron };

class Mapper {
public:
    Mapper(const PublishedRecord& record, const Catalogs& catalogs)
        : record_(record), catalogs_(catalogs), strategy_(record.strategy), kind_(lower(record.strategy.kind)), notes_(lower(record.notes)) {}

    Result<MappedRecord> run() {
        TRY_VOID(checkMethod());
        TRY(MappedModel model, modelOf(record_.model));
        out_.assumed = std::move(model.assumed);
        style_ = model.style;
        out_.document["model"] = std::move(model.model);
        TRY_VOID(mapBertHead());
        TRY(cluster_, clusterOf(record_.hardware, catalogs_.hardware));
        out_.document["cluster"] = toJson(cluster_);
        TRY_VOID(mapStrategy());
        TRY_VOID(mapPrecision());
        TRY_VOID(mapTraining());
        TRY_VOID(mapBatch());
        TRY_VOID(mapStages());
        Result<Scenario> scenario = resolveScenario(out_.document, record_.place(), catalogs_);
        if (!scenario) return badInput("", scenario.error().message);
        out_.scenario = std::move(*scenario);
        out_.strategy = out_.scenario.parallel.strategy;
        if (out_.strategy == "zero3") TRY_VOID(mapZeroInit());
        if (out_.strategy == "fsdp2" && torchtune_) TRY_VOID(wrapEveryLayer());
        return std::move(out_);
    }

private:
    Json& strategy() { return out_.document["strategy"]; }
    Json& training() { return out_.document["training"]; }
    const Device& device() const { return cluster_.nodes.front().kind.device; }
    bool hybrid() const { return strategy_.tp * strategy_.pp * strategy_.cp > 1; }
    void assume(std::string what) { out_.assumed.push_back(std::move(what)); }

    /// Fine-tuning recipes say more than a strategy.
    Result<void> checkMethod() {
        const Json& given = record_.json.at("strategy");
        const std::string method = textAt(given, "method"), technique = textAt(given, "technique");
        const std::string task = textAt(record_.json.contains("source") ? record_.json.at("source") : Json(), "task");
        if (has(lower(task), "lora")) return badInput("", fmt::format("the task '{}' is not supported: adapters", task));
        if (has(lower(method + technique), "lora")) return badInput("", fmt::format("the method '{}' is not supported: adapters", method + technique));
        if (technique == "Baseline") return badInput("", "samples of varying length: what is in a batch is not stated");
        // Each technique keeps those before it.
        static constexpr std::string_view kTechniques[] = {"Packed", "Compile", "Chunked", "Checkpointing", "Fuse optimizer", "Offloading", "8-bit AdamW"};
        const auto found = std::find_if(std::begin(kTechniques), std::end(kTechniques), [&](std::string_view word) { return has(technique, word); });
        if (!technique.empty() && found == std::end(kTechniques)) return badInput("", fmt::format("the technique '{}' and those before it are not all supported", technique));
        if (!technique.empty()) techniques_ = static_cast<int>(found - std::begin(kTechniques)) + 1;
        torchtune_ = has(record_.source, "torchtune");
        if (torchtune_ && technique.empty() && kind_ == "single") return badInput("", "the recipe steps inside backward with a paged optimizer, which is not supported");
        return {};
    }

    /// vTrain's predictor replays kernels that it recorded of one layer: parameters, gradients and Adam's update in fp16 without master weights, neither
    /// clipping nor loss scaling (its src/trainer.py), one all-reduce after backward.
    bool replayed() const { return has(record_.source, "VIA-Research/vTrain") && has(record_.source, "ground_truth_single"); }

    /// A script uses DeepSpeed's zero.Init where it must: a model that fits is whole on each device before it is shared out.
    Result<void> mapZeroInit() {
        Scenario& scenario = out_.scenario;
        TRY(const Workload workload, buildWorkload(scenario.model, scenario.training));
        const Bytes whole = parameterCount(workload) * sizeOf(scenario.training.precision.parameter);
        TRY(const Bytes capacity, memoryCapacity(device()));
        if (whole > capacity) return {};
        strategy()["zero_init"] = false;
        scenario.parallel.zeroInit = false;
        return {};
    }

    /// torchtune's distributed recipes shard the embedding and the output apart (custom_sharded_layers), so no unit stays gathered for the whole step.
    Result<void> wrapEveryLayer() {
        Scenario& scenario = out_.scenario;
        TRY(const Workload workload, buildWorkload(scenario.model, scenario.training));
        for (const Layer& layer : workload.layers) scenario.parallel.wrapLayers.push_back(layer.name);
        scenario.parallel.wrap = "layers";
        strategy()["wrap"] = "layers";
        strategy()["wrap_layers"] = scenario.parallel.wrapLayers;
        return {};
    }

    bool recipeOfBridge() const { return has(record_.family, "bridge") || has(record_.family, "nemo"); }
    bool recipeOfNvidia() const { return has(record_.source, "NVIDIA/DeepLearningExamples"); }

    /// NVIDIA's pre-training predicts the masked tokens only, 20 of 128; of 512 tokens it is "binned": batches are of samples of about the same
    /// length, cut to it (its README, release notes of 2022), so 512 is only the longest.
    Result<void> mapBertHead() {
        if (style_ != ModelStyle::Bert || !recipeOfNvidia() || !has(lower(record_.model.name), "pretraining")) return {};
        if (record_.model.seqLen.value_or(0) > 128) return badInput("", "samples of varying length: the recipe sorts them into bins of 64 tokens, and what is in a batch is not stated");
        out_.document["model"]["max_predictions_per_seq"] = 20;
        return {};
    }

    Result<void> mapStrategy() {
        const bool zero1 = has(kind_, "zero1") || has(kind_, "zero-1");
        const bool distributedOptimizer = has(kind_, "distributed optimizer");
        if (has(kind_, "megatron-fsdp")) {
            trainer_ = Trainer::Fsdp;
            strategy()["name"] = "fsdp2";
        } else if (has(kind_, "megatron") || distributedOptimizer || kind_ == "3d" || kind_ == "hybrid" || (hybrid() && (kind_.starts_with("ddp") || kind_ == "tp" || kind_ == "pp"))) {
            mapMegatron(zero1 || distributedOptimizer);
        } else if (kind_.starts_with("fsdp") || kind_ == "hsdp") {
            mapFsdp();
        } else if (kind_.starts_with("zero")) {
            trainer_ = Trainer::DeepSpeed;
            const char* stage = has(kind_, "3") ? "zero3" : has(kind_, "2") ? "zero2" : zero1 ? "zero1" : nullptr;
            if (!stage) return badInput("", fmt::format("the strategy '{}' is not known", strategy_.kind));
            strategy()["name"] = stage;
            if (has(lower(strategy_.offload), "cpu")) strategy()["offload_optimizer"] = "cpu";
            if (has(strategy_.overlap, "overlap_comm")) strategy()["overlap_comm"] = true;
            if (has(lower(strategy_.offload), "activation")) assume("activation checkpoints are taken to stay on the device");
        } else if (kind_ == "ddp" || kind_.starts_with("ddp ") || kind_ == "single" || kind_ == "dp" || kind_ == "naive") {
            const bool alone = record_.hardware.gpus == 1;
            if (has(notes_, "megatron")) {  // its data parallelism, with its optimizer and its types
                mapMegatron(false);
                if (alone) strategy() = {{"name", "single"}};
                return {};
            }
            strategy()["name"] = alone ? "single" : kind_ == "single" ? "ddp" : kind_.substr(0, kind_.find(' '));
            // NVIDIA's BERT gives apex's DistributedDataParallel message_size = 250 million elements: one bucket, sent after the backward pass.
            if (!alone && style_ == ModelStyle::Bert && has(notes_, "(apex)")) strategy()["bucket_mb"] = 1000;
        } else if (kind_.empty()) {
            return badInput("", "the strategy is not stated");
        } else {
            return badInput("", fmt::format("the strategy '{}' is not known", strategy_.kind));
        }
        // Megatron-LM accumulates and reduces bf16 gradients in fp32 (arguments.py); the recipes of Megatron Bridge and NeMo turn that off.
        const bool recipe = recipeOfBridge();
        if (trainer_ == Trainer::Megatron && strategy()["name"] == "megatron" && has(lower(strategy_.precision), "bf16") && !recipe) strategy()["grad_reduce_in_fp32"] = true;
        if (strategy_.tp > 1) strategy()["tp"] = strategy_.tp;
        if (strategy_.tp > 1 && trainer_ == Trainer::Fsdp) {
            strategy()["sequence_parallel"] = true;
            assume("sequence parallelism not stated: on, as in torchtitan and Megatron-FSDP");
        }
        if (strategy_.pp > 1) strategy()["pp"] = strategy_.pp;
        if (strategy_.cp > 1) strategy()["cp"] = strategy_.cp;
        if (strategy_.ep > 1) mapExperts(recipe);
        return {};
    }

    /// Megatron Bridge's recipes keep experts whole (expert_tensor_parallel_size = 1). How tokens travel, and whether beside another micro-batch, a
    /// record says where the recipe of its release is known.
    void mapExperts(bool recipe) {
        strategy()["ep"] = strategy_.ep;
        if (!recipe) return;
        if (strategy_.tp > 1) {
            strategy()["etp"] = 1;
            assume("expert tensor parallelism not stated: 1, as in Megatron Bridge's recipes");
        }
        const Json& given = record_.json.at("strategy");
        if (given.contains("moe_flex_dispatcher_backend")) {
            strategy()["moe_token_dispatcher"] = given["moe_flex_dispatcher_backend"].is_null() ? "alltoall" : "flex";
        } else {  // DeepEP or HybridEP (moe_flex_dispatcher_backend), on H100s all-to-all
            const bool hopper = device().arch == GpuArch::Hopper;
            strategy()["moe_token_dispatcher"] = hopper ? "alltoall" : "flex";
            assume(fmt::format("token dispatcher not stated: {}, as in Megatron Bridge's recipes", hopper ? "alltoall" : "flex"));
        }
        // Tokens beyond an expert's capacity are dropped, and what is missing is padded.
        if (has(lower(record_.model.name), "tokendrop")) strategy()["moe_pad_expert_input_to_capacity"] = true;
        if (given.contains("cuda_graph_scope") && given["cuda_graph_scope"].is_array()) strategy()["cuda_graph_scope"] = given["cuda_graph_scope"];
        if (given.value("use_transformer_engine_op_fuser", false)) strategy()["use_transformer_engine_op_fuser"] = true;
        const bool stated = given.contains("moe_a2a_overlap") && given["moe_a2a_overlap"].is_boolean();
        if (!(stated ? given["moe_a2a_overlap"].get<bool>() : overlapsExperts())) return;
        strategy()["overlap_moe_expert_parallel_comm"] = true;
        if (!stated) assume("overlap of the experts' communication not stated: as in Megatron Bridge's recipes");
    }

    /// moe_a2a_overlap of Megatron Bridge's performance recipes: of H100 and B200 where the pipeline is interleaved (qwen3 and, since April 2026,
    /// deepseek_workload_base_configs.py); of MXFP8 on GB200 and GB300 since they capture whole iterations (June 2026, so from release 26.06 on).
    bool overlapsExperts() const {
        const std::string name = deviceNameOf(record_.hardware.gpu);
        const bool rack = name == "gb200" || name == "gb300";
        if (!rack) return strategy_.vp > 1 && (name == "b200" || device().arch == GpuArch::Hopper);
        if (strategy_.pp > 1 && strategy_.vp == 1) return false;
        const std::string release = textAt(record_.json.contains("source") ? record_.json.at("source") : Json(), "release");
        return release >= "26.06" && has(lower(strategy_.precision), "mxfp8");
    }

    /// Blocks that do not divide by the stages, as Megatron Bridge's recipes lay them out: embedding and loss count as a block each where that divides
    /// (Qwen3-235B-A22B); else every stage but the last is full, and the last one takes the rest and the modules of multi-token prediction (DeepSeek-V3,
    /// Kimi K2). Where nothing would be left for the last but these modules, the first stage is the short one.
    Result<void> mapStages() {
        if (trainer_ != Trainer::Megatron || strategy_.pp == 1 || !recipeOfBridge()) return {};
        TRY(const ModelSpec model, modelOfDocument());
        const auto* spec = std::get_if<TransformerSpec>(&model.architecture);
        const std::int64_t chunks = strategy_.pp * std::max<std::int64_t>(1, strategy_.vp);
        if (spec == nullptr || spec->layers % chunks == 0 || spec->layers < chunks) return {};
        std::vector<std::int64_t> layout(static_cast<std::size_t>(chunks));
        if ((spec->layers + 2) % chunks == 0) {
            std::fill(layout.begin(), layout.end(), (spec->layers + 2) / chunks);
            layout.front() -= 1;
            layout.back() -= 1;
        } else {
            const std::int64_t full = (spec->layers + chunks - 1) / chunks;
            std::fill(layout.begin(), layout.end(), full);
            layout.back() = spec->layers - (chunks - 1) * full;
            if (layout.back() < 1 && spec->predictionModules > 0) {
                layout.front() = spec->layers - (chunks - 2) * full;
                layout.back() = 0;
            }
        }
        layout.back() += spec->predictionModules;
        if (layout.front() < 1 || layout.back() < 1) return {};  // no recipe to follow: evenly
        strategy()["pipeline_layout"] = layout;
        assume("stages are laid out as in Megatron Bridge's recipes");
        return {};
    }

    Result<ModelSpec> modelOfDocument() const {
        const Json& model = out_.document.at("model");
        if (model.is_string()) return catalogs_.models.find(model.get<std::string>());
        return modelFromHfConfig(JsonCursor(model, record_.place()));
    }

    /// Megatron Bridge's recipes of Llama overlap wherever there is something to (scripts/performance/configs/llama: tp_comm_overlap is tp > 1), those of
    /// DeepSeek and its like do not.
    void mapTensorOverlap() {
        const bool stated = has(strategy_.overlap, "tp-comm-overlap"), recipe = recipeOfBridge() && has(lower(record_.model.name), "llama");
        if (!stated && !recipe) return;
        strategy()["tp_comm_overlap"] = true;
        if (!stated) assume("tensor-parallel overlap not stated: on, as in Megatron Bridge's recipes");
    }

    void mapMegatron(bool distributedOptimizer) {
        trainer_ = Trainer::Megatron;
        strategy()["name"] = "megatron";
        strategy()["use_distributed_optimizer"] = distributedOptimizer;
        if (distributedOptimizer) strategy()["transformer_impl"] = "transformer_engine";  // Megatron's default since it has one
        // Recipes that name the distributed optimizer are of a time at which overlap and sequence parallelism were the rule.
        const bool overlaps = distributedOptimizer && (strategy_.overlap.empty() || has(strategy_.overlap, "grad-reduce"));
        if (overlaps) {
            strategy()["overlap_grad_reduce"] = true;
            strategy()["overlap_param_gather"] = true;
        }
        if (distributedOptimizer && strategy_.tp > 1) strategy()["sequence_parallel"] = true;
        if (distributedOptimizer && strategy_.tp > 1) mapTensorOverlap();
        std::int64_t chunks = strategy_.vp;
        // Megatron overlaps messages between stages in an interleaved pipeline only (megatron/training/arguments.py: overlap_p2p_comm).
        const std::int64_t blocks = record_.model.layers.value_or(0);
        if (strategy_.pp > 1 && chunks == 1 && has(strategy_.overlap, "pipeline-parallel") && blocks > strategy_.pp && blocks % strategy_.pp == 0 && blocks / strategy_.pp <= 64 && microBatchesFillStages()) {
            chunks = blocks / strategy_.pp;
            assume(fmt::format("virtual stages not stated: {}, of one block each, since the source overlaps messages between stages", chunks));
        }
        if (chunks > 1 && strategy_.pp > 1) {
            strategy()["pipeline_schedule"] = "interleaved";
            strategy()["virtual_stages"] = chunks;
        }
    }

    void mapFsdp() {
        trainer_ = Trainer::Fsdp;
        const bool hybridShard = kind_ == "hsdp" || has(kind_, "hybrid");
        if (hybrid() || has(kind_, "fsdp2") || torchtune_) {
            strategy()["name"] = hybridShard ? "hsdp" : "fsdp2";
            if (has(lower(strategy_.offload), "cpu")) strategy()["cpu_offload"] = true;
            return;
        }
        if (has(lower(strategy_.offload), "cpu")) strategy()["cpu_offload"] = true;
        strategy()["name"] = "fsdp1";
        if (record_.family.starts_with("llm-foundry")) strategy()["no_sync"] = false;  // Composer's ddp_sync_context leaves alone what is not DDP
        if (hybridShard) strategy()["sharding_strategy"] = "hybrid_shard";
        if (has(kind_, "grad")) strategy()["sharding_strategy"] = "shard_grad_op";
    }

    Result<void> mapPrecision() {
        const std::string text = lower(strategy_.precision);
        const bool hasTf32 = device().peakDenseTflops.count(DType::Tf32) > 0;
        const bool half = has(text, "16");
        if (has(text, "fp4")) return badInput("", fmt::format("the precision '{}' is not supported", strategy_.precision));
        if (has(text, "fp8") || has(text, "float8")) {
            if (device().peakDenseTflops.count(DType::Fp8) == 0) return badInput("", fmt::format("the device {} has no fp8 arithmetic", device().name));
            training()["precision"] = "fp8";
        } else if (has(text, "tf32")) {
            training()["precision"] = hasTf32 ? "tf32" : "fp32";
        } else if (has(text, "fp32") && !half) {
            training()["precision"] = "fp32";
        } else if (half && trainer_ == Trainer::Fsdp) {
            if (!has(text, "bf16")) return badInput("", fmt::format("the precision '{}' of FSDP is not supported", strategy_.precision));
            if (torchtune_) training()["precision"] = "bf16";  // parameters are kept in it too
            else strategy()["param_dtype"] = "bf16";
        } else if (half && (trainer_ == Trainer::Megatron || trainer_ == Trainer::DeepSpeed)) {
            // Weights of two bytes with an fp32 copy in the optimizer.
            training()["precision"] = replayed() ? "fp16-pure" : has(text, "bf16") && !has(text, "fp16") ? "bf16-master" : "fp16-master";
        } else if (half) {
            const bool bf16 = has(text, "bf16") && !has(text, "fp16");
            const bool pure = bf16 && text == "bf16" && kind_ == "single";
            training()["precision"] = pure ? "bf16" : bf16 ? "bf16-autocast" : "fp16-autocast";
        } else if (text.empty()) {
            return badInput("", "the precision is not stated");
        } else {
            return badInput("", fmt::format("the precision '{}' is not known", strategy_.precision));
        }
        return {};
    }

    std::string optimizerName() const {
        const std::string text = lower(strategy_.optimizer);
        if (has(text, "8bit") || has(text, "8-bit") || techniques_ >= 7) return "adam-8bit";
        if (has(text, "adafactor")) return has(record_.source, "huggingface/transformers") ? "adafactor-for-loop" : "adafactor";  // the Trainer's own goes tensor by tensor
        if (has(text, "decoupled")) return "adamw-for-loop";  // Composer's own: tensor by tensor
        if (has(text, "momentum")) return "momentum";
        if (has(text, "sgd")) return style_ == ModelStyle::ConvNet ? "momentum" : "sgd";
        if (has(text, "fused") || techniques_ > 0) return "adamw-fused";  // as torchtune's recipe has it
        if (has(record_.source, "huggingface/transformers")) return "adamw-for-loop";  // the Trainer's own (adamw_hf) at the time
        if (has(text, "adam")) return "adamw";
        if (style_ == ModelStyle::ConvNet) return "momentum";
        // NVIDIA's fine-tuning script has a fused optimizer with fp16 only; else its own, tensor by tensor.
        if (has(lower(record_.model.name), "squad") && !has(lower(strategy_.precision), "16")) return "adamw-for-loop";
        // Apex's and DeepSpeed's optimizers are fused; BERT's recipes use them too.
        return trainer_ == Trainer::Megatron || trainer_ == Trainer::DeepSpeed || style_ == ModelStyle::Bert ? "adamw-fused" : "adamw";
    }

    Result<void> mapTraining() {
        const bool old = device().computeCapability.value_or(8) < 8 || has(notes_, "megatron-deepspeed") || style_ == ModelStyle::Bert;  // before fused attention
        training()["optimizer"] = optimizerName();
        if (style_ != ModelStyle::ConvNet) {
            if (!record_.model.seqLen) return badInput("", "the sequence length is not stated");
            training()["seq_len"] = *record_.model.seqLen;
            training()["attention"] = attention(old);
            training()["dropout"] = style_ == ModelStyle::Bert || (style_ == ModelStyle::Gpt && old);
            mapRecompute();
            if (record_.json.at("strategy").value("fp8_dot_product_attention", false)) training()["fp8_dot_product_attention"] = true;
            // FSDP wraps blocks in checkpoints without re-entry, which end early since PyTorch 2.1.
            if (trainer_ == Trainer::Fsdp && (training()["recompute"] == "full" || training()["recompute"] == "selective-op") && !has(notes_, "torch 1.")) training()["recompute_early_stop"] = true;
            mapKernels();
        }
        if (strategy().value("transformer_impl", "") == "transformer_engine") training()["framework"] = "transformer-engine";
        if (replayed()) training()["framework"] = "profiled";
        if (modulesOfHuggingFace()) training()["framework"] = "huggingface";
        if (style_ == ModelStyle::ConvNet && channelsLast()) training()["memory_format"] = "channels_last";
        if (trainer_ == Trainer::Torch && beforeTorch2()) training()["zero_grad_set_to_none"] = false;
        if (techniques_ >= 5) training()["optimizer_in_backward"] = true;
        if (techniques_ >= 6) training()["offload_activations"] = true;
        const bool without = has(notes_, "w/o clip");
        const bool clips = !without && !replayed() && (strategy_.gradClip.has_value() || trainer_ == Trainer::Megatron || style_ == ModelStyle::Bert);
        training()["gradient_clipping"] = clips;
        return {};
    }

    /// The Trainer of Hugging Face called model.zero_grad(), which set gradients to zero, not to None, before PyTorch 2.0; its guide for one GPU
    /// (perf_train_gpu_one) is of 2022.
    bool beforeTorch2() const { return has(record_.source, "huggingface/transformers") && has(textAt(record_.json.at("source"), "path"), "perf_train_gpu_one"); }

    /// Megatron fuses the softmax from its first release on; MPT's recipes used Triton's kernels, which are of the first generation. Recipes with a
    /// distributed optimizer use Transformer Engine's attention, DeepSpeed's newer ones FlashAttention-3, on Blackwell 4.
    const char* attention(bool old) const {
        if (old) return trainer_ == Trainer::Megatron ? "fused-softmax" : "math";
        if (trainer_ == Trainer::DeepSpeed && device().arch == GpuArch::Blackwell) return "flash4";
        const bool newer = trainer_ == Trainer::Megatron || (trainer_ == Trainer::DeepSpeed && device().arch == GpuArch::Hopper);
        return style_ == ModelStyle::Mpt ? "flash1" : newer ? "flash3" : "flash";
    }

    /// As a source says where it names the version of transformers that it ran.
    bool modulesOfHuggingFace() const { return has(notes_, "transformers "); }

    bool compiles() const {
        const Json& given = record_.json.at("strategy");
        return given.contains("compile") && given["compile"].is_boolean() && given["compile"].get<bool>();
    }

    /// Fused kernels that decide what is kept for backward, as each program has them by default.
    void mapKernels() {
        const bool liger = has(notes_, "liger") && !has(notes_, "no liger");
        const bool recipe = strategy().value("use_distributed_optimizer", false) || has(kind_, "megatron-fsdp");
        if (liger) training()["gated_activation"] = "fused-in-place";
        else if (trainer_ == Trainer::Megatron || recipe) training()["gated_activation"] = "fused";
        if (liger) training()["loss"] = "fused-linear";
        else if (recipe) training()["loss"] = "fused-in-place";  // Transformer Engine's
        // torchtune's recipes: compiled where they say so, the loss by chunks, an RMS norm of its own.
        const bool compiled = techniques_ >= 2 || compiles();
        if (compiled) training()["compile"] = true;
        if (techniques_ == 2) training()["loss"] = "eager";  // it keeps fp32 logits until the loss comes in chunks
        if (techniques_ >= 3 || (torchtune_ && techniques_ == 0)) training()["loss"] = "fused";
        if (!compiled && (torchtune_ || (modulesOfHuggingFace() && !liger))) training()["rms_norm"] = "eager";
        if (torchtune_) training()["repeat_kv"] = true;  // its MultiHeadAttention expands them
        if (has(record_.source, "Dao-AILab/flash-attention")) training()["loss"] = "fused";  // its own kernel, as its training README says
        if (style_ == ModelStyle::Mpt) {
            training()["loss"] = "fused";  // MPT's loss_fn is flash-attn's
            training()["loss_metrics"] = 2;  // Composer's LanguageCrossEntropy and LanguagePerplexity, llm-foundry's default
        }
    }

    /// NVIDIA's own recipes train convolutional networks pixel by pixel where they use tensor cores of 16 bits (its configs.yml: memory_format
    /// nhwc with AMP only); those who run its scripts without that flag have PyTorch's default.
    bool channelsLast() const {
        const std::string given = lower(textAt(record_.json.at("strategy"), "memory_format"));
        if (!given.empty()) return has(given, "last") || given == "nhwc";
        return recipeOfNvidia() && has(lower(strategy_.precision), "16");
    }

    /// A recipe of Megatron's names the modules that run again, none at all included.
    void mapRecompute() {
        const Json& given = record_.json.at("strategy");
        if (!given.contains("recompute_modules")) {
            training()["recompute"] = recompute();
        } else if (given["recompute_modules"].empty()) {
            training()["recompute"] = "none";
        } else {
            training()["recompute"] = "selective";
            training()["recompute_modules"] = given["recompute_modules"];
        }
    }

    std::string recompute() {
        const std::string text = lower(strategy_.actCkpt);
        if (has(text, "full") || techniques_ >= 4) return "full";
        if (techniques_ > 0) return "none";
        if (has(text, "selective")) return trainer_ == Trainer::Fsdp && (has(text, "op") || has(record_.source, "torchtitan")) ? "selective-op" : "selective";
        if (torchtune_ && kind_ != "single") {
            assume("recompute not stated: full, as in torchtune's recipes");
            return "full";
        }
        const bool recipe = out_.document["strategy"].value("use_distributed_optimizer", false) || has(kind_, "megatron-fsdp");
        if (recipe && text.empty()) {
            assume("recompute not stated: none, as in recipes with a distributed optimizer");
        } else if (text.empty() || has(text, "not stated")) {
            assume(kNoRecompute);
            out_.recomputeOpen = true;
        }
        return "none";
    }

    /// micro_batch × grad_accum × data-parallel ranks = global_batch, with what the source leaves open.
    Result<void> mapBatch() {
        const std::int64_t ways = strategy_.tp * strategy_.pp * strategy_.cp;
        if (record_.hardware.gpus % ways != 0) return badInput("", fmt::format("{} devices cannot be shared out over tp × pp × cp = {}", record_.hardware.gpus, ways));
        const std::int64_t dp = record_.hardware.gpus / ways;
        if (strategy_.dp && *strategy_.dp != dp) return badInput("", fmt::format("dp is {}, but {} devices leave {}", *strategy_.dp, record_.hardware.gpus, dp));
        std::optional<std::int64_t> perRank;  // samples of one data-parallel rank in a step
        if (strategy_.globalBatch) {
            if (*strategy_.globalBatch % dp != 0) return badInput("", fmt::format("a global batch of {} does not divide over {} data-parallel ranks", *strategy_.globalBatch, dp));
            perRank = *strategy_.globalBatch / dp;
        } else if (strategy_.batchPerDp) {
            perRank = *strategy_.batchPerDp;
        } else if (strategy_.globalBatchTokens && record_.model.seqLen) {
            perRank = std::max<std::int64_t>(1, static_cast<std::int64_t>(*strategy_.globalBatchTokens / static_cast<double>(*record_.model.seqLen * dp)));
        }
        if (!strategy_.microBatch && !perRank) return badInput("", "neither micro_batch nor global_batch is stated");
        // A batch "per data-parallel rank" goes through in one piece unless a pipeline or a stated accumulation cuts it.
        const bool whole = strategy_.batchPerDp && strategy_.pp == 1 && !strategy_.gradAccum;
        const std::int64_t micro = strategy_.microBatch ? *strategy_.microBatch : whole ? *perRank : assumedMicroBatch(*perRank);
        training()["micro_batch"] = micro;
        if (perRank && *perRank % micro != 0) return badInput("", fmt::format("{} samples per data-parallel rank are no multiple of micro_batch {}", *perRank, micro));
        const std::int64_t accum = perRank ? *perRank / micro : strategy_.gradAccum.value_or(1);
        if (strategy_.gradAccum && strategy_.microBatch && accum != *strategy_.gradAccum)
            return badInput("", fmt::format("micro_batch {} × grad_accum {} × {} ranks is not the global batch {}", micro, *strategy_.gradAccum, dp, *strategy_.globalBatch));
        training()["grad_accum"] = accum;
        return {};
    }

    /// What an interleaved pipeline needs, where nothing but the global batch is stated.
    bool microBatchesFillStages() const {
        const std::int64_t dp = record_.hardware.gpus / std::max<std::int64_t>(1, strategy_.tp * strategy_.pp * strategy_.cp);
        return strategy_.globalBatch && dp > 0 && *strategy_.globalBatch / dp / strategy_.microBatch.value_or(1) % strategy_.pp == 0;
    }

    /// A pipeline is fed in the smallest pieces; else as much as keeps a device busy: 8,192 tokens, by powers of two.
    std::int64_t assumedMicroBatch(std::int64_t perRank) {
        const std::int64_t tokens = std::max<std::int64_t>(1, record_.model.seqLen.value_or(8192) / strategy_.cp);
        std::int64_t micro = 1;
        if (strategy_.pp == 1)
            while (micro * 2 * tokens <= 8192 && perRank % (micro * 2) == 0) micro *= 2;
        assume(fmt::format("micro_batch not stated: {}", micro));
        out_.microBatchOpen = true;
        return micro;
    }

    const PublishedRecord& record_;
    const Catalogs& catalogs_;
    const PublishedStrategy& strategy_;
    std::string kind_, notes_;
    ModelStyle style_ = ModelStyle::Llama;
    Trainer trainer_ = Trainer::Torch;
    bool torchtune_ = false;
    int techniques_ = 0;  // of torchtune's: packed, compiled, chunked loss, recompute, optimizer in backward, offloaded activations, 8-bit AdamW, in this order
    Cluster cluster_;
    MappedRecord out_;
};

}  // namespace

Result<MappedRecord> toScenario(const PublishedRecord& record, const Catalogs& catalogs) { return Mapper(record, catalogs).run(); }

void takeFullRecompute(MappedRecord& mapped, const std::string& why) {
    CHECK(mapped.recomputeOpen);
    mapped.recomputeOpen = false;
    mapped.scenario.training.recompute = Recompute::Full;
    mapped.document["training"]["recompute"] = "full";
    std::replace(mapped.assumed.begin(), mapped.assumed.end(), std::string(kNoRecompute), "recompute not stated: full, as " + why);
}

Result<double> measuredStepSeconds(const PublishedRecord& record, const Scenario& scenario) {
    const PublishedSpeed& speed = record.speed;
    if (speed.stepSeconds) return *speed.stepSeconds;
    const auto batch = static_cast<double>(scenario.globalBatch());
    const auto gpus = static_cast<double>(scenario.cluster.deviceCount());
    const auto seqLen = static_cast<double>(scenario.training.seqLen);
    if (speed.samplesPerSecond) return batch / *speed.samplesPerSecond;
    if (speed.tokensPerSecond && seqLen > 0) return batch * seqLen / *speed.tokensPerSecond;
    if (speed.tokensPerSecondPerGpu && seqLen > 0) return batch * seqLen / (*speed.tokensPerSecondPerGpu * gpus);

    TRY(const Workload workload, buildWorkload(scenario.model, scenario.training));
    double flops = modelFlopsPerSample(scenario.model, workload);
    if (const auto* spec = std::get_if<TransformerSpec>(&scenario.model.architecture)) {
        if (has(record.notes, "causal attention")) flops -= 3.0 * static_cast<double>(spec->layers * spec->heads * (spec->headDim + spec->valueDim())) * seqLen * seqLen;
        if (has(record.notes, "without the embedding's lookup")) flops -= 6.0 * static_cast<double>(spec->vocab * spec->hidden) * seqLen;
    }
    double perGpu = 0;  // FLOP/s
    if (speed.tflopsPerGpu) {
        perGpu = *speed.tflopsPerGpu * 1e12;
    } else if (speed.mfu) {
        const bool fp32 = scenario.training.precision.math == DType::Fp32 || scenario.training.precision.math == DType::Tf32;
        TRY(const double peak, peakFlops(scenario.cluster.nodes.front().kind.device, fp32 ? scenario.training.precision.math : DType::Bf16));
        perGpu = *speed.mfu * peak;
    } else {
        return badInput("", "neither a step time nor a throughput or FLOPs rate of this model is given");
    }
    return flops * batch / (perGpu * gpus);
}

}  // namespace ringside
