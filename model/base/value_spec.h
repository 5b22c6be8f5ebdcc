// ValueSpec: what a setting may be. Tables of settings carry one per key, so that readers, help and forms agree on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringside {

enum class ValueKind : std::uint8_t {
    Flag,    ///< true or false
    Whole,   ///< a whole number in [min, max]
    Number,  ///< a number in [min, max]
    Word,    ///< one of `choices`
    Name,    ///< of a catalogue, or a path
    List,    ///< of words or objects; no range
};

struct ValueSpec {
    ValueKind kind = ValueKind::Flag;
    double min = 0, max = 0;                ///< of numbers
    std::vector<std::string> choices = {};  ///< of words
    std::string unit = {};                  ///< "MiB", "samples"; empty: none
};

}  // namespace ringside
