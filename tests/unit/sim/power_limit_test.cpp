// The power limit: what it takes of a step's clock follows how busy the step keeps the device.
#include <gtest/gtest.h>

#include "sim/player/prices.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;

/// By which factor a clock of one half at full load slows the schedule's largest product.
double slowdownOfProducts(const std::string& text) {
    Scenario scenario = scenarioOf(text);
    const Schedule schedule = scheduleOf(scenario);
    std::size_t largest = 0;
    for (std::size_t k = 0; k < schedule.kernels.size(); ++k)
        if (schedule.kernels[k].flops > schedule.kernels[largest].flops) largest = k;
    const auto secondsAt = [&](double clock) {
        scenario.profiles[0].sustainedClock.value = clock;
        return priceSchedule(schedule, scenario.cluster, scenario.profiles, DType::Bf16, scenario.pricing)->nodes[0].kernels[largest].seconds();
    };
    return secondsAt(0.5) / secondsAt(1);
}

std::string gpt(int sequences) {
    return "{'model':'gpt2-xl','device':'h100-sxm','strategy':'single','training':{'precision':'bf16','micro_batch':" + std::to_string(sequences) + ",'seq_len':512}}";
}

TEST(PowerLimit, ProductsAreSlowerTheBusierTheyKeepTheDevice) {
    const double few = slowdownOfProducts(gpt(1)), many = slowdownOfProducts(gpt(32));
    EXPECT_GT(few, 1.03);
    EXPECT_GT(many, few + 0.03);
    EXPECT_LT(many, 1.9) << "a step that is not all arithmetic keeps some of its clock";
    // Eight times the micro-steps are as busy as one, but for the optimizer's share.
    const std::string accumulating = "{'model':'gpt2-xl','device':'h100-sxm','strategy':'ddp','devices':8,'training':{'precision':'bf16','micro_batch':32,'seq_len':512,'grad_accum':8}}";
    EXPECT_NEAR(slowdownOfProducts(accumulating), many, 0.1);
}

}  // namespace
}  // namespace ringside
