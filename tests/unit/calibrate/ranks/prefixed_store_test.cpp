// Two runs over one store do not see each other's keys; what the store itself says, both see.
#include <gtest/gtest.h>

#include "calibrate/ranks/memory_store.h"
#include "calibrate/ranks/prefixed_store.h"

namespace ringside {
namespace {

TEST(PrefixedStore, KeepsKeysOfTwoRunsApart) {
    const auto whole = std::make_shared<MemoryStore>();
    PrefixedStore first(whole, "run/0/"), second(whole, "run/1/");
    ASSERT_TRUE(first.set("address", "a"));
    EXPECT_FALSE(*second.has("address"));
    ASSERT_TRUE(second.set("address", "b"));
    EXPECT_EQ(*first.get("address", std::chrono::milliseconds(0)), "a");
    EXPECT_EQ(*second.get("address", std::chrono::milliseconds(0)), "b");
    EXPECT_EQ(*first.add("count", 2), 2);
    EXPECT_EQ(*second.add("count", 3), 3);
}

TEST(PrefixedStore, LeavesKeysOfTheStoreItselfAsTheyAre) {
    const auto whole = std::make_shared<MemoryStore>();
    PrefixedStore part(whole, "run/0/");
    ASSERT_TRUE(whole->set("ringside/served_at", "10.0.0.1"));
    EXPECT_EQ(*part.get("ringside/served_at", std::chrono::milliseconds(0)), "10.0.0.1");
}

}  // namespace
}  // namespace ringside
