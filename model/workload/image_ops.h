// Image ops: convolution, batch norm, pooling and the reshaping around them. Images are [N, C, H, W].
#pragma once

#include <string_view>

#include "model/workload/layer_builder.h"

namespace ringside {

struct ConvolutionShape {
    std::int64_t kernel = 1, stride = 1, padding = 0;
    std::int64_t groups = 1;  ///< channels are cut into as many parts, each convolved alone; as many as channels: depthwise
};

/// Extent after a window: (extent + 2·padding − kernel) / stride + 1.
std::int64_t windowed(std::int64_t extent, const ConvolutionShape& window);

/// Square convolution to `channels`, priced as an implicit GEMM; a depthwise one as a kernel that goes element by element. No input
/// gradient where the input needs none (an image). REQUIRES: groups divide the channels on both sides.
int convolution(LayerBuilder& layer, std::string_view name, int x, std::int64_t channels, const ConvolutionShape& window, WeightBias parameters);

/// Training-mode batch norm; registers weight, bias and the running statistics under `name`.
int batchNorm(LayerBuilder& layer, std::string_view name, int x, WeightBias parameters);

/// The image times one factor per sample and channel; `factors` is [N, C].
int channelScale(LayerBuilder& layer, std::string_view name, int x, int factors);
/// Squeeze-and-excitation: the mean of each channel through two linear layers (squeeze, expand) and a sigmoid scales the channel.
int squeezeExcitation(LayerBuilder& layer, std::string_view name, int x, std::int64_t squeezed, OpKind inner, WeightBias squeeze, WeightBias expand);

int maxPool(LayerBuilder& layer, std::string_view name, int x, const ConvolutionShape& window);
/// Mean over windows so that H = W = `size` remain.
int averagePool(LayerBuilder& layer, std::string_view name, int x, std::int64_t size);

/// [N, …] → [N, product]: a view.
int flatten(LayerBuilder& layer, std::string_view name, int x);
/// [b, s, h] → [b, count, h]: chosen tokens of each sample, gathered.
int selectTokens(LayerBuilder& layer, std::string_view name, int x, std::int64_t count);
/// [b, s, h] → [b, h]: the first token of each sample.
int firstToken(LayerBuilder& layer, std::string_view name, int x);
/// [b, h, y, x] → [b, y·x + 1, h], with the class token in front.
int patchesToTokens(LayerBuilder& layer, std::string_view name, int x, int classToken);

}  // namespace ringside
