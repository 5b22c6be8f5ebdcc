// Laying values over a scenario document so that they win: what the document said another way makes room for them.
//
// A scenario may say one thing in two ways (a cluster or a device count; two of three batches). Somebody who varies one of
// them over a file means the new value, not a contradiction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario.h"

namespace ringside {

/// The full path of a key as setScenarioKey takes it: "micro_batch" → "training.micro_batch", "strategy" → "strategy.name".
/// Fails for a key that no scenario has.
Result<std::string> scenarioPath(const std::string& key);

/// Removes what values for `paths` (as scenarioPath gives them) would contradict: "cluster" where the device, the device
/// count or the node comes anew, and the other way round; the one of three batches that follows from the other two.
void makeRoomFor(Json& document, const std::vector<std::string>& paths);

/// Sets the strategy by name. Settings that stand in the document and that only other strategies have are left out; an
/// unknown strategy or setting stays, for resolveScenario to refuse.
void setStrategy(Json& document, const std::string& name);

/// Sets the device count. A document with a cluster keeps its kind of node and gets as many as are needed, the last one never
/// partly filled. Fails for a cluster of several kinds.
Result<void> setDevices(Json& document, std::int64_t devices, const std::string& source, const Catalogs& catalogs);

/// {"training": {"micro_batch": 4}, "strategy": "ddp", "devices": 8} → ("training.micro_batch", 4), ("strategy.name", "ddp"),
/// ("devices", 8): the sections training, strategy, collectives and memory are taken key by key, all else whole.
Result<std::vector<std::pair<std::string, Json>>> patchEntries(const Json& patch, const std::string& source);

}  // namespace ringside
