#include "calibrate/validate/torch_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringside {
namespace {

using testing::HasSubstr;

/// Two ranks' answers: rank 1 comes `late` after rank 0 and both are done `seconds` later, the first time of each call and every other.
std::vector<Json> answers(double seconds, double late) {
    std::vector<Json> ranks(2, {{"calls", Json::array()}});
    double clock = 100;
    for (const Json& asked : torchCollectivesAsked())
        for (int r = 0; r < 2; ++r) {
            Json& spans = ranks[static_cast<std::size_t>(r)]["calls"].emplace_back(Json::array());
            for (int t = 0; t < asked[2]; ++t) spans.push_back({clock + t + r * late, clock + t + late + seconds - 0.01 * r});
        }
    return ranks;
}

TEST(TorchCollectives, LastFromWhenTheLastRankCameToWhenTheLastWasDone) {
    const auto timings = torchCollectivesOf(answers(0.2, 0.5), "200mbit");
    ASSERT_TRUE(timings) << timings.error().toString();
    ASSERT_EQ(timings->size(), torchCollectivesAsked().size());
    for (const CollectiveTimings& one : *timings) {
        EXPECT_EQ(one.ranks, 2);
        EXPECT_EQ(one.link, "200mbit");
        for (const double seconds : one.seconds) EXPECT_NEAR(seconds, 0.2, 1e-9);  // the 0.5 s that rank 0 waited are not its own
    }
}

// An all-gather that takes 0.1 s as often as 0.2 s costs a step 0.15 s each.
TEST(TorchCollectives, OfTwoKindsCountWithTheirMean) {
    std::vector<Json> ranks = answers(0.1, 0);
    for (Json& rank : ranks)
        for (Json& spans : rank["calls"])
            for (std::size_t t = 0; t < spans.size(); t += 2) spans[t][1] = spans[t][1].get<double>() + 0.1;
    const auto timings = torchCollectivesOf(ranks, "");
    ASSERT_TRUE(timings);
    Profile profile;
    ASSERT_TRUE(useTorchCollectives(profile, *timings));
    for (const CollectiveCurve& curve : profile.collectives)
        for (const CollectivePoint& point : curve.points) EXPECT_NEAR(point.seconds, 0.15, 0.02);
}

TEST(TorchCollectives, ReplaceTheProfilesTimesAndKeepWhatTheyTakeFromTheCore) {
    Profile profile;
    const auto add = [&](CollectiveOp op, const char* link, double cpu) {
        CollectiveCurve& curve = profile.collectives.emplace_back();
        curve.op = op;
        curve.link = link;
        curve.points = {{1024, 1, 0.1}, {2048, 2, 0.1}};
        curve.cpuSecondsPerByte = cpu;
        curve.slowdownByCompute = 1.25;
    };
    add(CollectiveOp::AllReduce, "loopback", 1e-9);
    add(CollectiveOp::AllReduce, "200mbit", 2e-9);
    add(CollectiveOp::ReduceScatter, "200mbit", 3e-9);
    add(CollectiveOp::AllToAll, "200mbit", 4e-9);
    const auto timings = torchCollectivesOf(answers(0.2, 0), "200mbit");
    ASSERT_TRUE(timings);
    ASSERT_TRUE(useTorchCollectives(profile, *timings));
    ASSERT_EQ(profile.collectives.size(), 4U) << "all-reduce, all-gather, reduce-scatter, broadcast; nothing of ours is left";
    for (const CollectiveCurve& curve : profile.collectives) {
        for (const CollectivePoint& point : curve.points) EXPECT_NEAR(point.seconds, 0.2, 1e-9);
        const bool sums = curve.op == CollectiveOp::AllReduce || curve.op == CollectiveOp::ReduceScatter;  // both are all-reduces there
        EXPECT_EQ(curve.cpuSecondsPerByte, sums ? 2e-9 : 0) << nameOf(curve.op);
        EXPECT_EQ(curve.slowdownByCompute, sums ? 1.25 : 0) << nameOf(curve.op);
    }
}

TEST(TorchCollectives, AnswersThatAreNotWhatWasAskedForAreRefused) {
    std::vector<Json> none = answers(0.2, 0), few = none, words = none;
    none[1].erase("calls");
    few[0]["calls"].back().erase(0);
    words[0]["calls"][0] = "soon";
    for (const std::vector<Json>& ranks : {none, few, words, std::vector<Json>()}) {
        const auto timings = torchCollectivesOf(ranks, "");
        ASSERT_FALSE(timings);
        EXPECT_EQ(timings.error().code, ErrorCode::RuntimeFailure);
        EXPECT_THAT(timings.error().toString(), HasSubstr("PyTorch's collectives"));
    }
}

}  // namespace
}  // namespace ringside
