// DataParallel for real: device 0 has the parameters, the loss of the whole batch and the optimizer; replicas come and go.
#include "tests/equivalence/equal_to_single.h"

namespace ringside {
namespace {


TEST(Equivalence, OfDataParallel) {
    for (const int ranks : {1, 2, 4}) expectEqualToSingle(kGpt, {{"name", "dp"}}, ranks);
    expectEqualToSingle(kLlama, {{"name", "dp"}}, 2, 2);
    expectEqualToSingle(kMlp, {{"name", "dp"}}, 3, 3, "momentum");
}

TEST(DataParallelMemory, IsWhatTheScheduleForetells) { expectForetoldMemory(kGpt, {{"name", "dp"}}, 4); }

TEST(DataParallel, HasTheLossOnDevice0ForTheWholeBatch) {
    const Result<real::Outcome> outcome = real::run(scenarioOf(kMlp, {{"name", "dp"}}, 2, 3, 1), 2, steadyOptions());
    const Result<real::Outcome> single = real::run(scenarioOf(kMlp, {{"name", "single"}}, 1, 6, 1), 2, steadyOptions());
    ASSERT_TRUE(outcome && single);
    for (int step = 0; step < 2; ++step) EXPECT_NEAR(outcome->losses[0][static_cast<std::size_t>(step)], single->losses[0][static_cast<std::size_t>(step)], 1e-5);
}

}  // namespace
}  // namespace ringside
