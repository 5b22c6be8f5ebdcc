// Scenarios for tests: from JSON text as a person would write it, resolved against the built-in catalogue.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/prediction.h"

namespace ringside::testing {

/// The built-in catalogue, read once per test program.
inline const Catalogs& catalogs() {
    static const Result<Catalogs> builtin = Catalogs::builtin();
    if (!builtin) throw std::runtime_error("the built-in catalogue: " + builtin.error().toString());
    return *builtin;
}

/// JSON text, with ' instead of " where that reads better. Throws where it does not parse.
inline Json jsonOf(std::string text) {
    for (char& c : text)
        if (c == '\'') c = '"';
    return Json::parse(text);
}

inline Result<Scenario> tryScenario(const std::string& text) { return resolveScenario(jsonOf(text), "test.json", catalogs()); }

/// Throws (so that the test fails with the message) where the scenario does not resolve.
inline Scenario scenarioOfJson(const Json& document) {
    Result<Scenario> scenario = resolveScenario(document, "test.json", catalogs());
    if (!scenario) throw std::runtime_error(scenario.error().toString());
    return std::move(*scenario);
}
inline Scenario scenarioOf(const std::string& text) { return scenarioOfJson(jsonOf(text)); }

inline Schedule scheduleOf(const Scenario& scenario) {
    Result<Schedule> schedule = writeSchedule(scenario);
    if (!schedule) throw std::runtime_error(schedule.error().toString());
    return std::move(*schedule);
}
inline Schedule scheduleOf(const std::string& text) { return scheduleOf(scenarioOf(text)); }

inline Prediction predictionOf(const Scenario& scenario, const PredictOptions& options = {false, false, false}) {
    Result<Prediction> prediction = predict(scenario, options);
    if (!prediction) throw std::runtime_error(prediction.error().toString());
    return std::move(*prediction);
}
inline Prediction predictionOf(const std::string& text) { return predictionOf(scenarioOf(text)); }

/// The message of a scenario that must be refused; empty (and a failure) where it is not.
inline std::string refusal(const std::string& text) {
    const Result<Scenario> scenario = tryScenario(text);
    if (scenario) {
        ADD_FAILURE() << "accepted: " << text;
        return {};
    }
    EXPECT_EQ(scenario.error().code, ErrorCode::BadInput);
    return scenario.error().toString();
}

inline int countTasks(const Schedule& schedule, TaskRole role) {
    int count = 0;
    for (const Task& task : schedule.programs.front().tasks) count += task.role == role;
    return count;
}
inline int countTasks(const Schedule& schedule, TaskKind kind) {
    int count = 0;
    for (const Task& task : schedule.programs.front().tasks) count += task.kind == kind;
    return count;
}

/// The collectives with this role, in issue order.
inline std::vector<CollectiveWork> collectivesOf(const Schedule& schedule, TaskRole role) {
    std::vector<CollectiveWork> works;
    for (const Task& task : schedule.programs.front().tasks)
        if (task.role == role && task.kind == TaskKind::Collective) works.push_back(schedule.collectives[task.work]);
    return works;
}

inline Bytes categoryBytes(const Prediction& prediction, MemoryCategory category) {
    return prediction.memory.atPeak[static_cast<std::size_t>(category)];
}

}  // namespace ringside::testing
