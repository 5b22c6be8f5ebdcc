// Cosines and sines of rotary position embeddings, made once per head size, base and length.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ringside {

/// Row t: d/2 cosines, then d/2 sines, of the angles t · base^(−2i/d).
using RotaryTable = std::vector<float>;

class RotaryTables {
public:
    /// At least `length` rows. Safe from several threads.
    std::shared_ptr<const RotaryTable> get(std::int64_t length, std::int64_t d, double base);

private:
    std::mutex mutex_;
    std::map<std::pair<std::int64_t, double>, std::shared_ptr<const RotaryTable>> tables_;
};

}  // namespace ringside
