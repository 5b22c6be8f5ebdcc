// Event kinds: what an event of a trace is, by the category and name that its writer gave it (docs/formats/torch-profiler.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/trace.h"

namespace ringside {

enum class EventKind : std::uint8_t {
    Unknown,           ///< no category of PyTorch's: a plain Chrome trace
    Kernel, Memcpy, Memset, DeviceMark, DeviceSync,  ///< on a stream of a device
    Operator, Runtime, RuntimeSync, Mark, Python, Overhead,  ///< on a thread
    Span,              ///< the profiler's own span of the whole trace
};

/// `category` as written: "kernel", "Kernel", "gpu_memcpy", "cuda_runtime", "xpu_driver", …; `name` tells a runtime call that waits.
EventKind eventKindOf(std::string_view category, std::string_view name);
bool isOnDevice(EventKind kind);

/// "ncclDevKernel_…", "ncclKernel_…", "rccl…": a device kernel that communicates.
bool isCommunicationKernel(std::string_view name);
/// "gloo:all_reduce" and its sisters: the annotation around a collective of Gloo's threads.
bool isGlooRange(std::string_view name);
/// "Optimizer.step#AdamW.step".
bool isOptimizerRange(std::string_view name);

/// "compute", "optimizer", … as nameOf(SliceCategory) writes them; false if it is no such word.
bool categoryFromName(std::string_view name, SliceCategory& category);
bool trackKindFromName(std::string_view name, TrackKind& kind);

}  // namespace ringside
