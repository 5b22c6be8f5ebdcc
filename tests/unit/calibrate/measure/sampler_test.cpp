#include "calibrate/measure/sampler.h"

#include <cmath>

#include <gtest/gtest.h>

#include "calibrate/fit/robust.h"

namespace ringside {
namespace {

/// A machine whose time passes only when work runs. `duration(n)` and `wait(n)` say what the n-th call takes, in nanoseconds.
struct FakeMachine {
    std::int64_t now = 0, waited = 0, cpu = 0;
    int calls = 0;
    std::function<std::int64_t(int)> duration = [](int) { return 1'000'000; };
    std::function<std::int64_t(int)> wait = [](int) { return 0; };

    SampleClock clock() {
        return {[this] { return now; }, [this] { return waited; }, [this] { return cpu; }};
    }
    std::function<Result<void>()> work() {
        return [this]() -> Result<void> {
            const std::int64_t own = duration(calls), lost = wait(calls);
            ++calls;
            now += own + lost;
            waited += lost;
            cpu += own;
            return {};
        };
    }
};

TEST(Sampler, WarmsUpAndStopsWhenTheCriterionIsDone) {
    FakeMachine machine;
    machine.duration = [](int n) { return n < 3 ? 50'000'000 : 1'000'000; };
    const auto criterion = stopAtRelativeError(0.005);
    const SampleSeries series = sample(machine.work(), *criterion, {}, machine.clock()).value();
    EXPECT_TRUE(series.converged);
    EXPECT_EQ(series.seconds.size(), 10U);
    EXPECT_EQ(machine.calls, 13);
    EXPECT_DOUBLE_EQ(median(series.seconds), 1e-3);
    EXPECT_DOUBLE_EQ(median(series.cpuSeconds), 1e-3);
    EXPECT_EQ(series.noise, 0);
}

TEST(Sampler, DropsAndCountsSamplesThatWaitedForTheirCore) {
    FakeMachine machine;
    machine.wait = [](int n) { return n % 4 == 0 ? 3'000'000 : 0; };  // every fourth call, four times as long
    const auto criterion = stopAtRelativeError(0.005);
    const SampleSeries series = sample(machine.work(), *criterion, {}, machine.clock()).value();
    EXPECT_EQ(series.seconds.size(), 10U);
    EXPECT_GE(series.waited, 2);
    EXPECT_FALSE(series.contaminated);
    for (const double s : series.seconds) EXPECT_DOUBLE_EQ(s, 1e-3);
}

TEST(Sampler, AWaitBelowHalfAPerCentIsForgiven) {
    FakeMachine machine;
    machine.wait = [](int) { return 4'000; };
    const auto criterion = stopAtRelativeError(0.005);
    EXPECT_EQ(sample(machine.work(), *criterion, {}, machine.clock()).value().waited, 0);
}

TEST(Sampler, OnAMachineThatIsNeverQuietTheLeastContaminatedAreKeptAndSaidSo) {
    FakeMachine machine;
    machine.wait = [](int n) { return 100'000 * (1 + n % 7); };
    const auto criterion = stopAtRelativeError(0.005);
    SamplerOptions options;
    options.maxSeconds = 0.05;
    const SampleSeries series = sample(machine.work(), *criterion, options, machine.clock()).value();
    EXPECT_TRUE(series.contaminated);
    EXPECT_FALSE(series.converged);
    EXPECT_GE(series.seconds.size(), 5U);
    EXPECT_LE(median(series.seconds), 1.2e-3);
    EXPECT_GT(series.waited, 0);
}

TEST(Sampler, OutliersAreDroppedAndCounted) {
    FakeMachine machine;
    machine.duration = [](int n) { return n == 7 ? 9'000'000 : 1'000'000 + n % 3 * 1000; };
    const auto criterion = stopAtRelativeError(1e-9);
    SamplerOptions options;
    options.maxSeconds = 0.06;
    const SampleSeries series = sample(machine.work(), *criterion, options, machine.clock()).value();
    EXPECT_EQ(series.outliers, 1);
    EXPECT_LT(*std::max_element(series.seconds.begin(), series.seconds.end()), 2e-3);
}

TEST(Sampler, AStretchOfThrottlingIsDroppedAndCounted) {
    FakeMachine machine;
    machine.duration = [](int n) { return n >= 19 && n < 35 ? 1'400'000 : 1'000'000 + n % 5 * 20'000; };
    const auto criterion = stopAtRelativeError(1e-9);
    SamplerOptions options;
    options.maxSeconds = 0.08;
    options.outlierDeviations = 1e9;
    const SampleSeries series = sample(machine.work(), *criterion, options, machine.clock()).value();
    EXPECT_EQ(series.throttled, 16);
    EXPECT_LT(*std::max_element(series.seconds.begin(), series.seconds.end()), 1.2e-3);
}

TEST(Sampler, ShortWorkIsCalledSeveralTimesPerSample) {
    FakeMachine machine;
    machine.duration = [](int) { return 1000; };
    const auto criterion = stopAtRelativeError(0.005);
    const SampleSeries series = sample(machine.work(), *criterion, {}, machine.clock()).value();
    EXPECT_EQ(series.callsPerSample, 20);
    EXPECT_DOUBLE_EQ(median(series.seconds), 1e-6);
}

TEST(Sampler, AnErrorOfTheWorkEndsIt) {
    FakeMachine machine;
    const auto criterion = stopAtRelativeError();
    int calls = 0;
    const auto series = sample([&]() -> Result<void> {
        machine.now += 1000000;
        if (++calls == 6) return failure(ErrorCode::RuntimeFailure, "device", "lost");
        return {};
    }, *criterion, {}, machine.clock());
    ASSERT_FALSE(series);
    EXPECT_EQ(series.error().message, "lost");
}

TEST(Sampler, TheSystemsOwnClocksMoveForward) {
    const SampleClock clock = systemClock();
    const auto criterion = stopAtRelativeError(0.1);
    SamplerOptions options;
    options.maxSeconds = 0.2;
    double sum = 0;
    const auto series = sample([&]() -> Result<void> {
        for (int i = 1; i < 20000; ++i) sum += std::sqrt(static_cast<double>(i));
        return {};
    }, *criterion, options, clock);
    ASSERT_TRUE(series);
    EXPECT_GT(median(series->seconds), 0);
    EXPECT_GT(sum, 0);
}

TEST(Schedstat, TheSecondNumberIsTheWait) {
    EXPECT_EQ(parseSchedstat("123456 789 12\n").value(), 789);
    EXPECT_FALSE(parseSchedstat("nonsense"));
    EXPECT_FALSE(parseSchedstat("1 -2 3"));
}

}  // namespace
}  // namespace ringside
