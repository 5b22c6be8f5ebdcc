#include "sim/resource/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace ringside {
namespace {

constexpr Time ms(std::int64_t n) { return Time::fromNanoseconds(n * 1'000'000); }
RouteId add(FlowNetwork& network, std::vector<LinkIndex> links) { return network.addRoute(links); }

std::vector<RouteId> completeNext(FlowNetwork& network, Time expected) {
    EXPECT_EQ(network.nextCompletion(), expected);
    std::vector<RouteId> done;
    network.complete(expected, done);
    std::sort(done.begin(), done.end());
    return done;
}

TEST(FlowNetwork, AFlowAloneTakesBytesOverTheSlowestLink) {
    FlowNetwork network({2e9, 1e9});
    const RouteId route = add(network, {0, 1});
    network.freeze();
    EXPECT_TRUE(network.isPrivate(route));
    network.start(route, 5'000'000, Time());
    // 5 MB / 1 GB/s = 5 ms.
    EXPECT_EQ(completeNext(network, ms(5)), (std::vector<RouteId>{route}));
    EXPECT_EQ(network.nextCompletion(), Time::max());
    EXPECT_EQ(network.aloneTime(route, 5'000'000), ms(5));
}

TEST(FlowNetwork, ASecondFlowHalvesTheRateOfTheFirstFromThenOn) {
    FlowNetwork network({1e9});
    const RouteId a = add(network, {0}), b = add(network, {0});
    network.freeze();
    EXPECT_FALSE(network.isPrivate(a));
    network.start(a, 10'000'000, Time());
    EXPECT_EQ(network.nextCompletion(), ms(10));
    // At 4 ms a has 6 MB left and b brings 3 MB; at 0.5 GB/s each b is done after 6 ms, at 10 ms.
    network.start(b, 3'000'000, ms(4));
    EXPECT_EQ(completeNext(network, ms(10)), (std::vector<RouteId>{b}));
    // a moved 3 MB in those 6 ms; the last 3 MB take 3 ms alone.
    EXPECT_EQ(completeNext(network, ms(13)), (std::vector<RouteId>{a}));
    EXPECT_EQ(network.bytesPerLink(), (std::vector<double>{13'000'000}));
}

TEST(FlowNetwork, FlowsThatEndTogetherCompleteInOneBatch) {
    FlowNetwork network({1e9, 1e9});
    const RouteId a = add(network, {0}), b = add(network, {0}), c = add(network, {1});
    network.freeze();
    network.start(a, 1'000'000, Time());
    network.start(b, 1'000'000, Time());
    network.start(c, 2'000'000, Time());
    EXPECT_EQ(completeNext(network, ms(2)), (std::vector<RouteId>{a, b, c}));
}

TEST(FlowNetwork, SharesAreSolvedOncePerSetOfActiveFlows) {
    FlowNetwork network({1e9});
    const RouteId a = add(network, {0}), b = add(network, {0});
    network.freeze();
    std::vector<RouteId> done;
    Time now;
    for (int i = 0; i < 100; ++i) {
        network.start(a, 1'000'000, now);
        network.start(b, 2'000'000, now);
        while (network.nextCompletion() != Time::max()) {
            now = network.nextCompletion();
            network.complete(now, done);
        }
    }
    // Two sets occur: {a, b} and {b}.
    EXPECT_EQ(network.solves(), 2u);
    // Each round: a needs 2 ms at half rate, b has 1 MB left and takes 1 ms more.
    EXPECT_EQ(now, ms(300));
}

TEST(FlowNetwork, AFlowWithoutBytesCompletesAtOnce) {
    FlowNetwork network({1e9});
    const RouteId a = add(network, {0});
    network.freeze();
    network.start(a, 0, ms(1));
    EXPECT_EQ(completeNext(network, ms(1)), (std::vector<RouteId>{a}));
}

TEST(FlowNetwork, ShiftingTimeMovesTheFuture) {
    FlowNetwork network({1e9});
    const RouteId a = add(network, {0}), b = add(network, {0});
    network.freeze();
    network.start(a, 1'000'000, Time());
    network.start(b, 3'000'000, Time());
    EXPECT_EQ(network.nextCompletion(), ms(2));
    network.shiftTime(ms(50));
    EXPECT_EQ(completeNext(network, ms(52)), (std::vector<RouteId>{a}));
    EXPECT_EQ(completeNext(network, ms(54)), (std::vector<RouteId>{b}));
}

}  // namespace
}  // namespace ringside
