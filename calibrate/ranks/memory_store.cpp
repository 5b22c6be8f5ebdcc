#include "calibrate/ranks/memory_store.h"

#include <fmt/format.h>

namespace ringside {

Result<void> MemoryStore::set(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
    return {};
}

Result<std::string> MemoryStore::get(const std::string& key, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); }))
        return failure(ErrorCode::RuntimeFailure, "store", fmt::format("nobody set '{}' within {} ms", key, timeout.count()));
    return values_.at(key);
}

Result<bool> MemoryStore::has(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return values_.contains(key);
}

Result<std::int64_t> MemoryStore::add(const std::string& key, std::int64_t delta) {
    const std::lock_guard lock(mutex_);
    std::string& value = values_[key];
    const std::int64_t sum = (value.empty() ? 0 : std::stoll(value)) + delta;
    value = std::to_string(sum);
    changed_.notify_all();
    return sum;
}

}  // namespace ringside
