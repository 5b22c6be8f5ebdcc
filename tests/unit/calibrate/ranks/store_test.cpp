// One body of tests over every KeyValueStore, then what is particular to TCP.
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calibrate/ranks/folder_store.h"
#include "calibrate/ranks/memory_store.h"
#include "calibrate/ranks/tcp_socket.h"
#include "calibrate/ranks/tcp_store.h"

namespace ringside {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

constexpr auto kLong = 60s;  // nothing here waits for it to pass

/// Stores that two ranks hold of the same thing.
struct Pair {
    std::shared_ptr<KeyValueStore> first, second;
    std::filesystem::path folder;
    ~Pair() {
        second.reset();
        first.reset();
        if (!folder.empty()) std::filesystem::remove_all(folder);
    }
};

std::filesystem::path newFolder() {
    static int count = 0;
    return std::filesystem::temp_directory_path() / ("ringside-store-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
}

/// A rank's view of a store at a port that is open already.
RankEnv envOf(int rank, Socket& listening) {
    RankEnv env;
    env.rank = rank;
    env.size = 2;
    env.masterAddress = "127.0.0.1";
    env.masterPort = portOf(listening);
    if (rank == 0) env.listenSocket = listening.release();
    return env;
}

void makePair(const std::string& kind, Pair& pair) {
    if (kind == "memory") {
        pair.first = pair.second = std::make_shared<MemoryStore>();
    } else if (kind == "folder") {
        pair.folder = newFolder();
        pair.first = *makeFolderStore(pair.folder.string());
        pair.second = *makeFolderStore(pair.folder.string());
    } else {
        Socket listening = *listenAt("127.0.0.1", 0);
        const RankEnv other = envOf(1, listening);
        pair.first = *makeTcpStore(envOf(0, listening), kLong);
        pair.second = *makeTcpStore(other, kLong);
    }
}

class Store : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override { makePair(GetParam(), pair_); }
    Pair pair_;
};

TEST_P(Store, GivesEachWhatTheOtherSet) {
    ASSERT_TRUE(pair_.first->set("a/b c", "one").has_value());
    ASSERT_TRUE(pair_.second->set("empty", "").has_value());
    EXPECT_EQ(pair_.second->get("a/b c", kLong).value(), "one");
    EXPECT_EQ(pair_.first->get("empty", kLong).value(), "");
    ASSERT_TRUE(pair_.second->set("a/b c", "two").has_value());
    EXPECT_EQ(pair_.first->get("a/b c", kLong).value(), "two");
    EXPECT_TRUE(pair_.first->has("a/b c").value());
    EXPECT_FALSE(pair_.first->has("a/b").value());
}

TEST_P(Store, KeepsAnyBytes) {
    std::string bytes;
    for (int i = 0; i < 300'000; ++i) bytes += static_cast<char>(i * 7);
    ASSERT_TRUE(pair_.first->set("bytes", bytes).has_value());
    EXPECT_TRUE(pair_.second->get("bytes", kLong).value() == bytes);
}

TEST_P(Store, WaitsForWhatIsNotThereYet) {
    std::thread setter([&] { EXPECT_TRUE(pair_.second->set("late", "now").has_value()); });
    EXPECT_EQ(pair_.first->get("late", kLong).value(), "now");
    setter.join();
}

TEST_P(Store, SaysSoWhenNobodySetsAKeyInTime) {
    const Result<std::string> value = pair_.first->get("never", 20ms);
    ASSERT_FALSE(value.has_value());
    EXPECT_EQ(value.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(value.error().message, HasSubstr("'never'"));
    // And goes on working.
    ASSERT_TRUE(pair_.first->set("never", "after all").has_value());
    EXPECT_EQ(pair_.second->get("never", kLong).value(), "after all");
}

TEST_P(Store, AddsWithoutLosingAny) {
    std::int64_t sum = 0;
    std::thread other([&] {
        for (int i = 0; i < 50; ++i) EXPECT_TRUE(pair_.second->add("count", 2).has_value());
    });
    for (int i = 0; i < 50; ++i) sum = pair_.first->add("count", 1).value();
    other.join();
    EXPECT_GE(sum, 50);
    EXPECT_EQ(pair_.first->add("count", 0).value(), 150);  // 50 · 1 + 50 · 2
}

INSTANTIATE_TEST_SUITE_P(Every, Store, testing::Values("memory", "folder", "tcp"), [](const auto& store) { return store.param; });

TEST(FolderStore, ThatCannotBeWrittenIsRefused) {
    const auto store = makeFolderStore("/proc/no-such-folder/x");
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, ErrorCode::RuntimeFailure);
}

TEST(TcpStore, KnowsTheAddressByWhichItIsReached) {
    Pair pair;
    makePair("tcp", pair);
    EXPECT_EQ(pair.second->localAddress(), "127.0.0.1");
}

TEST(TcpStore, NamesAPortThatIsInUseAndSaysWhatToDo) {
    Socket taken = *listenAt("127.0.0.1", 0);
    RankEnv env;
    env.size = 2;
    env.masterAddress = "127.0.0.1";
    env.masterPort = portOf(taken);
    const auto store = makeTcpStore(env, kLong);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(store.error().message, AllOf(HasSubstr("port " + std::to_string(env.masterPort) + " is in use"), HasSubstr("set MASTER_PORT or --port")));
}

TEST(TcpStore, SaysThatRankZeroDoesNotAnswer) {
    RankEnv env;
    env.rank = 1;
    env.size = 2;
    env.masterAddress = "127.0.0.1";
    env.masterPort = portOf(*listenAt("127.0.0.1", 0));  // closed again at once
    const auto store = makeTcpStore(env, 50ms);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(store.error().message, AllOf(HasSubstr("127.0.0.1:" + std::to_string(env.masterPort)), HasSubstr("MASTER_ADDR")));
}

TEST(TcpStore, SaysThatANameCannotBeResolved) {
    RankEnv env;
    env.size = 2;
    env.masterAddress = "no-such-host.invalid";
    const auto store = makeTcpStore(env, 50ms);
    ASSERT_FALSE(store.has_value());
    EXPECT_THAT(store.error().message, HasSubstr("no-such-host.invalid"));
}

TEST(TcpStore, DoesNotTakeAnotherProgramForRankZero) {
    Socket listening = *listenAt("127.0.0.1", 0);
    const RankEnv env = envOf(1, listening);
    std::thread other([&] {
        const Socket visitor(::accept(listening.get(), nullptr, nullptr));
        const std::string page = "HTTP/1.1 400 Bad Request\r\n\r\n";
        ::send(visitor.get(), page.data(), page.size(), MSG_NOSIGNAL);
    });
    const auto store = makeTcpStore(env, kLong);
    other.join();
    ASSERT_FALSE(store.has_value());
    EXPECT_THAT(store.error().message, HasSubstr("not rank 0 of this run"));
}

TEST(TcpStore, ServesRanksThoughStrangersKnock) {
    Socket listening = *listenAt("127.0.0.1", 0);
    const RankEnv other = envOf(1, listening);
    const auto first = makeTcpStore(envOf(0, listening), kLong);
    ASSERT_TRUE(first.has_value());
    const Socket stranger = *connectTo("127.0.0.1", other.masterPort, std::chrono::steady_clock::now() + kLong);
    const std::string request = "GET / HTTP/1.1\r\n\r\n";
    ASSERT_GT(::send(stranger.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
    char byte = 0;
    EXPECT_LE(::recv(stranger.get(), &byte, 1, 0), 0) << "the server closes the door";
    const auto second = makeTcpStore(other, kLong);
    ASSERT_TRUE(second.has_value());
    ASSERT_TRUE((*second)->set("a", "b").has_value());
    EXPECT_EQ((*first)->get("a", kLong).value(), "b");
}

TEST(TcpStore, TellsTheOthersWhenRankZeroHasGone) {
    Pair pair;
    makePair("tcp", pair);
    std::thread waiting([store = pair.second] {
        const Result<std::string> value = store->get("never", kLong);
        ASSERT_FALSE(value.has_value());
        EXPECT_THAT(value.error().message, HasSubstr("did rank 0 end?"));
    });
    pair.first.reset();
    waiting.join();
}

}  // namespace
}  // namespace ringside
