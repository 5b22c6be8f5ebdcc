// A step drawn in the terminal: phases, one row per track of a rank, a ruler and a legend. Pure: Trace → text.
#pragma once

#include <cstdint>
#include <string>

#include "traces/trace.h"

namespace ringside {

struct TimelineOptions {
    int width = 100;          ///< columns of the terminal; at least 40 are used
    bool unicode = true;      ///< eighth blocks ▏▎▍▌▋▊▉█; else . - = #
    bool colour = false;      ///< ANSI colours by phase
    std::int64_t rank = 0;
};

/// A column is as full as its share of busy time (marks never count as busy); anything busy at all shows. The row "exposed"
/// repeats the communication that nothing hides. Ends with a newline. O(slices + rows × width).
std::string asciiTimeline(const Trace& trace, const TimelineOptions& options = {});

}  // namespace ringside
