// Fit table: which figures of a profile are fitted to published measurements, and what each means. One line each; docs/models/published-fit.md
// shows the same table.
//
// The prior of a figure is the datasheet profile's own value before any fit, with its spread: a figure that no row speaks for stays there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ringside {

/// For what one value holds.
enum class FitScope : std::uint8_t { All, Generation, Device };
std::string_view nameOf(FitScope scope);  ///< "all devices", "a generation", "a device"

/// Rows that speak for a figure. They are fitted in this order, each stage on top of the one before.
enum class FitRows : std::uint8_t {
    Kernels,   ///< matmul and attention tables
    Training,  ///< steps
    Memory,    ///< peaks of a device as NVML sees them
};
std::string_view nameOf(FitRows rows);  ///< "kernel tables", "training runs", "memory peaks"

struct FitParameter {
    std::string_view key;   ///< as in `--set profile.KEY`
    FitScope scope = FitScope::All;
    FitRows rows = FitRows::Training;
    double min = 0, max = 0;        ///< bounds of the value
    std::string_view meaning;
    std::string_view also = {};     ///< a key that takes the same value
};

/// Constants of collectives are not among them: fitCollectives has its own table.
std::span<const FitParameter> fitParameters();

}  // namespace ringside
