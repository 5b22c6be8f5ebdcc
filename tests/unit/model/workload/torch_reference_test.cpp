// What one forward keeps for backward, against what PyTorch kept. The figures were measured with PyTorch 2.15 (torchvision
// 0.29, transformers 5.22, SDPA attention, no dropout) on CPU: the storages that autograd saved, each once, without parameters
// and module buffers. docs/models/workloads.md has the table.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "model/catalog/model_catalog.h"

namespace ringside {
namespace {

/// The cross-entropy also keeps its labels and one float, the total weight; a workload lists neither.
constexpr Bytes kTotalWeight = 4;

Workload build(const std::string& name, std::int64_t microBatch, std::int64_t seqLen, const char* precision = "fp32") {
    TrainingConfig training;
    training.microBatch = microBatch;
    training.seqLen = seqLen;
    training.precision = precisionByName(precision).value();
    return buildWorkload(ModelCatalog::builtin().value().find(name).value(), training).value();
}

/// Storages kept for backward, each once: a view is its base, and a layer's input is the output of the layer before.
Bytes savedStorages(const Workload& workload) {
    using Storage = std::pair<std::size_t, int>;  // layer and value
    std::set<Storage> saved;
    Storage handedOn{0, 0};
    Bytes bytes = 0;
    for (std::size_t l = 0; l < workload.layers.size(); ++l) {
        const LayerType& type = workload.typeOf(l);
        std::map<int, Storage> base{{0, handedOn}};
        const auto baseOf = [&](int value) { return base.contains(value) ? base.at(value) : Storage{l, value}; };
        for (const Op& op : type.ops) {
            if (op.forward.empty()) base[op.outputs[0]] = baseOf(op.inputs[0]);
            for (const int value : op.saves)
                if (saved.insert(baseOf(value)).second)
                    bytes += workload.typeOf(baseOf(value).first).values[static_cast<std::size_t>(baseOf(value).second)].bytes();
        }
        handedOn = baseOf(type.output);
    }
    return bytes;
}

TEST(SavedForBackward, OfResNet18IsWhatPyTorchKept) {
    // 44,406,100 for two images: 16 bytes of labels and the loss's total weight apart.
    EXPECT_EQ(savedStorages(build("resnet18", 2, 0)), 44'406'100 - 16 - kTotalWeight);
}

TEST(SavedForBackward, OfResNet50IsWhatPyTorchKept) {
    EXPECT_EQ(savedStorages(build("resnet50", 2, 0)), 172'039'508 - 16 - kTotalWeight);
}

TEST(SavedForBackward, OfViTBaseIsWhatPyTorchKept) {
    // The classifier reads one token, a view: the whole output of the last norm stays.
    EXPECT_EQ(savedStorages(build("vit-b-16", 2, 0)), 236'329'380 - 16 - kTotalWeight);
}

TEST(SavedForBackward, OfBertBaseIsWhatPyTorchKept) {
    // 2 × 128 tokens. The token types, a module's buffer of 128 int64 expanded, are kept as well: 1,024 bytes.
    EXPECT_EQ(savedStorages(build("bert-base", 2, 128)), 152'781'844 - 1024 - 16 - kTotalWeight);
}

TEST(SavedForBackward, OfGpt2IsWhatPyTorchKeptButForItsPythonGelu) {
    // Hugging Face writes gelu_new as Python arithmetic, which keeps four tensors of 2 × 128 × 3072 floats where the fused
    // kernel keeps one: 12 × 3 × 3,145,728 bytes more. Then 2 × 128 labels and 128 position indices, int64.
    EXPECT_EQ(savedStorages(build("gpt2", 2, 128)), 317'480'964 - 12 * 3 * 3'145'728 - 2048 - 1024 - kTotalWeight);
}

TEST(Ready, ABiasComesBeforeItsWeightUnlessAutocastCastsThem) {
    // Order of the post-accumulate-grad hooks, measured with PyTorch 2.15 on CPU. Without autocast a bias is first; under
    // autocast nn.Linear's weight is, and Conv1D's bias (addmm takes the bias as its first argument).
    struct Row {
        const char* model;
        const char* precision;
        const char* op;
        const char* first;
    };
    const Row rows[] = {{"bert-base", "fp32", "intermediate.dense", "intermediate.dense.bias"},
                        {"bert-base", "bf16-autocast", "intermediate.dense", "intermediate.dense.weight"},
                        {"gpt2", "fp32", "mlp.c_fc", "mlp.c_fc.bias"},
                        {"gpt2", "bf16-autocast", "mlp.c_fc", "mlp.c_fc.bias"}};
    for (const Row& row : rows) {
        const Workload workload = build(row.model, 1, 128, row.precision);
        const LayerType& block = workload.typeOf(1);
        int found = 0;
        for (const Op& op : block.ops) {
            if (op.name != row.op) continue;
            ++found;
            ASSERT_EQ(op.parameters.size(), 2U);
            EXPECT_EQ(block.parameters[static_cast<std::size_t>(op.parameters.front())].name, row.first) << row.precision;
        }
        EXPECT_EQ(found, 1) << row.model;
    }
}

}  // namespace
}  // namespace ringside
