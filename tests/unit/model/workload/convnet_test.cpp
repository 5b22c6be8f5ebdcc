// Convolutions of every kind as kernels: groups, depthwise ones, squeeze-and-excitation, the layout of images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/catalog/model_catalog.h"
#include "model/workload/hf_config.h"

namespace ringside {
namespace {

TrainingConfig imagesOf(std::int64_t batch, const char* precision, MemoryFormat format = MemoryFormat::Contiguous) {
    TrainingConfig training;
    training.microBatch = batch;
    training.precision = precisionByName(precision).value();
    training.memoryFormat = format;
    return training;
}

Workload build(const char* name, const TrainingConfig& training) { return buildWorkload(ModelCatalog::builtin().value().find(name).value(), training).value(); }

const LayerType& layerNamed(const Workload& workload, const std::string& name) {
    const auto found = std::find_if(workload.layers.begin(), workload.layers.end(), [&](const Layer& layer) { return layer.name == name; });
    return workload.types[static_cast<std::size_t>(found->type)];
}

const Op& opNamed(const LayerType& type, const std::string& name) {
    return *std::find_if(type.ops.begin(), type.ops.end(), [&](const Op& op) { return op.name == name; });
}

const KernelWork& kernelNamed(const std::vector<KernelWork>& kernels, std::string_view name) {
    return *std::find_if(kernels.begin(), kernels.end(), [&](const KernelWork& kernel) { return kernel.name == name; });
}

TEST(GroupedConvolution, ComputesEachOutputFromItsGroupOnly) {
    // The first block of ResNeXt's layer1: 128 inner channels in 32 groups of 4; 3 · 3 · 4 multiply-adds per output.
    const Workload workload = build("resnext-50-32x4d", imagesOf(2, "fp32"));
    const LayerType& block = layerNamed(workload, "layer1.0");
    const Op& op = opNamed(block, "conv2");
    EXPECT_EQ(op.attributes[4], 32);
    EXPECT_THAT(block.parameters[static_cast<std::size_t>(op.parameters[0])].shape, testing::ElementsAre(128, 4, 3, 3));
    EXPECT_DOUBLE_EQ(kernelNamed(op.forward, "convolution").flops, 2.0 * 2 * 56 * 56 * 128 * 36);
    EXPECT_EQ(kernelNamed(op.forward, "convolution").shape.k, 32 * 9) << "but a kernel works on blocks of 32 channels";
}

TEST(GroupedConvolution, OfResNeXtKeepsThePublishedFlops) {
    // torchvision's table: 4.23 billion multiply-adds.
    EXPECT_NEAR(forwardFlops(build("resnext-50-32x4d", imagesOf(1, "fp32"))) / 2, 4.23e9, 0.03e9);
}

TEST(DepthwiseConvolution, GoesElementByElementOverEveryTap) {
    const Workload workload = build("efficientnet-b0", imagesOf(2, "fp16-autocast"));
    // features.3.0: 144 hidden channels, 5 × 5, stride 2, from 56 to 28 pixels.
    const Op& op = opNamed(layerNamed(workload, "features.3.0"), "block.1.0");
    const KernelWork& forward = kernelNamed(op.forward, "convolution");
    EXPECT_EQ(forward.cls, KernelClass::Memory);
    EXPECT_DOUBLE_EQ(forward.elements, 2.0 * 144 * 28 * 28 * 25);
    EXPECT_EQ(op.attributes[4], 144);
}

TEST(SqueezeExcitation, ScalesTheChannelsByWhatTwoLinearLayersSay) {
    const Workload workload = build("se-resnext-101-32x4d", imagesOf(2, "fp32"));
    const LayerType& block = layerNamed(workload, "layer2.1");
    EXPECT_THAT(block.values[static_cast<std::size_t>(opNamed(block, "se.fc1").outputs[0])].shape, testing::ElementsAre(2, 512 / 16));
    const Op& scale = opNamed(block, "se.scale");
    EXPECT_EQ(scale.kind, OpKind::ChannelScale);
    EXPECT_EQ(block.values[static_cast<std::size_t>(scale.inputs[0])].shape, block.values[static_cast<std::size_t>(scale.outputs[0])].shape);
    // Its input is read by the mean and by the product: one sum of gradients.
    const Op& mean = opNamed(block, "se.avgpool");
    EXPECT_EQ(std::count_if(mean.backward.begin(), mean.backward.end(), [](const KernelWork& k) { return k.name == "gradient add"; }), 1);
}

TEST(InputGradientOfAConvolution, IsAProductOverTheInputsPixels) {
    // layer3.0.conv2: 256 channels, 3 × 3, stride 2, from 28 to 14 pixels: as many FLOPs as forward.
    const Workload workload = build("resnet-50", imagesOf(1, "fp32"));
    const Op& op = opNamed(layerNamed(workload, "layer3.0"), "conv2");
    const KernelWork& gradient = kernelNamed(op.backward, "convolution input gradient");
    EXPECT_EQ(gradient.shape, (GemmShape{1, 28 * 28, 256, 256 * 9 / 4}));
    EXPECT_DOUBLE_EQ(gradient.flops, kernelNamed(op.forward, "convolution").flops);
}

TEST(MemoryFormat, OfContiguousImagesMakesTensorCoresTranspose) {
    const auto transposed = [](const char* precision, MemoryFormat format) {
        const Workload workload = build("resnet-50", imagesOf(4, precision, format));
        const Op& op = opNamed(layerNamed(workload, "layer1.1"), "conv2");
        return kernelNamed(op.forward, "convolution").transposedBytes;
    };
    const double images = 2.0 * (2 * 4 * 64 * 56 * 56);  // input and output, two bytes each
    EXPECT_DOUBLE_EQ(transposed("fp16-autocast", MemoryFormat::Contiguous), images);
    EXPECT_DOUBLE_EQ(transposed("tf32", MemoryFormat::Contiguous), 2 * images);
    EXPECT_DOUBLE_EQ(transposed("fp16-autocast", MemoryFormat::ChannelsLast), 0);
    EXPECT_DOUBLE_EQ(transposed("fp32", MemoryFormat::Contiguous), 0) << "fp32's kernels read NCHW";
}

TEST(MaskedPredictions, ShrinkBertsHeadToTheMaskedTokens) {
    const char* config = R"j({"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "vocab_size": 1000, "architectures": ["BertForPreTraining"]})j";
    const auto logits = [&](const char* predictions) {
        Json json = Json::parse(config);
        if (*predictions) json["max_predictions_per_seq"] = std::stoi(predictions);
        TrainingConfig training = imagesOf(3, "fp32");
        training.seqLen = 128;
        const Workload workload = buildWorkload(modelFromHfConfig(JsonCursor(json, "config")).value(), training).value();
        const LayerType& head = workload.types.back();
        return head.values[static_cast<std::size_t>(opNamed(head, "decoder").outputs[0])].shape;
    };
    EXPECT_THAT(logits(""), testing::ElementsAre(3, 128, 1000));
    EXPECT_THAT(logits("20"), testing::ElementsAre(3, 20, 1000));
}

}  // namespace
}  // namespace ringside
