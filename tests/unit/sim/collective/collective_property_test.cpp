// Laws of collectives at message level: folding changes nothing, links bound the time from below, bandwidth never hurts.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "sim/collective/message_level.h"

namespace ringside {
namespace {

using Algorithm = CollectiveAlgorithm;

SharedNicSpec anySpec() {
    SharedNicSpec spec;
    spec.nodes = *rc::gen::inRange(1, 9);
    spec.devicesPerNode = *rc::gen::inRange(1, 7);
    spec.intraBytesPerSecond = 1e6 * *rc::gen::inRange(1'000, 400'000);
    spec.nicBytesPerSecond = 1e6 * *rc::gen::inRange(500, 60'000);
    spec.nicsPerNode = *rc::gen::inRange<std::int64_t>(1, spec.devicesPerNode + 1);
    spec.intraLatency = Time::fromNanoseconds(*rc::gen::inRange(0, 5'000));
    spec.nicLatency = Time::fromNanoseconds(*rc::gen::inRange(0, 30'000));
    spec.fullDuplexNics = *rc::gen::arbitrary<bool>();
    spec.coreBytesPerSecond = *rc::gen::arbitrary<bool>() ? 1e6 * *rc::gen::inRange(500, 100'000) : 0;
    return spec;
}

TEST(FoldedRingLaws, FoldingRanksChangesNothing) {
    ASSERT_TRUE(rc::check([] {
        const SharedNicSpec spec = anySpec();
        const auto network = sharedNicNetwork(spec);
        const auto op = *rc::gen::element(CollectiveOp::AllReduce, CollectiveOp::AllGather, CollectiveOp::ReduceScatter);
        const Bytes bytes = *rc::gen::inRange<Bytes>(1, 50'000'000);
        MessageLevelOptions options;
        options.groups = *rc::gen::element<std::int64_t>(1, spec.devicesPerNode);
        options.baseLatency = Time::fromNanoseconds(*rc::gen::inRange(0, 10'000));
        const auto full = playCollective(network, op, Algorithm::Ring, bytes, {}, options);
        const auto folded = playCollectiveFolded(network, op, Algorithm::Ring, bytes, options);
        RC_ASSERT(full.has_value() && folded.has_value());
        RC_ASSERT(full->duration == folded->duration);
        RC_ASSERT(full->messages == folded->messages);
        if (!folded->folded) return;
        for (std::size_t r = 0; r < full->rankFinish.size(); ++r)
            RC_ASSERT(full->rankFinish[r] == folded->rankFinish[r % folded->rankFinish.size()]);
        std::map<std::uint64_t, double> bytesOfClass;
        for (std::size_t l = 0; l < folded->linkIds.size(); ++l) bytesOfClass[folded->linkIds[l]] = folded->bytesPerLink[l];
        for (std::size_t l = 0; l < full->linkIds.size(); ++l)
            RC_ASSERT(full->bytesPerLink[l] == bytesOfClass.at(network.symmetry->linkClass(full->linkIds[l]).id));
    }));
}

// 128 nodes are enough for the rhythm to settle and be multiplied out many times over.
TEST(FoldedRing, EqualsTheFullRunOnAThousandRanks) {
    for (const bool fullDuplex : {true, false}) {
        SharedNicSpec spec;
        spec.nodes = 128;
        spec.devicesPerNode = 8;
        spec.intraBytesPerSecond = 240e9;
        spec.nicBytesPerSecond = 25e9;
        spec.intraLatency = Time::fromMicroseconds(3.4);
        spec.nicLatency = Time::fromMicroseconds(14);
        spec.fullDuplexNics = fullDuplex;
        const auto network = sharedNicNetwork(spec);
        for (const Bytes bytes : {kMiB, kGiB}) {
            const auto full = playCollective(network, CollectiveOp::AllReduce, Algorithm::Ring, bytes);
            const auto folded = playCollectiveFolded(network, CollectiveOp::AllReduce, Algorithm::Ring, bytes);
            EXPECT_TRUE(folded->folded);
            EXPECT_EQ(full->duration, folded->duration);
            EXPECT_EQ(full->messages, folded->messages);
        }
    }
}

TEST(FoldedRing, EqualsTheFullRunWhereRingsShareNicsUnevenly) {
    // Eight rings over three NICs that carry three, three and two of them, below a core that is too small for all.
    SharedNicSpec spec;
    spec.nodes = 100;
    spec.devicesPerNode = 8;
    spec.intraBytesPerSecond = 240e9;
    spec.nicBytesPerSecond = 25e9;
    spec.nicsPerNode = 3;
    spec.nicLatency = Time::fromMicroseconds(14);
    MessageLevelOptions options;
    options.groups = 8;
    for (const double core : {0.0, 6000e9, 1000e9}) {
        spec.coreBytesPerSecond = core;
        const auto network = sharedNicNetwork(spec);
        const auto full = playCollective(network, CollectiveOp::AllReduce, Algorithm::Ring, 10'000'019, {}, options);
        const auto folded = playCollectiveFolded(network, CollectiveOp::AllReduce, Algorithm::Ring, 10'000'019, options);
        EXPECT_TRUE(folded->folded);
        EXPECT_EQ(full->duration, folded->duration);
        for (std::size_t r = 0; r < full->rankFinish.size(); ++r) ASSERT_EQ(full->rankFinish[r], folded->rankFinish[r % 8]);
    }
}

TEST(FoldedRing, AMillionUniformRanksFollowTheClosedForm) {
    // 2·(2^20 − 1) steps of 5 µs + 1 KiB / 1.024 GB/s = 1 µs: 6 µs each.
    const std::int64_t ranks = 1 << 20;
    const auto result =
        playCollectiveFolded(uniformNetwork(ranks, 1.024e9, Time::fromMicroseconds(5)), CollectiveOp::AllReduce, Algorithm::Ring, ranks * kKiB);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->duration, Time::fromNanoseconds(6000) * (2 * (ranks - 1)));
    EXPECT_EQ(result->messages, static_cast<std::uint64_t>(2 * (ranks - 1) * ranks));
}

TEST(FoldedRing, WhatCannotBeFoldedIsPlayedInFull) {
    const auto network = uniformNetwork(8, 1e9, Time());
    const auto folded = playCollectiveFolded(network, CollectiveOp::AllReduce, Algorithm::Tree, kMiB);
    ASSERT_TRUE(folded);
    EXPECT_FALSE(folded->folded);
    EXPECT_EQ(folded->duration, playCollective(network, CollectiveOp::AllReduce, Algorithm::Tree, kMiB)->duration);
}

TEST(CollectiveLaws, NoCollectiveBeatsItsBusiestLink) {
    ASSERT_TRUE(rc::check([] {
        const SharedNicSpec spec = anySpec();
        if (spec.nodes * spec.devicesPerNode < 2) return;
        const auto network = sharedNicNetwork(spec);
        const auto algorithm = *rc::gen::element(Algorithm::Ring, Algorithm::Tree, Algorithm::HalvingDoubling, Algorithm::Hierarchical);
        const auto result = playCollective(network, CollectiveOp::AllReduce, algorithm, *rc::gen::inRange<Bytes>(1'000, 20'000'000));
        RC_ASSERT(result.has_value());
        const double fastest = std::max({spec.intraBytesPerSecond, spec.nicBytesPerSecond, spec.coreBytesPerSecond});
        double most = 0;
        for (const double bytes : result->bytesPerLink) most = std::max(most, bytes / fastest);
        RC_ASSERT(result->duration.seconds() >= most * (1 - 1e-6));
    }));
}

TEST(CollectiveLaws, TwiceTheBandwidthNeverSlowsARing) {
    ASSERT_TRUE(rc::check([] {
        SharedNicSpec spec = anySpec();
        const Bytes bytes = *rc::gen::inRange<Bytes>(1'000, 20'000'000);
        const auto slow = playCollective(sharedNicNetwork(spec), CollectiveOp::AllReduce, Algorithm::Ring, bytes);
        spec.intraBytesPerSecond *= 2;
        spec.nicBytesPerSecond *= 2;
        spec.coreBytesPerSecond *= 2;
        const auto fast = playCollective(sharedNicNetwork(spec), CollectiveOp::AllReduce, Algorithm::Ring, bytes);
        // Each of at most 2(n − 1) messages in a row is rounded to a picosecond.
        RC_ASSERT(fast->duration <= slow->duration + Time::fromPicoseconds(2 * spec.nodes * spec.devicesPerNode));
    }));
}

}  // namespace
}  // namespace ringside
