#include "sim/schedule/validate_schedule.h"

#include <algorithm>

#include <boost/graph/topological_sort.hpp>
#include <fmt/format.h>

#include "sim/schedule/dependency_graph.h"

namespace ringside {
namespace {

/// Which tasks of each stream are known to be finished at some point: happens-before as a vector clock.
using Clock = std::vector<std::int64_t>;

void join(Clock& into, const Clock& other) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

class ProgramChecker {
public:
    ProgramChecker(const Schedule& schedule, const RankProgram& program) : schedule_(schedule), program_(program) {}

    Result<void> check() {
        TRY_VOID(checkStreams());
        for (std::uint32_t t = 0; t < program_.tasks.size(); ++t) {
            TRY_VOID(checkTask(t));
            TRY_VOID(checkDependencies(t));
        }
        TRY_VOID(checkAcyclic());
        TRY_VOID(checkBuffers());
        return {};
    }

private:
    tl::unexpected<Error> broken(std::uint32_t t, std::string_view rule) const {
        return badInput(fmt::format("schedule of {}, task {} ({})", schedule_.strategy, t, taskName(schedule_, program_.tasks[t])),
                        std::string(rule));
    }

    Result<void> checkStreams() const {
        if (program_.streams.size() < 2 || program_.streams[kHostStream].kind != StreamKind::Host ||
            program_.streams[kComputeStream].kind != StreamKind::Compute)
            return badInput("schedule of " + schedule_.strategy, "stream 0 must be the host and stream 1 the compute stream");
        return {};
    }

    Result<void> checkTask(std::uint32_t t) const {
        const Task& task = program_.tasks[t];
        if (task.stream >= program_.streams.size()) return badInput(fmt::format("schedule of {}, task {}", schedule_.strategy, t), "its stream does not exist");
        const bool hostTask = task.kind == TaskKind::HostWork || task.kind == TaskKind::HostSync;
        std::size_t limit = 1;
        switch (task.kind) {
            case TaskKind::Kernel: limit = schedule_.kernels.size(); break;
            case TaskKind::Collective: limit = schedule_.collectives.size(); break;
            case TaskKind::Copy: limit = schedule_.copies.size(); break;
            case TaskKind::HostWork: limit = schedule_.hostWorks.size(); break;
            case TaskKind::HostSync: break;
            case TaskKind::Push: case TaskKind::Pull: limit = schedule_.messages.size(); break;
        }
        if (task.work >= limit) return badInput(fmt::format("schedule of {}, task {}", schedule_.strategy, t), "its work does not exist");
        const StreamKind stream = program_.streams[task.stream].kind;
        const bool besideHost = task.kind == TaskKind::HostWork && (stream == StreamKind::Loader || stream == StreamKind::Copy);
        if (!besideHost && hostTask != (stream == StreamKind::Host))
            return broken(t, "host tasks run on the host stream and device tasks do not");
        return {};
    }

    Result<void> checkDependencies(std::uint32_t t) const {
        for (const TaskId earlier : program_.dependenciesOf(program_.tasks[t]))
            if (earlier >= t) return broken(t, fmt::format("depends on task {}, which is not issued before it", earlier));
        return {};
    }

    Result<void> checkAcyclic() const {
        const DependencyGraph graph = dependencyGraph(program_);
        std::vector<DependencyGraph::vertex_descriptor> order;
        try {
            boost::topological_sort(graph, std::back_inserter(order));
        } catch (const boost::not_a_dag&) {
            return badInput("schedule of " + schedule_.strategy, "the dependencies form a cycle");
        }
        return {};
    }

    Result<void> checkBuffers() const {
        const std::size_t streams = program_.streams.size();
        std::vector<bool> live(program_.buffers.size());
        for (std::size_t b = 0; b < live.size(); ++b) live[b] = program_.buffers[b].persistent;
        // Last write of each buffer, as (stream, position); −1: never written in this step.
        struct Write {
            StreamId stream = 0;
            std::int64_t position = -1;
            std::uint32_t task = 0;
        };
        std::vector<Write> lastWrite(program_.buffers.size());
        std::vector<Clock> finished(program_.tasks.size(), Clock(streams, -1));  // what is known finished when the task starts
        std::vector<Clock> onStream(streams, Clock(streams, -1));

        for (std::uint32_t t = 0; t < program_.tasks.size(); ++t) {
            const Task& task = program_.tasks[t];
            Clock& clock = finished[t];
            clock = onStream[task.stream];
            if (task.stream != kHostStream) join(clock, onStream[kHostStream]);
            for (const TaskId earlier : program_.dependenciesOf(task)) {
                join(clock, finished[earlier]);
                clock[program_.tasks[earlier].stream] = std::max<std::int64_t>(clock[program_.tasks[earlier].stream], earlier);
            }
            for (const BufferUse& use : program_.usesOf(task)) {
                if (use.buffer >= program_.buffers.size()) return broken(t, "uses a buffer that does not exist");
                const Buffer& buffer = program_.buffers[use.buffer];
                const auto about = [&] { return bufferName(schedule_, buffer); };
                if (use.kind == UseKind::Allocate) {
                    if (buffer.persistent) return broken(t, fmt::format("allocates {}, which is persistent", about()));
                    if (live[use.buffer]) return broken(t, fmt::format("allocates {}, which is allocated already", about()));
                    live[use.buffer] = true;
                    lastWrite[use.buffer] = {};
                    continue;
                }
                if (!live[use.buffer]) return broken(t, fmt::format("uses {}, which is not allocated", about()));
                const Write& write = lastWrite[use.buffer];
                if (write.position >= 0 && write.task != t && clock[write.stream] < write.position)
                    return broken(t, fmt::format("uses {} but is not ordered after task {}, which writes it", about(), write.task));
                if (use.kind == UseKind::Write) lastWrite[use.buffer] = {task.stream, t, t};
                if (use.kind == UseKind::Free) {
                    if (buffer.persistent) return broken(t, fmt::format("frees {}, which is persistent", about()));
                    live[use.buffer] = false;
                }
            }
            Clock& after = onStream[task.stream];
            after = clock;
            after[task.stream] = t;
        }
        for (std::size_t b = 0; b < live.size(); ++b)
            if (live[b] && !program_.buffers[b].persistent && !program_.buffers[b].outlives)
                return badInput("schedule of " + schedule_.strategy, fmt::format("{} is never freed", bufferName(schedule_, program_.buffers[b])));
        return {};
    }

    const Schedule& schedule_;
    const RankProgram& program_;
};

/// The collectives of each axis in issue order.
using CollectiveOrder = std::vector<std::vector<CollectiveWork>>;

CollectiveOrder collectiveOrder(const Schedule& schedule, const RankProgram& program) {
    CollectiveOrder order(schedule.axes.size());
    for (const Task& task : program.tasks)
        if (task.kind == TaskKind::Collective) order[schedule.collectives[task.work].axis].push_back(schedule.collectives[task.work]);
    return order;
}

/// How often the program pushes each key. A server that waits for every worker's push would wait forever for one that is missing.
Result<std::vector<int>> pushesByKey(const Schedule& schedule, const RankProgram& program) {
    std::vector<int> pushes(schedule.servers.keys.size()), pulls(schedule.servers.keys.size());
    for (const Task& task : program.tasks) {
        if (task.kind != TaskKind::Push && task.kind != TaskKind::Pull) continue;
        const std::uint32_t key = schedule.messages[task.work].key;
        if (key >= pushes.size())
            return badInput("schedule of " + schedule.strategy, fmt::format("{} names key {}, but the servers hold {}", taskName(schedule, task), key, pushes.size()));
        ++(task.kind == TaskKind::Push ? pushes : pulls)[key];
    }
    for (std::size_t key = 0; key < pushes.size(); ++key)
        if (pushes[key] != pulls[key])
            return badInput("schedule of " + schedule.strategy, fmt::format("key {} is pushed {} times and pulled {} times", key, pushes[key], pulls[key]));
    return pushes;
}

bool hasCommunicator(const CommAxis& axis, std::int64_t rank) {
    const std::int64_t position = axis.positionOf(rank);
    return position >= 0 && position < axis.size;
}

}  // namespace

Result<void> validateSchedule(const Schedule& schedule) {
    if (!schedule.workload) return badInput("schedule", "has no workload");
    for (const RankProgram& program : schedule.programs) TRY_VOID(ProgramChecker(schedule, program).check());
    for (const CollectiveWork& work : schedule.collectives)
        if (work.axis >= schedule.axes.size()) return badInput("schedule of " + schedule.strategy, "a collective names an axis that does not exist");

    std::vector<std::vector<int>> pushes;
    for (const RankProgram& program : schedule.programs) {
        TRY(std::vector<int> mine, pushesByKey(schedule, program));
        if (!pushes.empty() && pushes.front() != mine) return badInput("schedule of " + schedule.strategy, "not every program pushes the same keys");
        pushes.push_back(std::move(mine));
    }

    std::int64_t ranks = 0;
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const RankClass& rankClass = schedule.classes[c];
        if (rankClass.program >= schedule.programs.size()) return badInput("schedule of " + schedule.strategy, "a rank class names a program that does not exist");
        for (const std::int64_t rank : {rankClass.ranks.first, rankClass.ranks.at(rankClass.ranks.count - 1)})
            if (rank < 0 || rank >= schedule.world)
                return badInput("schedule of " + schedule.strategy, fmt::format("class {} holds rank {}, but the world has {}", c, rank, schedule.world));
        ranks += rankClass.ranks.count;
    }
    if (ranks != schedule.world)
        return badInput("schedule of " + schedule.strategy, fmt::format("its classes hold {} ranks, but the world has {}", ranks, schedule.world));
    for (std::size_t a = 0; a < schedule.classes.size(); ++a)
        for (std::size_t b = a + 1; b < schedule.classes.size(); ++b)
            if (sharesRank(schedule.classes[a].ranks, schedule.classes[b].ranks))
                return badInput("schedule of " + schedule.strategy, fmt::format("classes {} and {} share a rank", a, b));

    // Ranks of one communicator must issue the same collectives in the same order, or they would wait for each other forever.
    std::vector<CollectiveOrder> orders;
    for (const RankProgram& program : schedule.programs) orders.push_back(collectiveOrder(schedule, program));
    for (std::size_t a = 0; a < schedule.classes.size(); ++a)
        for (std::size_t b = a + 1; b < schedule.classes.size(); ++b) {
            const RankClass &one = schedule.classes[a], &other = schedule.classes[b];
            if (one.program == other.program) continue;
            for (std::uint32_t axis = 0; axis < schedule.axes.size(); ++axis)
                if (orders[one.program][axis] != orders[other.program][axis] && hasCommunicator(schedule.axes[axis], one.ranks.first) &&
                    sharesRank(schedule.axes[axis].groupOf(one.ranks.first), other.ranks))
                    return badInput("schedule of " + schedule.strategy,
                                    fmt::format("ranks {} and {} issue different collectives on the axis '{}'", one.ranks.first, other.ranks.first, schedule.axes[axis].name));
        }
    return {};
}

}  // namespace ringside
