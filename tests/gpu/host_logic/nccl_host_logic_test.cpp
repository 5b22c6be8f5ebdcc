// Communicators against the stand-in for NCCL (no GPU, one process): what is asked of NCCL, and what happens when it fails or hangs.
#include <map>
#include <thread>

#include <gmock/gmock.h>

#include "calibrate/comm/nccl_communicator.h"
#include "tests/gpu/host_logic/stand_in_device.h"

namespace ringside {
namespace {

using testing::HasSubstr;
using std::chrono::milliseconds;

class NcclHostLogic : public StandInTest {
protected:
    Result<std::unique_ptr<Communicator>> group(int rank, const std::vector<int>& ranks, milliseconds timeout = std::chrono::minutes(1)) {
        NcclWorldOptions options;
        options.rank = rank, options.size = 4;
        options.device = device_.get();
        options.timeout = timeout;
        options.store.set = [this](const std::string& key, const std::string& bytes) { store_[key] = bytes; return Result<void>(); };
        options.store.get = [this](const std::string& key) -> Result<std::optional<std::string>> {
            const auto found = store_.find(key);
            if (found == store_.end()) return std::nullopt;
            return found->second;
        };
        world_ = makeNcclWorld(options).value();
        return world_->createGroup("data", ranks);
    }
    Result<void> on(const std::function<Result<void>(const StreamContext&)>& work) {
        if (streams_.empty()) streams_.push_back(device_->createStream("communication").value());
        device_->issue(streams_[0], work, nullptr);
        return device_->synchronize();
    }

    std::map<std::string, std::string> store_;
    std::unique_ptr<CommWorld> world_;
};

TEST_F(NcclHostLogic, AGroupIsMadeWithoutBlockingFromTheFirstRanksId) {
    const auto comm = group(1, {1, 3});
    ASSERT_TRUE(comm) << comm.error().toString();
    EXPECT_EQ((*comm)->rank(), 0);
    EXPECT_EQ((*comm)->size(), 2);
    EXPECT_EQ(store_.at("nccl/data/id").size(), 128U);
    EXPECT_EQ(standIn().count("ncclCommInitRankConfig rank 0 of 2 blocking 0"), 1);
    // The other rank finds the id where the first has put it.
    const auto other = group(3, {1, 3});
    ASSERT_TRUE(other) << other.error().toString();
    EXPECT_EQ((*other)->rank(), 1);
    EXPECT_EQ(standIn().count("ncclCommInitRankConfig rank 1 of 2"), 1);
}

TEST_F(NcclHostLogic, CollectivesPassCountsTypesRootsAndTheMean) {
    store_["nccl/data/id"] = std::string(128, '\7');  // as if rank 1, the group's first, had put it there
    const auto made = group(2, {1, 2});
    ASSERT_TRUE(made) << made.error().toString();
    Communicator& comm = **made;
    float *data = put({1, 2, 3, 4}), *out = put(std::vector<float>(4));
    const auto values = [](const float* p, int n) { return std::vector<float>(p, p + n); };
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.allReduce(s, data, 4, DType::Fp32, Reduction::Sum); }));
    EXPECT_EQ(values(data, 4), (std::vector<float>{2, 4, 6, 8}));  // two ranks that pass the same
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.allReduce(s, data, 4, DType::Fp32, Reduction::Average); }));
    EXPECT_EQ(values(data, 4), (std::vector<float>{2, 4, 6, 8}));
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.reduceScatter(s, data, out, 2, DType::Fp32, Reduction::Sum); }));
    EXPECT_EQ(values(out, 2), (std::vector<float>{12, 16}));  // this is the group's rank 1: its half
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.allGather(s, data, out, 2, DType::Fp32); }));
    EXPECT_EQ(values(out, 4), (std::vector<float>{2, 4, 2, 4}));
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.broadcast(s, data, 3, DType::Bf16, 0); }));
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.reduce(s, data, 2, DType::Fp32, 1, Reduction::Sum); }));
    EXPECT_EQ(values(data, 4), (std::vector<float>{4, 8, 6, 8}));
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.send(s, data, 2, DType::Int64, 0); }));
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.receive(s, data, 2, DType::Fp16, 0); }));
    standIn().clearLog();
    ASSERT_TRUE(on([&](const StreamContext& s) { return comm.barrier(s); }));
    EXPECT_EQ(standIn().count("ncclAllReduce 1 type 7 rank 1 of 2"), 1);  // ncclFloat32
}

TEST_F(NcclHostLogic, APeerThatIsNotInTheGroupIsNamed) {
    const auto comm = group(0, {0, 1});
    ASSERT_TRUE(comm);
    float* data = put({1});
    const Result<void> result = on([&](const StreamContext& s) { return (*comm)->broadcast(s, data, 1, DType::Fp32, 2); });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::BadInput);
    EXPECT_THAT(result.error().message, HasSubstr("there is no rank 2 in a group of 2"));
}

TEST_F(NcclHostLogic, AnOperationThatNcclIsSlowToTakeIsWaitedFor) {
    const auto comm = group(0, {0, 1});
    ASSERT_TRUE(comm);
    standIn().setNccl(StandInNcclSlowToTake);
    float* data = put({1});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(on([&](const StreamContext& s) { return (*comm)->allReduce(s, data, 1, DType::Fp32, Reduction::Sum); }));
    EXPECT_EQ(data[0], 8);
}

TEST_F(NcclHostLogic, ACallThatFailsNamesGroupAndOperation) {
    const auto comm = group(0, {0, 1});
    ASSERT_TRUE(comm);
    float* data = put({1});
    standIn().failNext("ncclAllReduce", 3);
    const Result<void> result = on([&](const StreamContext& s) { return (*comm)->allReduce(s, data, 1, DType::Fp32, Reduction::Sum); });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(result.error().message, HasSubstr("all-reduce of 4 B in group 'data' (rank 0 of 2)"));
    EXPECT_THAT(result.error().message, HasSubstr("a peer of the stand-in is gone"));
}

TEST_F(NcclHostLogic, WhoeverIsMissingIsNamedWhenTheIdDoesNotCome) {
    const auto comm = group(2, {0, 2, 3}, milliseconds(20));
    ASSERT_FALSE(comm);
    EXPECT_EQ(comm.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(comm.error().message, HasSubstr("group 'data' of 3 ranks was not complete within 20.0 ms: ranks 0, 3 are missing"));
}

TEST_F(NcclHostLogic, WhoeverIsMissingIsNamedWhenNcclDoesNotConnect) {
    standIn().setNccl(StandInNcclNeverConnects);
    const auto comm = group(0, {0, 1}, milliseconds(20));
    ASSERT_FALSE(comm);
    EXPECT_THAT(comm.error().message, HasSubstr("rank 1 is missing"));
    EXPECT_EQ(standIn().count("ncclCommAbort"), 1);
}

TEST_F(NcclHostLogic, AnOperationThatHangsIsAbortedAfterTheTimeOut) {
    const auto comm = group(0, {0, 1}, milliseconds(20));
    ASSERT_TRUE(comm) << comm.error().toString();
    standIn().setNccl(StandInNcclNeverFinishes);
    float* data = put({1});
    const Result<void> result = on([&](const StreamContext& s) { return (*comm)->allReduce(s, data, 1, DType::Fp32, Reduction::Sum); });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::RuntimeFailure);
    EXPECT_THAT(result.error().toString(), HasSubstr("NCCL: all-reduce of 4 B in group 'data' (rank 0 of 2): not done within 20.0 ms"));
    EXPECT_EQ(standIn().count("ncclCommAbort"), 1);
    // The communicator is of no use any more and says why.
    standIn().setNccl(StandInNcclWorks);
    const Result<void> after = on([&](const StreamContext& s) { return (*comm)->barrier(s); });
    ASSERT_FALSE(after);
    EXPECT_THAT(after.error().message, HasSubstr("not done within"));
    EXPECT_EQ(standIn().count("ncclCommAbort"), 1);
}

TEST_F(NcclHostLogic, AnErrorInTheBackgroundEndsTheWait) {
    const auto comm = group(0, {0, 1});
    ASSERT_TRUE(comm);
    standIn().setNccl(StandInNcclFailsLater);
    float* data = put({1});
    const Result<void> result = on([&](const StreamContext& s) { return (*comm)->allReduce(s, data, 1, DType::Fp32, Reduction::Sum); });
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("group 'data'"));
    EXPECT_THAT(result.error().message, HasSubstr("a peer of the stand-in is gone"));
}

TEST_F(NcclHostLogic, AbortFromAnotherThreadEndsTheWait) {
    const auto comm = group(0, {0, 1});
    ASSERT_TRUE(comm);
    standIn().setNccl(StandInNcclNeverFinishes);
    float* data = put({1});
    streams_.push_back(device_->createStream("communication").value());
    device_->issue(streams_[0], [&](const StreamContext& s) { return (*comm)->allReduce(s, data, 1, DType::Fp32, Reduction::Sum); }, nullptr);
    std::thread other([&] { (*comm)->abort(); });
    const Result<void> result = device_->synchronize();
    other.join();
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("the communicator was aborted"));
}

TEST_F(NcclHostLogic, ADestroyedCommunicatorIsFinalisedAndNoLongerLookedAfter) {
    auto comm = group(0, {0, 1});
    ASSERT_TRUE(comm);
    comm->reset();
    EXPECT_EQ(standIn().count("ncclCommFinalize"), 1);
    EXPECT_EQ(standIn().count("ncclCommDestroy"), 1);
    EXPECT_TRUE(device_->synchronize());
}

}  // namespace
}  // namespace ringside
