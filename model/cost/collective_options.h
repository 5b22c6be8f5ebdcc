// Collective options: what a user may set about a backend, apart from the cluster itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/cost/collective_kinds.h"
#include "model/cost/measurements.h"
#include "model/cost/nccl_achieved.h"

namespace ringside {

/// Which release's constants to use. The choice rule and several latencies changed between releases.
enum class NcclVersion : std::uint8_t { V2_27, V2_30 };

struct NcclOptions {
    NcclVersion version = NcclVersion::V2_30;
    std::optional<CollectiveAlgorithm> algorithm;  ///< force one (NCCL_ALGO)
    std::optional<CollectiveProtocol> protocol;    ///< force one (NCCL_PROTO)
    double latencyScale = 1, bandwidthScale = 1;   ///< of a profile; > 0. They scale the cost, never NCCL's own choice
    bool networkReduces = false;                   ///< switches reduce (SHARP): enables CollNet, and NVLS across nodes
    std::optional<NcclAchieved> achieved;          ///< of a profile; without it times are those of NCCL's tuner
};

/// Gloo over TCP. The figures are typical of Linux hosts, not of any particular one: a profile measured on the machine
/// replaces them (docs/models/gloo.md).
struct GlooOptions {
    std::optional<CollectiveAlgorithm> algorithm;  ///< of all-reduce: Ring (default), Bcube or HalvingDoubling
    double loopbackAlphaUs = 15;                   ///< per message between two processes of a host
    double loopbackGbPerS = 3;                     ///< of one such connection
    double tcpAlphaUs = 40;                        ///< per message between hosts, above the NIC's own latency
    double reduceGbPerS = 5;                       ///< one thread adding one buffer to another, bytes of the buffer per second
    bool reduceScatterIsAllReduce = true;          ///< as PyTorch's Gloo backend does it
    bool deviceTensors = false;                    ///< tensors live on the device: staged through host memory, both ways
    double latencyScale = 1, bandwidthScale = 1;   ///< of a profile; > 0
};

struct CollectiveOptions {
    NcclOptions nccl;
    GlooOptions gloo;
    std::shared_ptr<const std::vector<CollectiveCurve>> measured;  ///< of a profile; they win over the closed form. May be null
    double networkScale = 1;  ///< > 0; what-if factor on the transfer part of what was measured (the closed forms have their own)
};

}  // namespace ringside
