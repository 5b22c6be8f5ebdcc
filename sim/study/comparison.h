// Comparison: two predictions side by side: what was changed, what came of it, and where the difference comes from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"

namespace ringside {

/// A scenario key that differs; null where one side does not have it.
struct ChangedKey {
    std::string path;  ///< "training.micro_batch", "cluster.nodes[0].kind.device.name"
    Json a, b;
};

struct ComparedFigure {
    std::string name;            ///< "step_time_s", "compute", "forward attention.qkv"
    std::optional<double> a, b;  ///< empty: this side has none (tokens of an image model)
    double difference() const { return b.value_or(0) - a.value_or(0); }
    /// b / a − 1; empty where a is missing or 0, or b is missing.
    std::optional<double> change() const;
};

struct Comparison {
    std::vector<ChangedKey> scenario;       ///< in the order of the scenario
    std::vector<ComparedFigure> headline;   ///< step time with its band, throughput, utilisation, memory, bytes sent
    std::vector<ComparedFigure> breakdown;  ///< seconds by category
    std::vector<ComparedFigure> path;       ///< seconds of the critical path's items; the largest difference first
    std::vector<ComparedFigure> memory;     ///< bytes by category, at the peak
    std::string verdictA, verdictB;         ///< "fits", "tight", "out_of_memory"
    std::string sentence;                   ///< where the difference comes from
};

/// Both arguments are results, as `ringside predict --json` prints them. With different global batches the sentence speaks of
/// time per sample, as the steps do different work. Fails, naming `a` or `b`'s source, where a key is missing.
Result<Comparison> compareResults(const Json& a, const std::string& sourceA, const Json& b, const std::string& sourceB);

Json toJson(const Comparison& comparison);

}  // namespace ringside
