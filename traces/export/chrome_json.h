// Chrome trace event JSON with Kineto's field names (docs/formats/chrome-trace.md): Perfetto, chrome://tracing and HTA read it.
#pragma once

#include <optional>
#include <string>

#include "model/base/result.h"
#include "traces/trace.h"

namespace ringside {

struct ChromeTraceOptions {
    /// Only this rank's tracks and counters, as the one-file-per-rank traces of PyTorch's profiler have them.
    std::optional<std::int64_t> rank;
    std::string deviceName;          ///< for deviceProperties; "simulated" if empty
    Bytes deviceMemory = 0;          ///< totalGlobalMem
    std::string backend = "nccl";
    std::int64_t firstStep = 0;      ///< the N of ProfilerStep#N
};

/// Time is exact: microseconds with three decimals, or six where a time is not a whole number of nanoseconds.
std::string chromeTraceJson(const Trace& trace, const ChromeTraceOptions& options = {});

/// Writes beside and renames.
Result<void> writeChromeTrace(const Trace& trace, const std::string& path);
Result<void> writeChromeTrace(const Trace& trace, const std::string& path, const ChromeTraceOptions& options);

}  // namespace ringside
