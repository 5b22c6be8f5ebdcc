// Convolutional networks as workloads: ResNet (basic and bottleneck, stride in the 3 × 3 convolution) and VGG, with the
// names and registration order of torchvision.
#pragma once

#include "model/workload/model_spec.h"

namespace ringside {

Result<void> validate(const ConvNetSpec& spec, const std::string& name);
/// REQUIRES: validate(spec) holds.
Workload buildConvNet(const ConvNetSpec& spec, const TrainingConfig& training);

}  // namespace ringside
