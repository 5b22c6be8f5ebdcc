#include "calibrate/validate/task_sums.h"

namespace ringside {

std::string taskClass(const Schedule& schedule, const Task& task) {
    switch (task.kind) {
        case TaskKind::Kernel: return std::string(schedule.kernels[task.work].name);
        case TaskKind::Collective: return std::string(nameOf(schedule.collectives[task.work].op));
        case TaskKind::Copy: return "copy";
        case TaskKind::Push: return "push";
        case TaskKind::Pull: return "pull";
        case TaskKind::HostWork: case TaskKind::HostSync: return {};
    }
    return {};
}

TaskSums taskSums(const Schedule& schedule, const std::vector<std::vector<TaskTimes>>& times) {
    TaskSums sums;
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const RankProgram& program = schedule.programs[schedule.classes[c].program];
        const double share = static_cast<double>(schedule.classes[c].ranks.count) / static_cast<double>(schedule.world);
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            const std::string name = taskClass(schedule, task);
            if (name.empty()) continue;
            const double seconds = (times[c][t].end - times[c][t].start).seconds() * share * static_cast<double>(schedule.timesOf(task));
            sums.classes[name] += seconds;
            if (program.streams[task.stream].kind == StreamKind::Compute) sums.phases[std::string(nameOf(task.phase))] += seconds;
        }
    }
    return sums;
}

}  // namespace ringside
