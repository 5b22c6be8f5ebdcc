// One link shared by many flows; docs/models/parameter-server.md.
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/resource/shared_port.h"

namespace ringside {
namespace {

Time ns(std::int64_t n) { return Time::fromNanoseconds(n); }

/// Lets every flow end; returns when each tag did.
std::map<std::uint64_t, Time> drain(SharedPort& port) {
    std::map<std::uint64_t, Time> ends;
    while (port.nextEnd() != Time::max()) {
        std::vector<SharedPort::Tag> ended;
        const Time now = port.nextEnd();
        port.finish(now, ended);
        EXPECT_FALSE(ended.empty());
        for (const SharedPort::Tag tag : ended) ends[tag] = now;
    }
    return ends;
}

TEST(SharedPort, AFlowAloneRunsAtItsOwnCap) {
    SharedPort port(10e9);
    port.start(ns(0), port.groupOf(2e9), 2000, 1, 7);
    EXPECT_EQ(port.nextEnd(), ns(1000));  // 2000 B at 2 GB/s
}

TEST(SharedPort, FlowsShareTheCapacityEvenly) {
    SharedPort port(10e9);
    const auto group = port.groupOf(8e9);
    port.start(ns(0), group, 5000, 1, 1);
    port.start(ns(0), group, 10000, 1, 2);
    // 5 GB/s each: the first ends after 1000 ns; then 5000 B are left at the cap of 8 GB/s: 625 ns.
    const auto ends = drain(port);
    EXPECT_EQ(ends.at(1), ns(1000));
    EXPECT_EQ(ends.at(2), ns(1625));
}

TEST(SharedPort, AFlowThatComesLaterSlowsTheFirstFromThenOn) {
    SharedPort port(10e9);
    const auto group = port.groupOf(10e9);
    port.start(ns(0), group, 10000, 1, 1);
    port.start(ns(500), group, 10000, 1, 2);
    // First: 5000 B by 500 ns, the other 5000 at 5 GB/s until 1500. Second: 5000 B by then, the rest alone until 2000.
    const auto ends = drain(port);
    EXPECT_EQ(ends.at(1), ns(1500));
    EXPECT_EQ(ends.at(2), ns(2000));
}

TEST(SharedPort, WhatALowCapLeavesGoesToTheOthers) {
    SharedPort port(10e9);
    port.start(ns(0), port.groupOf(1e9), 1000, 1, 1);
    port.start(ns(0), port.groupOf(20e9), 18000, 1, 2);
    // Max-min: 1 GB/s and 9 GB/s. After 1000 ns the second has 9000 B left, alone at 10 GB/s: 900 ns.
    const auto ends = drain(port);
    EXPECT_EQ(ends.at(1), ns(1000));
    EXPECT_EQ(ends.at(2), ns(1900));
}

TEST(SharedPort, IncastTakesAsLongAsAllItsBytesTogether) {
    SharedPort port(12.5e9);
    for (std::uint64_t i = 0; i < 100; ++i) port.start(ns(0), port.groupOf(12.5e9), 1'000'000, 1, i);
    for (const auto& [tag, end] : drain(port)) EXPECT_EQ(end, ns(8'000'000)) << tag;  // 100 MB at 12.5 GB/s
}

TEST(SharedPort, NoBytesEndAtOnce) {
    SharedPort port(1e9);
    port.start(ns(5), port.groupOf(1e9), 0, 1, 3);
    EXPECT_EQ(port.nextEnd(), ns(5));
}

// Random flows: m equal ones started together end when one flow of multiplicity m does, to the picosecond, and everything that
// is sent has been carried at no more than the capacity.
TEST(SharedPort, ANewRateHoldsFromThenOn) {
    SharedPort port(10e9);
    port.start(ns(0), port.groupOf(10e9), 10000, 1, 1);
    port.setRate(ns(400), 5e9);
    // 4000 B by 400 ns, the other 6000 at 5 GB/s: 1200 ns.
    EXPECT_EQ(port.nextEnd(), ns(1600));
}

TEST(SharedPort, AFlowOfMultiplicityMStandsForMFlows) {
    ASSERT_TRUE(rc::check("multiplicity", [] {
        const double capacity = *rc::gen::element(1e9, 12.5e9, 300e9);
        SharedPort folded(capacity), unfolded(capacity);
        Time at;
        double bytes = 0;
        std::uint64_t tag = 0;
        const int flows = *rc::gen::inRange(1, 12);
        struct Start { Time at; double cap, bytes; std::int64_t m; };
        std::vector<Start> starts;
        for (int i = 0; i < flows; ++i) {
            at += Time::fromPicoseconds(*rc::gen::inRange(0, 2'000'000));
            starts.push_back({at, *rc::gen::element(0.1e9, 1e9, 25e9), static_cast<double>(*rc::gen::inRange(1, 100000)), *rc::gen::inRange(1, 6)});
        }
        std::map<std::uint64_t, Time> one, all;
        const auto advanceTo = [](SharedPort& port, Time until, std::map<std::uint64_t, Time>& ends) {
            while (port.nextEnd() <= until && port.nextEnd() != Time::max()) {
                std::vector<SharedPort::Tag> ended;
                const Time now = port.nextEnd();
                port.finish(now, ended);
                for (const SharedPort::Tag t : ended) ends[t] = now;
            }
        };
        for (const Start& s : starts) {
            advanceTo(folded, s.at, one);
            advanceTo(unfolded, s.at, all);
            folded.start(s.at, folded.groupOf(s.cap), s.bytes, s.m, tag);
            for (std::int64_t m = 0; m < s.m; ++m) unfolded.start(s.at, unfolded.groupOf(s.cap), s.bytes, 1, tag * 100 + static_cast<std::uint64_t>(m));
            bytes += s.bytes * static_cast<double>(s.m);
            ++tag;
        }
        advanceTo(folded, Time::max(), one);
        advanceTo(unfolded, Time::max(), all);
        Time last;
        for (const auto& [t, end] : all) {
            RC_ASSERT(one.at(t / 100) == end);
            last = std::max(last, end);
        }
        RC_ASSERT(folded.active() == 0);
        RC_ASSERT((last - starts.front().at).seconds() * capacity >= bytes * (1 - 1e-9) - 1);
    }));
}

}  // namespace
}  // namespace ringside
