// Runs a body once per rank, each in a thread of its own with a Gloo world of its own over loopback.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "calibrate/comm/gloo_communicator.h"
#include "calibrate/ranks/memory_store.h"

namespace ringside {

inline GlooWorldOptions threadOptions(std::shared_ptr<KeyValueStore> store, int rank, int size) {
    GlooWorldOptions options;
    options.env.rank = rank;
    options.env.size = size;
    options.store = std::move(store);
    return options;
}

inline std::vector<int> ranksUpTo(int size) {
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
    return ranks;
}

inline void withWorlds(int size, const std::function<void(CommWorld&)>& body) {
    const auto store = std::make_shared<MemoryStore>();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            const auto world = makeGlooWorld(threadOptions(store, rank, size));
            ASSERT_TRUE(world.has_value()) << world.error().toString();
            body(**world);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

/// The same with a communicator among all of them.
inline void withRanks(int size, const std::function<void(Communicator&)>& body) {
    withWorlds(size, [&](CommWorld& world) {
        const auto all = world.createGroup("all", ranksUpTo(size));
        ASSERT_TRUE(all.has_value()) << all.error().toString();
        body(**all);
    });
}

}  // namespace ringside
