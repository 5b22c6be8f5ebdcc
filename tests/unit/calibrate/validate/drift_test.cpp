#include "calibrate/validate/drift.h"

#include <gtest/gtest.h>

#include "calibrate/measure/calibration_models.h"

namespace ringside::testing {
namespace {

TEST(Drift, IsTheMedianOfTheStepsEachTheMedianOfItsProbes) {
    // Steps over three probes: medians 1.1, 1.2 and 0.9; the median of those is 1.1. One probe that a neighbour disturbed moves nothing.
    const std::vector<std::vector<double>> probes = {{1.1, 1.2, 0.9}, {1.0, 1.3, 0.9}, {5.0, 1.1, 0.8}};
    EXPECT_DOUBLE_EQ(driftOf(probes), 1.1);
}

TEST(Drift, IsOneWhereNothingWasProbed) { EXPECT_DOUBLE_EQ(driftOf({}), 1); }

TEST(Drift, ComparesWithTheStepsOfTheProfileOnlyWhereItHasAny) {
    const auto catalogs = Catalogs::builtin();
    RunRanksOptions ranks;
    ranks.localRanks = 1;
    const auto nothing = probeDrift({}, ranks, *catalogs);
    ASSERT_TRUE(nothing) << nothing.error().toString();
    EXPECT_TRUE(nothing->empty());
    const std::vector<ReferenceStep> unknown = {{"a model of another version", 1, 0.01}};
    EXPECT_TRUE(probeDrift(unknown, ranks, *catalogs)->empty());
    const std::vector<ReferenceStep> ofTwo = {{referenceModels().front().name, 2, 0.01}};
    EXPECT_TRUE(probeDrift(ofTwo, ranks, *catalogs)->empty());  // what slows one of two cores does not slow a rank on the other
}

TEST(Drift, OfAStepThatIsSaidToHaveTakenANanosecondIsLarge) {
    const auto catalogs = Catalogs::builtin();
    RunRanksOptions ranks;
    ranks.localRanks = 1;
    const std::vector<ReferenceStep> steps = {{referenceModels().front().name, 1, 1e-9}};
    const auto probe = probeDrift(steps, ranks, *catalogs);
    ASSERT_TRUE(probe) << probe.error().toString();
    ASSERT_EQ(probe->size(), 1u);
    EXPECT_GT(probe->front(), 1e4);  // the step takes more than 10 µs anywhere
}

}  // namespace
}  // namespace ringside::testing
