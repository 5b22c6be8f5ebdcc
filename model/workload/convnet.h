// Convolutional networks as workloads: ResNet (basic and bottleneck, stride in the 3 × 3 convolution; ResNeXt, with or without
// squeeze-and-excitation), VGG and EfficientNet (efficientnet.cpp), with the names and registration order of torchvision.
#pragma once

#include "model/workload/image_ops.h"
#include "model/workload/model_spec.h"

namespace ringside {

Result<void> validate(const ConvNetSpec& spec, const std::string& name);
/// What one layer hands to the next.
struct Carried {
    Shape shape;
    DType dtype;
};
Carried outputOf(const LayerType& type);

/// Registers a convolution's weight (and bias) under `name`.
WeightBias convolutionModule(LayerBuilder& layer, std::string_view name, std::int64_t from, std::int64_t to, const ConvolutionShape& window, bool bias);

/// REQUIRES: validate(spec) holds.
Workload buildEfficientNet(const ConvNetSpec& spec, const TrainingConfig& training);
/// REQUIRES: validate(spec) holds.
Workload buildConvNet(const ConvNetSpec& spec, const TrainingConfig& training);

}  // namespace ringside
