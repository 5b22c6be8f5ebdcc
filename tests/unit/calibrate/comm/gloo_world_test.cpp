// How ranks meet, and what happens when some do not, or go away.
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "calibrate/ranks/launch.h"
#include "calibrate/ranks/tcp_socket.h"
#include "tests/unit/calibrate/comm/ranks_as_threads.h"

namespace ringside {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr StreamContext kStream;

TEST(GlooWorld, HasGroupsOfSomeOfItsRanks) {
    withWorlds(4, [](CommWorld& world) {
        const std::vector<int> even = {0, 2}, odd = {1, 3}, alone = {world.rank()};
        const bool isEven = world.rank() % 2 == 0;
        const auto half = world.createGroup(isEven ? "even" : "odd", isEven ? even : odd);
        const auto self = world.createGroup(fmt::format("alone {}", world.rank()), alone);
        ASSERT_TRUE(half.has_value() && self.has_value());
        EXPECT_EQ((*half)->size(), 2);
        EXPECT_EQ((*half)->rank(), world.rank() / 2);
        EXPECT_EQ((*self)->size(), 1);
        std::int64_t value = world.rank();
        ASSERT_TRUE((*self)->allReduce(kStream, &value, 1, DType::Int64, Reduction::Sum).has_value());
        EXPECT_EQ(value, world.rank());
        ASSERT_TRUE((*half)->allReduce(kStream, &value, 1, DType::Int64, Reduction::Sum).has_value());
        EXPECT_EQ(value, isEven ? 0 + 2 : 1 + 3);
    });
}

TEST(GlooWorld, NamesTheRanksThatHaveNotCome) {
    const auto store = std::make_shared<MemoryStore>();
    GlooWorldOptions options = threadOptions(store, 1, 4);
    options.timeout = 100ms;
    ASSERT_TRUE(store->set("world/2", "127.0.0.1").has_value());  // one other is there
    const auto world = makeGlooWorld(options);
    ASSERT_FALSE(world.has_value());
    EXPECT_EQ(world.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(world.error().message, HasSubstr("2 of 4 ranks have not come: 0, 3;"));
}

TEST(GlooWorld, NamesTheRanksThatHaveNotComeToAGroup) {
    const auto store = std::make_shared<MemoryStore>();
    const auto meetAndWait = [&](int rank) {
        GlooWorldOptions options = threadOptions(store, rank, 2);
        auto world = makeGlooWorld(options);
        ASSERT_TRUE(world.has_value());
    };
    std::thread other([&] { meetAndWait(1); });  // comes to the world, but never to the group
    GlooWorldOptions options = threadOptions(store, 0, 2);
    auto world = makeGlooWorld(options);
    other.join();
    ASSERT_TRUE(world.has_value());
    GlooWorldOptions impatient = options;
    impatient.timeout = 100ms;
    auto again = makeGlooWorld(impatient);  // both are known to the store, so this one needs no company
    ASSERT_TRUE(again.has_value());
    const auto group = (*again)->createGroup("gradients", ranksUpTo(2));
    ASSERT_FALSE(group.has_value());
    EXPECT_EQ(group.error().place, "group 'gradients'");
    EXPECT_THAT(group.error().message, HasSubstr("1 of 2 ranks have not come: 1;"));
}

TEST(GlooWorld, RefusesAGroupAboutWhoseMembersRanksDisagree) {
    withWorlds(3, [](CommWorld& world) {
        const auto group = world.createGroup("mixed", ranksUpTo(world.rank() == 0 ? 2 : 3));
        ASSERT_FALSE(group.has_value());
        if (world.rank() == 0) {
            EXPECT_THAT(group.error().message, HasSubstr("rank 1 says that its members are 0, 1, 2"));
        }
    });
}

TEST(GlooWorld, MeetsInAFolder) {
    const auto folder = std::filesystem::temp_directory_path() / ("ringside-world-" + std::to_string(::getpid()));
    const auto results = launchLocalRanks(2, {}, [&](LocalRank& rank) -> Result<std::string> {
        GlooWorldOptions options;
        options.env = rank.env();
        options.storeFolder = folder.string();
        TRY(const auto world, makeGlooWorld(options));
        TRY(const auto group, world->createGroup("all", ranksUpTo(2)));
        float value = 1.5F;
        TRY_VOID(group->allReduce(kStream, &value, 1, DType::Fp32, Reduction::Sum));
        return std::to_string(value);
    });
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_THAT(*results, testing::Each("3.000000"));
}

/// A world and a group among all ranks of a local launch, over TCP.
Result<std::string> inLocalWorld(LocalRank& rank, const std::function<Result<std::string>(Communicator&)>& body) {
    GlooWorldOptions options;
    options.env = rank.env();
    TRY(const auto world, makeGlooWorld(options));
    TRY(const auto group, world->createGroup("all", ranksUpTo(rank.env().size)));
    return body(*group);
}

TEST(GlooWorld, MeetsOverTcpBetweenProcesses) {
    const auto results = launchLocalRanks(4, {}, [](LocalRank& rank) {
        return inLocalWorld(rank, [&](Communicator& group) -> Result<std::string> {
            std::vector<double> values(100'000, rank.env().rank);
            TRY_VOID(group.allReduce(kStream, values.data(), 100'000, DType::Fp64, Reduction::Average));
            return std::to_string(values.back());
        });
    });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_THAT(*results, testing::Each("1.500000"));  // (0 + 1 + 2 + 3) / 4
}

TEST(GlooWorld, MeetsOverAShapedLink) {
    const auto link = ShapedLink::create({.nodes = 2, .bitsPerSecond = 1e9});
    if (!link) GTEST_SKIP() << link.error().toString();
    LaunchOptions options;
    options.link = link->get();
    const auto results = launchLocalRanks(2, options, [](LocalRank& rank) {
        return inLocalWorld(rank, [&](Communicator& group) -> Result<std::string> {
            std::vector<float> values(300'000, 1);
            TRY_VOID(group.allReduce(kStream, values.data(), 300'000, DType::Fp32, Reduction::Sum));
            return std::to_string(values.back());
        });
    });
    ASSERT_TRUE(results.has_value()) << results.error().toString();
    EXPECT_THAT(*results, testing::Each("2.000000"));
}

TEST(GlooWorld, SaysThatThePortIsInUse) {
    const Socket taken = *listenAt("127.0.0.1", 0);
    GlooWorldOptions options;
    options.env.size = 2;
    options.env.masterAddress = "127.0.0.1";
    options.env.masterPort = portOf(taken);
    const auto world = makeGlooWorld(options);
    ASSERT_FALSE(world.has_value());
    EXPECT_EQ(world.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(world.error().message, AllOf(HasSubstr(fmt::format("port {} is in use", options.env.masterPort)), HasSubstr("set MASTER_PORT or --port")));
}

TEST(GlooWorld, RefusesAnInterfaceOrNameThatThisMachineDoesNotHave) {
    GlooWorldOptions options = threadOptions(std::make_shared<MemoryStore>(), 0, 1);
    options.interface = "nosuch0";
    EXPECT_THAT(makeGlooWorld(options).error().message, AllOf(HasSubstr("'nosuch0'"), HasSubstr("lo")));
    options.interface = "lo";
    EXPECT_TRUE(makeGlooWorld(options).has_value());
    options.interface.clear();
    options.hostname = "no-such-host.invalid";
    EXPECT_THAT(makeGlooWorld(options).error().message, HasSubstr("cannot be resolved"));
    options.hostname = "192.0.2.1";  // kept free for documentation: nobody's
    const auto world = makeGlooWorld(options);
    ASSERT_FALSE(world.has_value());
    EXPECT_EQ(world.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(world.error().message, HasSubstr("192.0.2.1"));
}

TEST(Abort, EndsWhatIsBlockedInAnotherThread) {
    // Rank 0 waits in each operation for rank 1, which never calls it; a third thread aborts.
    using Operation = std::function<Result<void>(Communicator&, std::vector<float>&)>;
    const std::int64_t count = 1 << 20;
    const std::vector<std::pair<std::string, Operation>> operations = {
        {"all-reduce", [&](Communicator& group, auto& data) { return group.allReduce(kStream, data.data(), count, DType::Fp32, Reduction::Sum); }},
        {"all-gather", [&](Communicator& group, auto& data) { return group.allGather(kStream, data.data(), data.data(), count / 2, DType::Fp32); }},
        {"reduce-scatter", [&](Communicator& group, auto& data) { return group.reduceScatter(kStream, data.data(), data.data(), count / 2, DType::Fp32, Reduction::Sum); }},
        {"broadcast", [&](Communicator& group, auto& data) { return group.broadcast(kStream, data.data(), count, DType::Fp32, 1); }},
        {"reduce", [&](Communicator& group, auto& data) { return group.reduce(kStream, data.data(), count, DType::Fp32, 0, Reduction::Sum); }},
        {"send", [&](Communicator& group, auto& data) { return group.send(kStream, data.data(), count, DType::Fp32, 1); }},
        {"receive", [&](Communicator& group, auto& data) { return group.receive(kStream, data.data(), count, DType::Fp32, 1); }},
        {"barrier", [&](Communicator& group, auto&) { return group.barrier(kStream); }},
    };
    withWorlds(2, [&](CommWorld& world) {
        for (const auto& [name, operation] : operations) {
            const auto group = world.createGroup(name, ranksUpTo(2)), after = world.createGroup("after " + name, ranksUpTo(2));
            ASSERT_TRUE(group.has_value() && after.has_value());
            if (world.rank() == 0) {
                std::vector<float> data(static_cast<std::size_t>(count), 1);
                std::thread aborter([&] { (*group)->abort(); });  // before, during or after the wait begins
                const auto done = operation(**group, data);
                aborter.join();
                ASSERT_FALSE(done.has_value()) << name;
                EXPECT_EQ(done.error().code, ErrorCode::RuntimeFailure);
                EXPECT_THAT(done.error().toString(), AllOf(HasSubstr(name + " of"), HasSubstr("aborted"), HasSubstr("group '" + name + "'")));
                (*group)->abort();  // once more does no harm
                EXPECT_FALSE((*group)->barrier(kStream).has_value()) << "of no use after it";
            }
            ASSERT_TRUE((*after)->barrier(kStream).has_value()) << "other groups go on";
        }
    });
}

TEST(Abort, IsSeenByTheOtherRanks) {
    withRanks(3, [](Communicator& group) {
        if (group.rank() == 0) {
            group.abort();
            return;
        }
        std::vector<float> data(1000, 1);
        const auto done = group.allReduce(kStream, data.data(), 1000, DType::Fp32, Reduction::Sum);
        ASSERT_FALSE(done.has_value());
        EXPECT_THAT(done.error().toString(), AllOf(HasSubstr("all-reduce of 4000 bytes"), HasSubstr("group 'all'"), Not(HasSubstr(".cc:"))));
    });
}

TEST(Failure, OfARankThatNeverCallsIsATimeOut) {
    const auto store = std::make_shared<MemoryStore>();
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
            GlooWorldOptions options = threadOptions(store, rank, 2);
            options.timeout = 2s;  // also of the rendezvous
            const auto world = makeGlooWorld(options);
            ASSERT_TRUE(world.has_value()) << world.error().toString();
            const auto group = (*world)->createGroup("all", ranksUpTo(2));
            ASSERT_TRUE(group.has_value()) << group.error().toString();
            std::unique_lock lock(mutex);
            if (rank == 1) {
                changed.wait(lock, [&] { return over; });
                return;
            }
            lock.unlock();
            float value = 1;
            const auto done = (*group)->allReduce(kStream, &value, 1, DType::Fp32, Reduction::Sum);
            EXPECT_FALSE(done.has_value());
            EXPECT_THAT(done ? "" : done.error().message, HasSubstr("Timed out waiting"));
            lock.lock();
            over = true;
            changed.notify_all();
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(Failure, OfAKilledRankEndsTheRunAndIsNamed) {
    const auto results = launchLocalRanks(3, {}, [](LocalRank& rank) {
        return inLocalWorld(rank, [&](Communicator& group) -> Result<std::string> {
            std::vector<float> data(1 << 20, 1);
            for (int step = 0;; ++step) {
                rank.progress("all_reduce bucket 0", step);
                if (rank.env().rank == 1 && step == 5) ::raise(SIGKILL);
                TRY_VOID(group.allReduce(kStream, data.data(), 1 << 20, DType::Fp32, Reduction::Average));
            }
        });
    });
    ASSERT_FALSE(results.has_value());
    EXPECT_EQ(results.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(results.error().message, AllOf(HasSubstr("rank 1 was killed by signal 9"), HasSubstr("'all_reduce bucket 0' (step 5)")));
}

}  // namespace
}  // namespace ringside
