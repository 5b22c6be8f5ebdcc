#include "sim/schedule/dependency_graph.h"

#include <utility>
#include <vector>

namespace ringside {

DependencyGraph dependencyGraph(const RankProgram& program) {
    // Edges point from the earlier task to the later one.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    std::vector<std::int64_t> lastOnStream(program.streams.size(), -1);
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        for (const TaskId earlier : program.dependenciesOf(task)) edges.emplace_back(earlier, t);
        std::int64_t& last = lastOnStream[task.stream];
        if (last >= 0) edges.emplace_back(static_cast<std::uint32_t>(last), t);
        // The host issues a device task after its own earlier work.
        if (task.stream != kHostStream && lastOnStream[kHostStream] >= 0) edges.emplace_back(static_cast<std::uint32_t>(lastOnStream[kHostStream]), t);
        last = t;
    }
    return DependencyGraph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), program.tasks.size());
}

}  // namespace ringside
