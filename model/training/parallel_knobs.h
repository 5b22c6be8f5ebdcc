// The knobs of a ParallelConfig by key: one table that reading, writing and checking share.
#pragma once

#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/base/value_spec.h"
#include "model/training/parallel_config.h"

namespace ringside {

/// Every key that may stand under "strategy" besides "name", in the order of the struct.
std::vector<std::string> parallelKnobKeys();
/// Sets the knob `key` from its value in a scenario; the error says what was expected. REQUIRES: key is one of parallelKnobKeys().
Result<void> readParallelKnob(ParallelConfig& config, const std::string& key, const JsonCursor& value);
/// The value as a scenario holds it; null where the strategy's default applies.
Json parallelKnob(const ParallelConfig& config, const std::string& key);
/// What the knob may be. REQUIRES as above.
ValueSpec parallelKnobSpec(const std::string& key);
/// What `--help` shows as the knob's value: "N", "MIB", "true|false", "none|fp16|…".
std::string parallelKnobType(const std::string& key);

}  // namespace ringside
