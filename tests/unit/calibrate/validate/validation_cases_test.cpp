#include "calibrate/validate/validation_cases.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/measure/calibration_models.h"
#include "calibrate/validate/validation_models.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

using testing::HasSubstr;

TEST(ValidationModels, AreNoneOfThoseThatCalibrationMeasures) {
    std::set<std::string> measured;
    for (const CalibrationModel& model : calibrationModels(CalibrationEffort::Thorough)) measured.insert(model.document["model"].dump());
    for (const ValidationModel& model : validationModels()) EXPECT_FALSE(measured.contains(model.document["model"].dump())) << model.name;
}

TEST(ValidationModels, AreKnownToTheModelBuilderAndHaveNamesOfTheirOwn) {
    const Result<Catalogs> catalogs = Catalogs::builtin();
    ASSERT_TRUE(catalogs);
    std::set<std::string> names;
    for (const ValidationModel& model : validationModels()) {
        EXPECT_TRUE(names.insert(model.name).second) << model.name;
        Json document = model.document;
        document["device"] = "cpu";
        document["strategy"] = "single";
        const Result<Scenario> scenario = resolveScenario(document, model.name, *catalogs);
        ASSERT_TRUE(scenario) << scenario.error().toString();
        EXPECT_TRUE(writeSchedule(*scenario)) << model.name;
    }
}

TEST(ValidationCases, AreModelsTimesStrategiesAndSingleHasOneRank) {
    const auto cases = validationCases({"single", "ddp:bucket_mb=1:grad_accum=2"}, {"several"}, 2);
    ASSERT_TRUE(cases) << cases.error().toString();
    ASSERT_EQ(cases->size(), 2 * severalRankModels().size());
    EXPECT_EQ((*cases)[0].ranks, 1);
    const ValidationCase& ddp = (*cases)[1];
    EXPECT_EQ(ddp.ranks, 2);
    EXPECT_EQ(ddp.strategy, "ddp:bucket_mb=1:grad_accum=2");
    EXPECT_EQ(ddp.document["strategy"]["name"], "ddp");
    EXPECT_EQ(ddp.document["strategy"]["bucket_mb"], 1);
    EXPECT_EQ(ddp.document["training"]["grad_accum"], 2);
}

TEST(ValidationCases, OfOneRankAreTheSingleRankModels) {
    const auto cases = validationCases({}, {}, 1);
    ASSERT_TRUE(cases);
    EXPECT_EQ(cases->size(), singleRankModels().size());
}

TEST(ValidationCases, NameTheNearestOfWhatIsNotKnown) {
    const auto strategy = validationCases({"ddq"}, {}, 2);
    ASSERT_FALSE(strategy);
    EXPECT_THAT(strategy.error().toString(), testing::AllOf(HasSubstr("--strategies"), HasSubstr("did you mean 'ddp'?")));
    const auto model = validationCases({}, {"singel"}, 2);
    ASSERT_FALSE(model);
    EXPECT_THAT(model.error().toString(), testing::AllOf(HasSubstr("--models"), HasSubstr("did you mean 'single'?")));
    const auto setting = validationCases({"ddp:bucket"}, {}, 2);
    ASSERT_FALSE(setting);
    EXPECT_THAT(setting.error().message, HasSubstr("KEY=VALUE"));
}

}  // namespace
}  // namespace ringside
