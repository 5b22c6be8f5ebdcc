// PrefixedStore: a part of a KeyValueStore of its own, so that several runs can share one. Keys of the store itself ("ringside/…") stay
// as they are.
#pragma once

#include <memory>

#include "calibrate/ranks/key_value_store.h"

namespace ringside {

class PrefixedStore : public KeyValueStore {
public:
    PrefixedStore(std::shared_ptr<KeyValueStore> whole, std::string prefix) : whole_(std::move(whole)), prefix_(std::move(prefix)) {}

    Result<void> set(const std::string& key, const std::string& value) override { return whole_->set(named(key), value); }
    Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override { return whole_->get(named(key), timeout); }
    Result<bool> has(const std::string& key) override { return whole_->has(named(key)); }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override { return whole_->add(named(key), delta); }
    std::string localAddress() const override { return whole_->localAddress(); }

private:
    std::string named(const std::string& key) const { return key.starts_with("ringside/") ? key : prefix_ + key; }

    std::shared_ptr<KeyValueStore> whole_;
    std::string prefix_;
};

}  // namespace ringside
