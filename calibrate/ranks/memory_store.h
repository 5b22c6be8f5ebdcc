// MemoryStore: a KeyValueStore for ranks that are threads of one process. Unlike the others it may be used by many threads at once.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "calibrate/ranks/key_value_store.h"

namespace ringside {

class MemoryStore : public KeyValueStore {
public:
    Result<void> set(const std::string& key, const std::string& value) override;
    Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override;
    Result<bool> has(const std::string& key) override;
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string> values_;
};

}  // namespace ringside
