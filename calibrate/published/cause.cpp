#include "calibrate/published/cause.h"

#include <algorithm>

namespace ringside {

std::string_view nameOf(Cause cause) {
    switch (cause) {
        case Cause::Matmul: return "matmul";
        case Cause::Convolution: return "convolution";
        case Cause::Attention: return "attention";
        case Cause::MemoryBound: return "memory-bound";
        case Cause::Communication: return "communication";
        case Cause::Host: return "host";
        case Cause::Optimizer: return "optimizer";
        case Cause::Bubble: return "bubble";
    }
    return "?";
}

CauseShares causesOf(const Prediction& prediction, bool pipeline) {
    const PathShares& path = prediction.shares;
    const double bubble = pipeline && prediction.stepSeconds > 0 ? std::clamp(prediction.breakdown.idle.seconds() / prediction.stepSeconds, 0.0, 1.0) : 0;
    CauseShares shares{path.gemm, path.convolution, path.attention, path.memory, path.communication, path.host, path.optimizer, 0};
    // The path through a pipeline never idles: it goes by way of other ranks while this one waits.
    for (double& share : shares) share *= 1 - bubble;
    shares[static_cast<std::size_t>(Cause::Bubble)] = bubble;
    return shares;
}

Cause dominant(const CauseShares& shares) { return static_cast<Cause>(std::max_element(shares.begin(), shares.end()) - shares.begin()); }

}  // namespace ringside
