#include "sim/collective/message_level.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ringside {
namespace {

using Algorithm = CollectiveAlgorithm;
constexpr Time us(std::int64_t n) { return Time::fromNanoseconds(n * 1000); }
constexpr Time ms(std::int64_t n) { return us(n * 1000); }

MessageLevelResult play(const MessageNetwork& network, CollectiveOp op, Algorithm algorithm, Bytes bytes, std::vector<Time> arrivals = {},
                        MessageLevelOptions options = {}) {
    const auto result = playCollective(network, op, algorithm, bytes, arrivals, options);
    EXPECT_TRUE(result) << result.error().toString();
    return result ? *result : MessageLevelResult{};
}

TEST(RingAllReduce, EachRankSendsTwoTimesNMinusOneOverNOfTheBuffer) {
    // 8 ranks, 8 MB: 14 messages of 1 MB leave each rank, 14 MB = 2·7/8 · 8 MB.
    const auto result = play(uniformNetwork(8, 1e9, us(1)), CollectiveOp::AllReduce, Algorithm::Ring, 8'000'000);
    EXPECT_EQ(result.messages, 8u * 14u);
    ASSERT_EQ(result.bytesPerLink.size(), 8u);
    for (const double bytes : result.bytesPerLink) EXPECT_EQ(bytes, 14e6);
    // 14 · (1 µs + 1 MB / 1 GB/s) = 14 · 1001 µs.
    EXPECT_EQ(result.duration, us(14 * 1001));
}

TEST(RingAllReduce, RunsAtThePaceOfItsSlowestHop) {
    // Two nodes of two devices, 4 MB: messages of 1 MB take 0.1 ms inside a node and 1 ms between. The rank before the NIC
    // starts its s-th message at s ms, since its own wire is busy until then; six messages end at 6 ms.
    const auto result = play(sharedNicNetwork(2, 2, 10e9, 1e9, 1, Time(), Time()), CollectiveOp::AllReduce, Algorithm::Ring, 4'000'000);
    EXPECT_EQ(result.duration, ms(6));
}

TEST(RingAllReduce, TwoRingsOverOneNicTakeTwiceAsLong) {
    // Four nodes of two devices, two rings of four ranks; 8 MB each, so 6 steps of 2 MB. One NIC of 1 GB/s for both:
    // 0.5 GB/s each, 4 ms + 10 µs a step. With a NIC each: 2 ms + 10 µs.
    MessageLevelOptions options;
    options.groups = 2;
    const auto shared = play(sharedNicNetwork(4, 2, 100e9, 1e9, 1, us(1), us(10)), CollectiveOp::AllReduce, Algorithm::Ring, 8'000'000, {}, options);
    EXPECT_EQ(shared.duration, us(6 * 4010));
    const auto alone = play(sharedNicNetwork(4, 2, 100e9, 1e9, 2, us(1), us(10)), CollectiveOp::AllReduce, Algorithm::Ring, 8'000'000, {}, options);
    EXPECT_EQ(alone.duration, us(6 * 2010));
}

TEST(RingAllReduce, ABadOrderOfRanksMakesHopsShareTheNic) {
    // Four nodes of two devices in one ring of 8, 8 MB, so 14 steps of 1 MB. Device-major, each NIC carries two hops at
    // once: 1 MB at 0.5 GB/s is 2 ms a step. Node-major it carries one: 1 ms.
    SharedNicSpec spec;
    spec.nodes = 4;
    spec.devicesPerNode = 2;
    spec.intraBytesPerSecond = 100e9;
    spec.nicBytesPerSecond = 1e9;
    spec.order = SharedNicSpec::RankOrder::DeviceMajor;
    EXPECT_EQ(play(sharedNicNetwork(spec), CollectiveOp::AllReduce, Algorithm::Ring, 8'000'000).duration, ms(28));
    spec.order = SharedNicSpec::RankOrder::NodeMajor;
    EXPECT_EQ(play(sharedNicNetwork(spec), CollectiveOp::AllReduce, Algorithm::Ring, 8'000'000).duration, ms(14));
}

TEST(RingAllReduce, HalfDuplexNicsHalveTheRate) {
    // A NIC carries one hop out and one in; both directions together 1 GB/s: 14 · 2 ms.
    SharedNicSpec spec;
    spec.nodes = 8;
    spec.intraBytesPerSecond = 100e9;
    spec.nicBytesPerSecond = 1e9;
    spec.fullDuplexNics = false;
    EXPECT_EQ(play(sharedNicNetwork(spec), CollectiveOp::AllReduce, Algorithm::Ring, 8'000'000).duration, ms(28));
}

TEST(RingAllReduce, AnOversubscribedCoreIsSharedByAllNodes) {
    // Eight hops through a core of 2 GB/s: 0.25 GB/s each, 4 ms a message, 14 · 4 ms.
    SharedNicSpec spec;
    spec.nodes = 8;
    spec.intraBytesPerSecond = 100e9;
    spec.nicBytesPerSecond = 1e9;
    spec.coreBytesPerSecond = 2e9;
    EXPECT_EQ(play(sharedNicNetwork(spec), CollectiveOp::AllReduce, Algorithm::Ring, 8'000'000).duration, ms(56));
}

TEST(RingAllReduce, ALateRankHoldsUpEveryone) {
    // Four ranks, 4 MB at 1 GB/s. All hang on rank 0's first message: it leaves at 10 ms and is six hops of 1 ms from the end.
    const auto result = play(uniformNetwork(4, 1e9, Time()), CollectiveOp::AllReduce, Algorithm::Ring, 4'000'000, {ms(10), Time(), Time(), Time()});
    EXPECT_EQ(result.duration, ms(16));
    ASSERT_EQ(result.rankFinish.size(), 4u);
    EXPECT_EQ(*std::max_element(result.rankFinish.begin(), result.rankFinish.end()), ms(16));
}

TEST(MessageLevel, DurationCountsFromTheFirstArrivalAndIncludesTheBaseLatency) {
    MessageLevelOptions options;
    options.baseLatency = us(8);
    // Both enter at 3 ms, 8 µs of base, two messages of 1 MB at 1 GB/s.
    const auto result = play(uniformNetwork(2, 1e9, Time()), CollectiveOp::AllReduce, Algorithm::Ring, 2'000'000, {ms(3), ms(3)}, options);
    EXPECT_EQ(result.duration, ms(2) + us(8));
    EXPECT_EQ(result.rankFinish[0], ms(5) + us(8));
}

TEST(TreeAllReduce, ContendsWithItselfWhereARankHasOnePort) {
    // On a wire per pair 64 MiB in halves take about 32 MiB / 1 GB/s; on one port an inner rank sends up, down twice, and up
    // as a leaf of the other tree: four halves.
    const Bytes bytes = 64 * kMiB;
    const auto wires = play(uniformNetwork(16, 1e9, us(1)), CollectiveOp::AllReduce, Algorithm::Tree, bytes);
    const auto ports = play(portNetwork(16, 1e9, us(1)), CollectiveOp::AllReduce, Algorithm::Tree, bytes);
    const double busiest = *std::max_element(ports.bytesPerLink.begin(), ports.bytesPerLink.end());
    EXPECT_EQ(busiest, 2.0 * static_cast<double>(bytes));
    EXPECT_GE(ports.duration.seconds(), busiest / 1e9 * (1 - 1e-9));
    EXPECT_GT(ports.duration.seconds(), 3 * wires.duration.seconds());
    EXPECT_LT(ports.duration.seconds(), 1.25 * busiest / 1e9);
}

TEST(MessageLevel, EveryAlgorithmWaitsForALateRank) {
    const struct {
        CollectiveOp op;
        Algorithm algorithm;
    } cases[] = {{CollectiveOp::AllReduce, Algorithm::Ring},      {CollectiveOp::AllReduce, Algorithm::Tree},
                 {CollectiveOp::AllReduce, Algorithm::HalvingDoubling}, {CollectiveOp::AllReduce, Algorithm::Hierarchical},
                 {CollectiveOp::AllGather, Algorithm::Ring},      {CollectiveOp::ReduceScatter, Algorithm::Ring},
                 {CollectiveOp::Broadcast, Algorithm::Ring},      {CollectiveOp::Broadcast, Algorithm::Binomial},
                 {CollectiveOp::Reduce, Algorithm::Ring},         {CollectiveOp::Reduce, Algorithm::Binomial}};
    const auto network = sharedNicNetwork(3, 2, 10e9, 1e9, 1, us(1), us(3));
    for (const auto& [op, algorithm] : cases) {
        const auto prompt = play(network, op, algorithm, 6'000'000);
        for (std::size_t late = 0; late < 6; ++late) {
            SCOPED_TRACE(testing::Message() << nameOf(op) << " by " << nameOf(algorithm) << ", rank " << late << " late");
            std::vector<Time> arrivals(6);
            arrivals[late] = ms(500);
            const auto result = play(network, op, algorithm, 6'000'000, arrivals);
            EXPECT_GE(result.duration, ms(500));
            EXPECT_LE(result.duration, ms(500) + prompt.duration);
            EXPECT_EQ(result.messages, prompt.messages);
            EXPECT_EQ(result.bytesPerLink, prompt.bytesPerLink);
        }
    }
}

TEST(MessageLevel, OneRankOrNoBytesCostNothing) {
    EXPECT_EQ(play(uniformNetwork(1, 1e9, us(1)), CollectiveOp::AllReduce, Algorithm::Ring, 1000).duration, Time());
    EXPECT_EQ(play(uniformNetwork(4, 1e9, us(1)), CollectiveOp::AllReduce, Algorithm::Tree, 0).messages, 0u);
}

TEST(MessageLevel, RefusesWhatItCannotPlay) {
    const auto network = uniformNetwork(4, 1e9, us(1));
    EXPECT_FALSE(playCollective(network, CollectiveOp::AllReduce, Algorithm::Nvls, 1000));
    EXPECT_FALSE(playCollective(network, CollectiveOp::AllToAll, Algorithm::Ring, 1000));
    EXPECT_FALSE(playCollective(network, CollectiveOp::AllReduce, Algorithm::Ring, -1));
    const std::vector<Time> three(3), negative(4, us(-1));
    const auto wrongCount = playCollective(network, CollectiveOp::AllReduce, Algorithm::Ring, 1000, three);
    ASSERT_FALSE(wrongCount);
    EXPECT_EQ(wrongCount.error().message, "3 arrival times for 4 ranks; give one per rank, or none");
    EXPECT_FALSE(playCollective(network, CollectiveOp::AllReduce, Algorithm::Ring, 1000, negative));
    MessageLevelOptions threeGroups;
    threeGroups.groups = 3;
    EXPECT_FALSE(playCollective(network, CollectiveOp::AllReduce, Algorithm::Ring, 1000, {}, threeGroups));
}

}  // namespace
}  // namespace ringside
