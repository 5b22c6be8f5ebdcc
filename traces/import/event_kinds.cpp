#include "traces/import/event_kinds.h"

#include <cctype>
#include <string>

namespace ringside {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool waits(std::string_view name) { return contains(name, "Synchronize") || contains(name, "WaitEvent") || contains(name, "_synchronize"); }

}  // namespace

EventKind eventKindOf(std::string_view category, std::string_view name) {
    if (category == "cpu_op" || category == "Operator") return EventKind::Operator;
    if (category == "kernel" || category == "Kernel" || category == "concurrent_kernel") return EventKind::Kernel;
    if (category == "python_function") return EventKind::Python;
    if (category == "user_annotation") return EventKind::Mark;
    if (category == "gpu_user_annotation") return EventKind::DeviceMark;
    if (category == "gpu_memcpy" || category == "Memcpy") return EventKind::Memcpy;
    if (category == "gpu_memset" || category == "Memset") return EventKind::Memset;
    if (category == "cuda_sync") return EventKind::DeviceSync;
    if (category == "overhead" || category == "cuda_profiler_range") return EventKind::Overhead;
    if (category == "Trace") return EventKind::Span;
    // "cuda_runtime", "Runtime", "hip_runtime", "xpu_runtime", "mtia_runtime", "cuda_driver", …
    if (category.ends_with("runtime") || category.ends_with("Runtime") || category.ends_with("_driver")) return waits(name) ? EventKind::RuntimeSync : EventKind::Runtime;
    return EventKind::Unknown;
}

bool isOnDevice(EventKind kind) {
    return kind == EventKind::Kernel || kind == EventKind::Memcpy || kind == EventKind::Memset || kind == EventKind::DeviceMark || kind == EventKind::DeviceSync;
}

bool isCommunicationKernel(std::string_view name) { return name.starts_with("nccl") || name.starts_with("rccl") || contains(name, "ncclDevKernel") || contains(name, "ncclKernel"); }

bool isGlooRange(std::string_view name) { return name.starts_with("gloo:"); }

bool isOptimizerRange(std::string_view name) { return name.starts_with("Optimizer.step"); }

bool categoryFromName(std::string_view name, SliceCategory& category) {
    for (int c = 0; c <= static_cast<int>(SliceCategory::Marker); ++c)
        if (name == nameOf(static_cast<SliceCategory>(c))) {
            category = static_cast<SliceCategory>(c);
            return true;
        }
    return false;
}

bool trackKindFromName(std::string_view name, TrackKind& kind) {
    for (int k = 0; k <= static_cast<int>(TrackKind::Copy); ++k)
        if (name == nameOf(static_cast<TrackKind>(k))) {
            kind = static_cast<TrackKind>(k);
            return true;
        }
    return false;
}

}  // namespace ringside
