#include "calibrate/measure/calibration_models.h"

#include <fmt/format.h>

namespace ringside {
namespace {

Json scenario(Json model, int batch, const char* optimizer) {
    return {{"model", std::move(model)}, {"device", "cpu"}, {"devices", 1}, {"strategy", "single"}, {"training", {{"micro_batch", batch}, {"precision", "fp32"}, {"optimizer", optimizer}}}};
}

CalibrationModel mlp(std::vector<int> widths, int batch, const char* activation, const char* optimizer) {
    std::string name = "mlp";
    for (const int width : widths) name += fmt::format("-{}", width);
    return {fmt::format("{}-b{}-{}", name, batch, optimizer), scenario({{"model_type", "mlp"}, {"widths", widths}, {"activation", activation}}, batch, optimizer)};
}

CalibrationModel gpt(int layers, int hidden, int heads, int vocab, int length, int batch, const char* optimizer) {
    return {fmt::format("gpt-{}x{}-v{}-s{}-b{}-{}", hidden, layers, vocab, length, batch, optimizer),
            scenario({{"model_type", "gpt2"}, {"n_layer", layers}, {"n_embd", hidden}, {"n_head", heads}, {"vocab_size", vocab}, {"n_positions", length}}, batch, optimizer)};
}

CalibrationModel llama(int layers, int hidden, int heads, int kvHeads, int inner, int vocab, int length, int batch, const char* optimizer) {
    return {fmt::format("llama-{}x{}-v{}-s{}-b{}-{}", hidden, layers, vocab, length, batch, optimizer),
            scenario({{"model_type", "llama"}, {"num_hidden_layers", layers}, {"hidden_size", hidden}, {"num_attention_heads", heads}, {"num_key_value_heads", kvHeads},
                      {"intermediate_size", inner}, {"vocab_size", vocab}, {"max_position_embeddings", length}},
                     batch, optimizer)};
}

CalibrationModel resnet(std::vector<int> depths, const char* block, int image, int classes, int batch, const char* optimizer) {
    std::string name = "resnet";
    for (const int depth : depths) name += fmt::format("-{}", depth);
    return {fmt::format("{}-{}-i{}-b{}-{}", name, block, image, batch, optimizer),
            scenario({{"model_type", "resnet"}, {"depths", depths}, {"layer_type", block}, {"image_size", image}, {"num_labels", classes}}, batch, optimizer)};
}

}  // namespace

std::vector<CalibrationModel> strategyModels(int ranks) {
    std::vector<CalibrationModel> models;
    const std::vector<CalibrationModel> bases = {gpt(2, 224, 4, 2500, 96, 3, "adamw"), mlp({1200, 1200, 600, 100}, 48, "relu", "adamw"), resnet({1, 1, 1, 1}, "basic", 48, 100, 2, "momentum")};
    for (const Json& strategy : {Json{{"name", "ddp"}, {"bucket_mb", 2}}, Json{{"name", "zero1"}, {"reduce_bucket_size", 2e6}}, Json{{"name", "zero3"}, {"reduce_bucket_size", 2e6}}, Json{{"name", "fsdp2"}},
                                 Json{{"name", "fsdp1"}}, Json{{"name", "naive"}}, Json{{"name", "ps-sharded"}}})
        for (const CalibrationModel& base : bases) {
            CalibrationModel& model = models.emplace_back(base);
            model.name += fmt::format("-{}", strategy["name"].get<std::string>());
            model.document["devices"] = ranks;
            model.document["strategy"] = strategy;
            // Gradients that were added up are in the caches when a bucket takes them, fresh ones are not: some of each.
            model.document["training"]["grad_accum"] = &base == &bases.front() ? 2 : 1;
        }
    return models;
}

std::vector<CalibrationModel> calibrationModels(CalibrationEffort effort) {
    std::vector<CalibrationModel> models = {
        mlp({256, 512, 512, 64}, 32, "gelu", "adamw"),
        mlp({1024, 1024, 1024, 256}, 128, "relu", "adamw"),
        mlp({512, 2048, 512, 128}, 64, "gelu", "sgd"),
        gpt(1, 128, 4, 1000, 64, 2, "adamw"),
        gpt(2, 256, 4, 3000, 128, 4, "adamw"),
        gpt(1, 512, 8, 8000, 192, 2, "adamw"),
        llama(2, 192, 6, 3, 512, 2000, 96, 3, "adamw"),
        llama(1, 448, 7, 7, 1280, 5000, 160, 2, "adamw-fused"),
        resnet({1, 1}, "basic", 48, 50, 2, "sgd"),
        resnet({1, 1, 1, 1}, "basic", 64, 100, 4, "momentum"),
        // Tensors beyond the caches.
        mlp({2048, 2048, 1024, 512}, 256, "gelu", "adamw"),
        gpt(1, 256, 4, 6000, 160, 16, "adamw"),
        gpt(1, 640, 10, 16000, 128, 3, "adamw"),
        llama(1, 320, 5, 5, 896, 8000, 224, 6, "adamw"),
        resnet({1, 1, 1}, "basic", 80, 40, 12, "adamw"),
    };
    if (effort == CalibrationEffort::Trial) return {models[0], models[3]};
    if (effort == CalibrationEffort::Quick) return models;
    const std::vector<CalibrationModel> more = {
        mlp({2048, 2048, 2048, 512}, 64, "silu", "adamw"),
        resnet({1, 1}, "basic", 112, 20, 8, "sgd"),
        gpt(1, 1024, 16, 2000, 256, 2, "adamw"),
        mlp({128, 128, 128, 32}, 16, "relu", "adamw-fused"),
        mlp({4096, 1024, 256}, 256, "gelu", "momentum"),
        gpt(2, 384, 6, 6000, 256, 2, "adamw"),
        gpt(1, 768, 12, 12000, 128, 2, "adamw"),
        gpt(4, 192, 3, 1500, 48, 8, "adamw-fused"),
        llama(2, 320, 5, 5, 896, 4000, 256, 2, "adamw"),
        llama(1, 640, 10, 2, 1728, 9000, 112, 4, "adam"),
        resnet({1, 1, 1}, "bottleneck", 64, 80, 4, "sgd"),
        resnet({2, 2, 2, 2}, "basic", 96, 100, 2, "adamw"),
    };
    models.insert(models.end(), more.begin(), more.end());
    if (effort == CalibrationEffort::Normal) return models;
    const std::vector<CalibrationModel> most = {
        mlp({4096, 4096, 4096, 1024}, 32, "gelu", "adamw"),     mlp({768, 3072, 768, 300}, 512, "silu", "adamw"),
        gpt(4, 512, 8, 16000, 384, 1, "adamw"),                 gpt(2, 1024, 16, 8000, 128, 1, "adamw"),
        gpt(2, 640, 10, 20000, 96, 6, "adamw"),                 llama(2, 768, 12, 4, 2048, 16000, 192, 2, "adamw"),
        llama(4, 256, 4, 4, 688, 3000, 512, 1, "adamw-fused"),  resnet({2, 2, 2, 2}, "bottleneck", 64, 200, 4, "adamw"),
        resnet({3, 4, 6, 3}, "basic", 64, 100, 2, "momentum"),  resnet({1, 1, 1, 1}, "basic", 128, 100, 2, "sgd"),
    };
    models.insert(models.end(), most.begin(), most.end());
    return models;
}

std::vector<CalibrationModel> referenceModels() {
    const std::vector<CalibrationModel> models = calibrationModels(CalibrationEffort::Quick);
    return {models[0], models[1], models[3], models[4], models[9]};
}

}  // namespace ringside
