// ResultSummary: a prediction in the few figures that stand above a form, as text with units and as shares of a bar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/prediction.h"

namespace ringside::gui {

struct MemoryPart {
    std::string name;  ///< "parameters", …, "cached by the allocator"
    Bytes bytes = 0;
    double share = 0;  ///< of the capacity
    std::optional<MemoryCategory> category;  ///< its colour is the timeline's; empty: cached
};

struct ResultSummary {
    std::string step, band;              ///< "394 ms", "295 ms to 526 ms"
    std::string throughput, perDevice;   ///< "163 samples/s, 166 k tokens/s"
    std::string utilisation;             ///< "34.3 %"
    std::string exposed, hidden;         ///< "0 s (0.0 %)", "97.5 ms"
    double exposedShare = 0;             ///< of the step
    std::vector<MemoryPart> memory;      ///< what the peak is made of, largest category order of MemoryCategory; empty parts left out
    Bytes memoryUsed = 0, memoryCapacity = 0;
    MemoryVerdict verdict = MemoryVerdict::Fits;
    std::string memoryText;              ///< "48.1 GiB of 79.2 GiB: fits"
    std::vector<std::string> warnings;
};

ResultSummary summaryOf(const Scenario& scenario, const Prediction& prediction);

/// "−12.4 %", "+3.1 %", "no change" below a twentieth of a percent. REQUIRES: before > 0.
std::string changeText(double before, double after);

}  // namespace ringside::gui
