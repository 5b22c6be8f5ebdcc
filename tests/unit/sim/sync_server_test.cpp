// A synchronous parameter server, message by message, with numbers derived by hand; docs/models/parameter-server.md.
#include <map>

#include <gtest/gtest.h>

#include "sim/player/sync_server.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

Time us(std::int64_t n) { return Time::fromNanoseconds(n * 1000); }

/// One key; 1 GB/s into the server and out of it, 1 GB/s per worker, 5 µs of latency; 10 µs to add a push, 30 µs to apply.
class SyncServerTest : public ::testing::Test {
protected:
    SyncServerTest() {
        servers_.count = 1;
        servers_.keys.resize(2);
        prices_.remote.bytesPerS = 1e9;
        prices_.remote.flowBytesPerS = {1e9};
        prices_.remote.latency = us(5);
        prices_.sum = {us(10), us(10)};
        prices_.apply = {us(30), us(30)};
    }

    static SyncServer::Message message(std::uint32_t rankClass, bool isPush, std::int64_t multiplicity = 1, Bytes bytes = 100'000, std::uint32_t key = 0) {
        SyncServer::Message m;
        m.rankClass = rankClass;
        m.task = (isPush ? 0U : 1U) + 2 * key;
        m.multiplicity = multiplicity;
        m.rank = rankClass;
        m.work = {bytes, key};
        m.isPush = isPush;
        return m;
    }

    /// Lets everything happen; when each (class, task) was done.
    static std::map<std::pair<std::uint32_t, TaskId>, Time> finish(SyncServer& server) {
        std::map<std::pair<std::uint32_t, TaskId>, Time> ends;
        while (server.nextEvent() != Time::max()) {
            const Time now = server.nextEvent();
            std::vector<SyncServer::Done> done;
            server.advance(now, done);
            for (const SyncServer::Done& d : done) ends[{d.rankClass, d.task}] = now;
        }
        return ends;
    }

    ParameterServers servers_;
    ServerPrices prices_;
};

TEST_F(SyncServerTest, AKeyIsAppliedOnceWhenAllHavePushedIt) {
    SyncServer server(servers_, prices_, 2);
    for (const std::uint32_t worker : {0U, 1U}) {
        server.send(us(0), message(worker, true));
        server.send(us(0), message(worker, false));
    }
    // Two flows of 100 kB share 1 GB/s: both arrive after 200 + 5 µs. Added by 225, applied by 255; back in 200 + 5.
    const auto ends = finish(server);
    EXPECT_EQ(ends.at({0, 0}), us(205));
    EXPECT_EQ(ends.at({1, 0}), us(205));
    EXPECT_EQ(ends.at({0, 1}), us(460));
    EXPECT_EQ(ends.at({1, 1}), us(460));
}

TEST_F(SyncServerTest, TrafficBothWaysSlowsEachDirectionByWhatWasMeasured) {
    // Key 0 comes in until 100 + 5, is added by 115 and applied by 145. Its pull and key 1's push, which begins then, have half the rate each: 200 + 5.
    prices_.remote.bothWaysSlowdown = 2;
    SyncServer server(servers_, prices_, 1);
    server.send(us(0), message(0, true));
    server.send(us(0), message(0, false));
    std::vector<SyncServer::Done> done;
    while (server.nextEvent() < us(145)) server.advance(server.nextEvent(), done);
    server.send(us(145), message(0, true, 1, 100'000, 1));
    const auto ends = finish(server);
    EXPECT_EQ(ends.at({0, 1}), us(350));
    EXPECT_EQ(ends.at({0, 2}), us(350));
}

TEST_F(SyncServerTest, PullsWaitForTheLastPush) {
    SyncServer server(servers_, prices_, 2);
    server.send(us(0), message(0, true));
    server.send(us(0), message(0, false));
    std::vector<SyncServer::Done> done;
    while (server.nextEvent() < us(1000)) server.advance(server.nextEvent(), done);
    ASSERT_EQ(done.size(), 1U);  // the push
    server.send(us(1000), message(1, true));
    // It arrives at 1105, is added by 1115, applied by 1145; the pull takes 100 + 5.
    EXPECT_EQ(finish(server).at({0, 1}), us(1250));
}

TEST_F(SyncServerTest, AClassOfManyRanksIsAsManyFlows) {
    SyncServer folded(servers_, prices_, 3), unfolded(servers_, prices_, 3);
    folded.send(us(0), message(0, true, 3));
    folded.send(us(0), message(0, false, 3));
    for (const std::uint32_t worker : {0U, 1U, 2U}) {
        unfolded.send(us(0), message(worker, true));
        unfolded.send(us(0), message(worker, false));
    }
    const auto one = finish(folded), all = finish(unfolded);
    // 300 + 5, three times 10 to add, 30 to apply, 300 + 5 back.
    EXPECT_EQ(one.at({0, 1}), us(670));
    for (const std::uint32_t worker : {0U, 1U, 2U}) EXPECT_EQ(all.at({worker, 1}), one.at({0, 1}));
}

TEST_F(SyncServerTest, TheServersOwnDeviceSendsNothing) {
    SyncServer server(servers_, prices_, 1);
    server.send(us(7), message(0, true, 1, 0));
    server.send(us(7), message(0, false, 1, 0));
    const auto ends = finish(server);
    EXPECT_EQ(ends.at({0, 0}), us(7));
    EXPECT_EQ(ends.at({0, 1}), us(47));  // added and applied
}

TEST_F(SyncServerTest, KeysAreWorkedOnOneAfterAnother) {
    SyncServer server(servers_, prices_, 1);
    for (const std::uint32_t key : {0U, 1U}) {
        server.send(us(0), message(0, true, 1, 0, key));
        server.send(us(0), message(0, false, 1, 0, key));
    }
    const auto ends = finish(server);
    EXPECT_EQ(ends.at({0, 1}), us(40)) << "key 0 is added by 10 and applied by 40; key 1 is added by 50 and applied by 80";
    EXPECT_EQ(ends.at({0, 3}), us(80));
}

TEST_F(SyncServerTest, ASlowLinkSlowsItsOwnFlow) {
    SyncServer server(servers_, prices_, 1);
    SyncServer::Message slow = message(0, true);
    slow.linkSlowdown = 2;
    server.send(us(0), slow);
    EXPECT_EQ(finish(server).at({0, 0}), us(205));  // 100 kB at 0.5 GB/s
}

TEST_F(SyncServerTest, SeveralServersShareTheWork) {
    servers_.count = 4;
    SyncServer server(servers_, prices_, 1);
    server.send(us(0), message(0, true));
    EXPECT_EQ(finish(server).at({0, 0}), us(30));  // a quarter of 100 kB to each
}

ServerPrices pricesOf(const std::string& text) {
    const Scenario scenario = scenarioOf(text);
    return priceSchedule(scheduleOf(scenario), scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing)->servers;
}

TEST(ServerPrices, OfDevice0AreItsLinkAndItsNic) {
    // DGX A100: NVLink at NCCL's 240 GB/s into device 0, whoever sends; eight 200 Gb/s NICs, one per device, each
    // behind a PCIe 4 port that NCCL counts as 24 GB/s.
    const ServerPrices prices = pricesOf("{'model':'mlp','device':'a100-80gb-sxm','devices':16,'devices_per_node':8,'strategy':'ps-device0'}");
    EXPECT_EQ(prices.localRanks, 8);
    EXPECT_DOUBLE_EQ(prices.local.bytesPerS, 240e9);
    EXPECT_DOUBLE_EQ(prices.local.flowBytesPerS[0], 240e9);
    EXPECT_DOUBLE_EQ(prices.remote.bytesPerS, 24e9);
    EXPECT_DOUBLE_EQ(prices.remote.flowBytesPerS[0], 24e9);
}

TEST(ServerPrices, OfTheHostAreItsUplinksAndAllItsNics) {
    const ServerPrices prices = pricesOf("{'model':'mlp','device':'a100-80gb-sxm','devices':16,'devices_per_node':8,'strategy':'ps-host'}");
    EXPECT_DOUBLE_EQ(prices.local.bytesPerS, 4 * prices.local.flowBytesPerS[0]) << "four PCIe switches of two devices each";
    EXPECT_DOUBLE_EQ(prices.remote.bytesPerS, 8 * 24e9);
}

TEST(ServerPrices, OfDedicatedNodesAreSharedOutOverThem) {
    const ServerPrices one = pricesOf("{'model':'mlp','device':'a100-80gb-sxm','devices':16,'devices_per_node':8,'strategy':{'name':'ps-servers','servers':1}}"),
                       four = pricesOf("{'model':'mlp','device':'a100-80gb-sxm','devices':16,'devices_per_node':8,'strategy':{'name':'ps-servers','servers':4}}");
    EXPECT_EQ(one.localRanks, 0);
    EXPECT_DOUBLE_EQ(one.remote.bytesPerS, 8 * 24e9);
    EXPECT_DOUBLE_EQ(four.remote.bytesPerS, 8 * 24e9) << "each of them";
    EXPECT_DOUBLE_EQ(four.remote.flowBytesPerS[0], one.remote.flowBytesPerS[0] / 4) << "a worker talks to all of them at once";
    EXPECT_NEAR(four.apply[0].seconds(), one.apply[0].seconds() / 4, 1e-11);
}

TEST_F(SyncServerTest, MessagesAndTheServersWorkTakeTheCoresOfTheirRanks) {
    // 20 µs of processor time per message at either end. Rank 1 pushes at 0: its own core is taken 0–20, the server's too. Rank 0's own
    // push is there at once and added 20–30; rank 1's arrives at 105: added by 115, applied by 145.
    prices_.local = prices_.remote;
    prices_.localRanks = 2;
    prices_.cores = {true, true, 20e-6, 0, 0, 0};
    SyncServer server(servers_, prices_, 2, 0);
    server.send(us(0), message(1, true));
    SyncServer::Message own = message(0, true, 1, 0);
    server.send(us(0), own);
    finish(server);
    std::map<std::uint32_t, std::vector<std::pair<Time, Time>>> taken;
    for (const SyncServer::CoreUse& use : server.takeCoreUses()) taken[use.rankClass].push_back({use.begin, use.end});
    EXPECT_EQ(taken[1], (std::vector<std::pair<Time, Time>>{{us(0), us(20)}}));
    EXPECT_EQ(taken[0], (std::vector<std::pair<Time, Time>>{{us(0), us(20)}, {us(20), us(30)}, {us(105), us(115)}, {us(115), us(145)}}));
    EXPECT_TRUE(server.takeCoreUses().empty());
}

TEST_F(SyncServerTest, WhatRank0ExchangesWithTheServerInItsOwnProcessUsesNoLink) {
    // Rank 0's 100 kB never leave its process: pushed at 0, added by 10, applied by 40, and there at once.
    prices_.local = prices_.remote;
    prices_.localRanks = 1;
    prices_.cores.serverOnRank0 = true;
    SyncServer server(servers_, prices_, 1, 0);
    server.send(us(0), message(0, true));
    server.send(us(0), message(0, false));
    const auto ends = finish(server);
    EXPECT_EQ(ends.at({0, 0}), us(0));
    EXPECT_EQ(ends.at({0, 1}), us(40));
}

}  // namespace
}  // namespace ringside::testing
