#include "calibrate/ranks/shaped_link.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calibrate/ranks/launch.h"
#include "calibrate/ranks/run_command.h"
#include "calibrate/ranks/tcp_socket.h"

namespace ringside {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class ShapedLinks : public testing::Test {
protected:
    void SetUp() override {
        if (const Result<void> support = shapedLinkSupport(); !support) {
            EXPECT_EQ(support.error().code, ErrorCode::MissingCapability);
            GTEST_SKIP() << support.error().toString();
        }
    }
};

/// Rank 1 sends to rank 0, which answers with a byte at the end; the seconds that took rank 1.
Result<std::string> sendOver(LocalRank& rank, std::size_t bytes) {
    const RankEnv& env = rank.env();
    std::string buffer(1 << 16, 'x');
    if (env.rank == 0) {
        Socket listening(env.listenSocket);
        if (!listening.open()) {
            TRY(listening, listenAt(env.masterAddress, env.masterPort));
        }
        const Socket peer(::accept(listening.get(), nullptr, nullptr));
        for (std::size_t received = 0; received < bytes;) {
            const ssize_t count = ::recv(peer.get(), buffer.data(), buffer.size(), 0);
            if (count <= 0) return failure(ErrorCode::RuntimeFailure, "", "recv");
            received += static_cast<std::size_t>(count);
        }
        if (::send(peer.get(), "!", 1, MSG_NOSIGNAL) != 1) return failure(ErrorCode::RuntimeFailure, "", "send");
        return "";
    }
    TRY(const Socket socket, connectTo(env.masterAddress, env.masterPort, Clock::now() + 60s));
    const Clock::time_point begin = Clock::now();
    for (std::size_t sent = 0; sent < bytes;) {
        const ssize_t count = ::send(socket.get(), buffer.data(), std::min(buffer.size(), bytes - sent), MSG_NOSIGNAL);
        if (count <= 0) return failure(ErrorCode::RuntimeFailure, "", "send");
        sent += static_cast<std::size_t>(count);
    }
    char end = 0;
    if (::recv(socket.get(), &end, 1, 0) != 1) return failure(ErrorCode::RuntimeFailure, "", "recv");
    return std::to_string(std::chrono::duration<double>(Clock::now() - begin).count());
}

TEST_F(ShapedLinks, AreAsSlowAsAskedFor) {
    const auto link = ShapedLink::create({.nodes = 2, .bitsPerSecond = 100e6});
    ASSERT_TRUE(link.has_value()) << link.error().toString();
    LaunchOptions options;
    options.link = link->get();
    const std::size_t bytes = 4 << 20;
    const auto results = launchLocalRanks(2, options, [&](LocalRank& rank) { return sendOver(rank, bytes); });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    // 4 MiB are 33.6 Mbit: 0.34 s at 100 Mbit/s without headers, of which the burst saves at most 2 · 64 KiB or 3 %. A busy machine
    // only makes it longer; loopback takes some milliseconds.
    const double seconds = std::stod((*results)[1]);
    EXPECT_GE(seconds, 0.31);
}

/// Ranks from 1 on send to rank 0 at the same time; the seconds that it took each to be through.
Result<std::string> sendTogether(LocalRank& rank, std::size_t bytes) {
    const RankEnv& env = rank.env();
    std::string buffer(1 << 16, 'x');
    if (env.rank == 0) {
        TRY(const Socket listening, listenAt(env.masterAddress, env.masterPort));
        std::vector<Socket> peers;
        for (int other = 1; other < env.size; ++other) peers.emplace_back(::accept(listening.get(), nullptr, nullptr));
        for (const Socket& peer : peers)
            if (::send(peer.get(), "!", 1, MSG_NOSIGNAL) != 1) return failure(ErrorCode::RuntimeFailure, "", "send");
        std::vector<std::thread> threads;
        for (const Socket& peer : peers)
            threads.emplace_back([&peer, bytes] {
                std::string part(1 << 16, ' ');
                for (std::size_t received = 0; received < bytes;) {
                    const ssize_t count = ::recv(peer.get(), part.data(), part.size(), 0);
                    if (count <= 0) return;
                    received += static_cast<std::size_t>(count);
                }
                ::send(peer.get(), "!", 1, MSG_NOSIGNAL);
            });
        for (std::thread& thread : threads) thread.join();
        return "";
    }
    TRY(const Socket socket, connectTo(env.masterAddress, env.masterPort, Clock::now() + 60s));
    char word = 0;
    if (::recv(socket.get(), &word, 1, 0) != 1) return failure(ErrorCode::RuntimeFailure, "", "recv");
    const Clock::time_point begin = Clock::now();
    for (std::size_t sent = 0; sent < bytes;) {
        const ssize_t count = ::send(socket.get(), buffer.data(), std::min(buffer.size(), bytes - sent), MSG_NOSIGNAL);
        if (count <= 0) return failure(ErrorCode::RuntimeFailure, "", "send");
        sent += static_cast<std::size_t>(count);
    }
    if (::recv(socket.get(), &word, 1, 0) != 1) return failure(ErrorCode::RuntimeFailure, "", "recv");
    return std::to_string(std::chrono::duration<double>(Clock::now() - begin).count());
}

TEST_F(ShapedLinks, AreSharedEvenlyByThoseWhoSendToOneNode) {
    const auto link = ShapedLink::create({.nodes = 5, .bitsPerSecond = 100e6});
    ASSERT_TRUE(link.has_value()) << link.error().toString();
    LaunchOptions options;
    options.link = link->get();
    const auto results = launchLocalRanks(5, options, [&](LocalRank& rank) { return sendTogether(rank, 4 << 20); });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    // 4 · 4 MiB are 134 Mbit, 1.34 s. In turns of 64 KiB nobody is through more than a few turns before the last.
    std::vector<double> seconds;
    for (std::size_t r = 1; r < results->size(); ++r) seconds.push_back(std::stod((*results)[r]));
    const auto [first, last] = std::minmax_element(seconds.begin(), seconds.end());
    EXPECT_GT(*first, 0.9 * *last);
}

TEST_F(ShapedLinks, KnowAllNeighboursBeforeTheyTalk) {
    const auto link = ShapedLink::create({.nodes = 3});
    ASSERT_TRUE(link.has_value()) << link.error().toString();
    LaunchOptions options;
    options.link = link->get();
    const auto results = launchLocalRanks(3, options, [](LocalRank&) -> Result<std::string> {
        TRY(const std::string ip, findProgram("ip"));
        return runCommand({ip, "neigh"});
    });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_THAT((*results)[1], AllOf(HasSubstr("10.77.0.1 dev eth0 lladdr 02:00:00:00:00:00 PERMANENT"), HasSubstr("10.77.0.3 dev eth0 lladdr 02:00:00:00:00:02 PERMANENT")));
}

TEST_F(ShapedLinks, DoNotTakeTheMachinesCongestionControl) {
    const auto link = ShapedLink::create({.nodes = 1});
    ASSERT_TRUE(link.has_value()) << link.error().toString();
    LaunchOptions options;
    options.link = link->get();
    const auto results = launchLocalRanks(1, options, [](LocalRank&) -> Result<std::string> {
        std::string name;
        std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> name;
        return name;
    });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_EQ(results->front(), "reno");
}

TEST_F(ShapedLinks, GiveRanksOfANodeTheSameNamespace) {
    const auto link = ShapedLink::create({.nodes = 2, .bitsPerSecond = 1e9});
    ASSERT_TRUE(link.has_value()) << link.error().toString();
    LaunchOptions options;
    options.link = link->get();
    options.ranksPerNode = 2;
    const auto results = launchLocalRanks(4, options, [&](LocalRank& rank) -> Result<std::string> {
        char name[64] = {};
        const ssize_t length = ::readlink("/proc/self/ns/net", name, sizeof(name) - 1);
        if (length < 0) return failure(ErrorCode::RuntimeFailure, "", "readlink");
        return fmt::format("{} {} {}", rank.env().localRank, rank.env().masterAddress, name);
    });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    const auto nameOf = [&](std::size_t i) { return (*results)[i].substr((*results)[i].rfind(' ')); };
    EXPECT_EQ(nameOf(0), nameOf(1));
    EXPECT_EQ(nameOf(2), nameOf(3));
    EXPECT_NE(nameOf(0), nameOf(2));
    EXPECT_THAT((*results)[3], testing::StartsWith("1 10.77.0.1 "));
}

TEST_F(ShapedLinks, LeaveTheNetworkOfThisProcessAlone) {
    const auto ip = findProgram("ip");
    ASSERT_TRUE(ip.has_value());
    const auto before = runCommand({*ip, "-brief", "link"});
    {
        const auto link = ShapedLink::create({.nodes = 3, .bitsPerSecond = 1e9});
        ASSERT_TRUE(link.has_value()) << link.error().toString();
        EXPECT_EQ(runCommand({*ip, "-brief", "link"}).value(), before.value());
    }
    EXPECT_EQ(runCommand({*ip, "-brief", "link"}).value(), before.value());
}

TEST_F(ShapedLinks, RefuseARateThatIsNone) {
    for (const double rate : {0.0, -1.0, 1e15}) EXPECT_EQ(ShapedLink::create({.bitsPerSecond = rate}).error().code, ErrorCode::BadInput);
}

TEST(RunCommand, CallsAProgramThatIsNotThereAMissingCapability) {
    const auto program = findProgram("no-such-program-of-ringside");
    ASSERT_FALSE(program.has_value());
    EXPECT_EQ(program.error().code, ErrorCode::MissingCapability);
}

TEST(RunCommand, GivesBackWhatAProgramSaysAndTheReasonOfAFailure) {
    const auto shell = findProgram("sh");
    ASSERT_TRUE(shell.has_value());
    EXPECT_EQ(runCommand({*shell, "-c", "cat; echo done"}, "in, ").value(), "in, done");
    const auto failed = runCommand({*shell, "-c", "echo no such thing >&2; exit 2"});
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code, ErrorCode::RuntimeFailure);
    EXPECT_EQ(failed.error().message, "no such thing");
}

}  // namespace
}  // namespace ringside
