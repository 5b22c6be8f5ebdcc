// The power limit: what it takes of a step's clock follows how busy the step keeps the device.
#include <cmath>

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

/// An H100 held to 500 W of its 700 keeps √(5/7) = 0.845 of its sustained clock; a limit above the TDP changes nothing.
TEST(PowerLimit, BelowTheTdpTakesTheRootOfTheSustainedClock) {
    const auto productSeconds = [](const char* limit, double clock) {
        Scenario scenario = scenarioOf("{'model':'gpt2-xl','device':{'name':'h100-sxm'" + std::string(limit) + "},'strategy':'single','training':{'precision':'bf16','micro_batch':32,'seq_len':512}}");
        scenario.profiles[0].sustainedClock.value = clock;
        const Schedule schedule = scheduleOf(scenario);
        double seconds = 0;
        const auto prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, DType::Bf16, scenario.pricing);
        for (std::size_t k = 0; k < schedule.kernels.size(); ++k)
            if (schedule.kernels[k].cls == KernelClass::Gemm) seconds += prices->nodes[0].kernels[k].seconds();
        return seconds;
    };
    // Attention is slower too, so that products are a little less of what keeps the device busy.
    EXPECT_NEAR(productSeconds(",'power_limit_w':500", 0.8) / productSeconds("", 0.8 * std::sqrt(5.0 / 7)), 1, 0.005);
    EXPECT_GT(productSeconds(",'power_limit_w':500", 0.8), 1.05 * productSeconds("", 0.8));
    EXPECT_EQ(productSeconds(",'power_limit_w':900", 0.8), productSeconds("", 0.8));
}

TEST(PowerLimit, SlowsAttentionByTheSameRoot) {
    const auto attentionSeconds = [](const char* limit) {
        const Scenario scenario = scenarioOf("{'model':'llama-3-8b','device':{'name':'h100-sxm'" + std::string(limit) + "},'strategy':'single','training':{'precision':'bf16','seq_len':32768}}");
        const Schedule schedule = scheduleOf(scenario);
        const auto prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, DType::Bf16, scenario.pricing);
        double seconds = 0;
        for (std::size_t k = 0; k < schedule.kernels.size(); ++k)
            if (schedule.kernels[k].cls == KernelClass::AttentionForward) seconds = std::max(seconds, prices->nodes[0].kernels[k].seconds());
        return seconds;
    };
    EXPECT_NEAR(attentionSeconds(",'power_limit_w':500") / attentionSeconds(""), std::sqrt(7.0 / 5), 0.002);
}

}  // namespace
}  // namespace ringside
