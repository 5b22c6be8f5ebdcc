#include "calibrate/execute/local_scenario.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

TEST(PacedScenario, HasNeitherInterferenceNorWorkOfTheHostBetweenSteps) {
    Scenario scenario;
    scenario.profiles.resize(2);
    for (Profile& profile : scenario.profiles) profile.hostStepUs.value = 700;
    const Scenario paced = pacedScenario(scenario);
    EXPECT_TRUE(scenario.pricing.cpuInterference);
    EXPECT_FALSE(paced.pricing.cpuInterference);
    for (const Profile& profile : paced.profiles) EXPECT_EQ(profile.hostStepUs.value, 0);
}

}  // namespace
}  // namespace ringside
