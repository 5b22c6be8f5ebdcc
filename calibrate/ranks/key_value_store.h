// KeyValueStore: how ranks that do not know each other yet exchange a few bytes: addresses, "I am here".
//
// A store is used by one thread at a time. Its failures are runtime failures. Three implementations: tcp_store (any machines),
// folder_store (a folder that all see), memory_store (threads of one process).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "model/base/result.h"

namespace ringside {

class KeyValueStore {
public:
    virtual ~KeyValueStore() = default;

    virtual Result<void> set(const std::string& key, const std::string& value) = 0;
    /// Waits until somebody has set the key, at most `timeout`.
    virtual Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) = 0;
    virtual Result<bool> has(const std::string& key) = 0;
    /// Adds to a number (0 if nobody has set it) and returns the sum; no two callers see the same sum of positive deltas.
    virtual Result<std::int64_t> add(const std::string& key, std::int64_t delta) = 0;
    /// This machine's address on the way to the store, as digits; empty where the store knows of none.
    virtual std::string localAddress() const { return {}; }
};

}  // namespace ringside
