// Task sums: what a step's tasks took, by phase and by class; the same for a predicted step and a measured one, so that the two
// can be compared although neither has to have the other's number of micro-steps written out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/player/player.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// Seconds, mean over the ranks of the schedule.
struct TaskSums {
    std::map<std::string, double> phases;   ///< on compute streams: "forward", "backward", …
    std::map<std::string, double> classes;  ///< "matmul", "layer norm", "all_reduce", …; on all streams of a device
};

/// `times` by class of the schedule. A collective counts from when the rank got there: waiting for its peers included.
TaskSums taskSums(const Schedule& schedule, const std::vector<std::vector<TaskTimes>>& times);

/// "" for what the host does.
std::string taskClass(const Schedule& schedule, const Task& task);

}  // namespace ringside
