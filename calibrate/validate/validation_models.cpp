#include "calibrate/validate/validation_models.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringside {
namespace {

Json scenario(Json model, int batch, const char* optimizer) {
    return {{"model", std::move(model)}, {"training", {{"micro_batch", batch}, {"precision", "fp32"}, {"optimizer", optimizer}}}};
}

ValidationModel mlp(std::vector<int> widths, int batch, const char* activation, const char* optimizer) {
    return {fmt::format("mlp-{}-b{}", fmt::join(widths, "-"), batch), scenario({{"model_type", "mlp"}, {"widths", widths}, {"activation", activation}}, batch, optimizer)};
}

ValidationModel gpt(int layers, int hidden, int heads, int vocab, int length, int batch) {
    return {fmt::format("gpt-{}x{}-s{}-b{}", hidden, layers, length, batch),
            scenario({{"model_type", "gpt2"}, {"n_layer", layers}, {"n_embd", hidden}, {"n_head", heads}, {"vocab_size", vocab}, {"n_positions", length}}, batch, "adamw")};
}

ValidationModel llama(int layers, int hidden, int heads, int kvHeads, int inner, int vocab, int length, int batch) {
    return {fmt::format("llama-{}x{}-s{}-b{}", hidden, layers, length, batch),
            scenario({{"model_type", "llama"}, {"num_hidden_layers", layers}, {"hidden_size", hidden}, {"num_attention_heads", heads}, {"num_key_value_heads", kvHeads},
                      {"intermediate_size", inner}, {"vocab_size", vocab}, {"max_position_embeddings", length}},
                     batch, "adamw")};
}

ValidationModel resnet(std::vector<int> depths, const char* block, int image, int classes, int batch, const char* optimizer) {
    return {fmt::format("resnet-{}-{}-i{}-b{}", fmt::join(depths, "-"), block, image, batch),
            scenario({{"model_type", "resnet"}, {"depths", depths}, {"layer_type", block}, {"image_size", image}, {"num_labels", classes}}, batch, optimizer)};
}

}  // namespace

std::vector<ValidationModel> singleRankModels() {
    return {
        mlp({640, 2560, 640, 200}, 80, "gelu", "adamw"),
        mlp({1536, 1536, 768, 384}, 96, "relu", "adamw"),
        mlp({3072, 1536, 1536, 96}, 160, "gelu", "sgd"),
        gpt(2, 192, 3, 2500, 80, 4),
        gpt(3, 320, 5, 5000, 160, 3),
        gpt(2, 576, 9, 7000, 112, 2),
        llama(2, 256, 4, 2, 704, 3500, 144, 3),
        llama(1, 576, 9, 3, 1536, 6000, 128, 2),
        resnet({1, 1, 1}, "basic", 56, 80, 3, "sgd"),
        resnet({2, 2}, "basic", 64, 60, 4, "momentum"),
        resnet({1, 1, 1, 1}, "basic", 80, 120, 3, "momentum"),
    };
}

std::vector<ValidationModel> severalRankModels() {
    return {
        mlp({1536, 1536, 768, 384}, 96, "relu", "adamw"),
        gpt(3, 320, 5, 5000, 160, 3),
        resnet({1, 1, 1, 1}, "basic", 80, 120, 3, "momentum"),
    };
}

std::vector<ValidationModel> validationModels() {
    std::vector<ValidationModel> all = singleRankModels();
    for (ValidationModel& model : severalRankModels())
        if (std::none_of(all.begin(), all.end(), [&](const ValidationModel& known) { return known.name == model.name; })) all.push_back(std::move(model));
    return all;
}

std::vector<std::string> validationStrategies(int ranks) {
    if (ranks == 1) return {"single"};
    return {"naive", "ddp:bucket_mb=1", "ddp:bucket_mb=4", "ddp", "ddp:grad_accum=2", "picotron", "zero1", "zero2", "zero3", "zero-redundancy-optimizer", "fsdp1", "fsdp2",
            "ps-device0", "ps-host", "ps-sharded"};
}

}  // namespace ringside
