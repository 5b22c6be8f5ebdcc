// The keys of a scenario: one table that reading, `--help` and forms share. Knobs of strategies have their own (parallel_knobs.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/base/value_spec.h"

namespace ringside {

struct ScenarioKey {
    std::string path;          ///< "training.micro_batch"
    ValueSpec spec;
    std::string defaultValue;  ///< as text; empty: none
    std::string help;          ///< one line, without the default
};

/// Every key that says something about the run, in the order of docs/reference/scenario.md.
const std::vector<ScenarioKey>& scenarioKeys();
/// REQUIRES: the table has it.
const ScenarioKey& scenarioKey(std::string_view path);

/// The names that may stand in a section ("training"), or at the top ("": sections and what only describes the file included). Strategies: the knobs of all.
std::vector<std::string> keysOfSection(std::string_view section);
/// "tokens per sample (default: the model's own)"; the words that it may be come first where there are few.
std::string helpOf(const ScenarioKey& key);

}  // namespace ringside
