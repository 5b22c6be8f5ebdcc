// What is said about steps that are not all alike, and about workers that do not wait for each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace ringside {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PredictText, ShowsBothKindsOfStepOfARound) {
    const WorkDir dir;
    const auto run = dir.ringside("predict --model mlp --device a100-80gb-sxm --devices 4 --strategy local-sgd --set period=8");
    EXPECT_EQ(run.exitCode, 0);
    EXPECT_THAT(run.out, HasSubstr("Round        8 steps: 7 local ones of"));
    EXPECT_THAT(run.out, Not(HasSubstr("Staleness")));
}

TEST(PredictText, ShowsHowOldGradientsAre) {
    const WorkDir dir;
    const auto run = dir.ringside("predict --model mlp --device a100-80gb-sxm --devices 4 --strategy async-ps");
    EXPECT_EQ(run.exitCode, 0);
    EXPECT_THAT(run.out, HasSubstr("Staleness    3.0 updates in the mean"));
    EXPECT_THAT(run.out, Not(HasSubstr("Round")));
}

TEST(PredictText, SaysNeitherOfDdp) {
    const WorkDir dir;
    const auto run = dir.ringside("predict --model mlp --device a100-80gb-sxm --devices 4");
    EXPECT_THAT(run.out, Not(HasSubstr("Round")));
    EXPECT_THAT(run.out, Not(HasSubstr("Staleness")));
}

TEST(PredictRefuses, DataParallelBeyondItsNode) {
    const WorkDir dir;
    const auto run = dir.ringside("predict --model mlp --device a100-80gb-sxm --devices 16 --strategy dp");
    EXPECT_EQ(run.exitCode, 3);
    EXPECT_THAT(run.err, HasSubstr("cannot leave its node"));
}

}  // namespace
}  // namespace ringside
