// ZeRO-Offload and ZeRO-Infinity: the optimizer's state in host memory or on NVMe, its step on the host's processor, and the
// copies of gradients and parameters that this needs (deepspeed/runtime/zero, runtime/swap_tensor).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/strategy/step_writer.h"

namespace ringside {

/// Devices whose copies share one PCIe uplink.
int devicesSharingUplink(const Cluster& cluster);

/// A slice of reduced gradients that goes to the host, and where it is.
struct GradientSlice {
    std::int64_t elements = 0;
    BufferId buffer = kNoBuffer;
    std::uint16_t part = 0;  ///< bucket, for names
};

class HostOptimizer {
public:
    struct Options {
        bool nvme = false;
        bool accumulatesOnHost = false;  ///< gradients of earlier micro-steps wait on the host (stages 2 and 3)
        bool roundTrip = false;          ///< stage 3 sends a slice to its host buffer and back before anything else
        bool parametersOnHost = false;   ///< the updated 16-bit parameters stay there
    };
    /// Declares the state. `shards`: what this rank updates, one target per sub-group.
    HostOptimizer(StepWriter& step, std::span<const OptimizerTarget> shards, const Options& options);

    /// A reduced slice leaves the device, on `stream`; added to what earlier micro-steps left on the host. At the boundary it
    /// becomes fp32 on the device first, which doubles its bytes on the way. Returns the last task.
    TaskId takeGradients(StepWriter& step, StreamId stream, const GradientSlice& slice, bool first, bool boundary);
    /// The step: host work over all sub-groups, then parameters back to the device. The host waits for gradients first.
    void update(StepWriter& step);

private:
    BufferId hostBuffer(StepWriter& step, Bytes bytes, BufferRole role, DType dtype) const;
    TaskId toHost(StepWriter& step, StreamId stream, Bytes bytes, BufferId source, BufferId target, std::uint16_t part) const;
    TaskId toDevice(StepWriter& step, StreamId stream, Bytes bytes, BufferId source, BufferId target, std::uint16_t part) const;
    double hostBytes(const StepWriter& step, std::int64_t elements) const;

    Options options_;
    std::vector<OptimizerTarget> shards_;
    int sharing_;
    DType dtype_;  ///< of parameters and of gradients on the way
    BufferId accumulated_ = kNoBuffer, mainGradients_ = kNoBuffer, parameters_ = kNoBuffer;
    StreamId storage_ = 0;
    std::optional<TaskId> lastGradient_;
};

}  // namespace ringside
