#include "sim/player/critical_path.h"

#include <algorithm>
#include <span>

namespace ringside {
namespace {

constexpr std::uint32_t kNone = kNoTask;

/// The collectives of a program by axis, in issue order.
struct CollectiveIndex {
    std::vector<std::uint32_t> sequenceOf;   // per task
    std::vector<std::vector<TaskId>> tasks;  // per axis
};

std::vector<CollectiveIndex> indexCollectives(const Schedule& schedule) {
    std::vector<CollectiveIndex> all;
    for (const RankProgram& program : schedule.programs) {
        CollectiveIndex& index = all.emplace_back();
        index.sequenceOf.assign(program.tasks.size(), 0);
        index.tasks.resize(schedule.axes.size());
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            if (program.tasks[t].kind != TaskKind::Collective) continue;
            std::vector<TaskId>& onAxis = index.tasks[schedule.collectives[program.tasks[t].work].axis];
            index.sequenceOf[t] = static_cast<std::uint32_t>(onAxis.size());
            onAxis.push_back(t);
        }
    }
    return all;
}

PathKind kindOf(const Task& task) {
    switch (task.kind) {
        case TaskKind::Collective: case TaskKind::Push: case TaskKind::Pull: return PathKind::Communication;
        case TaskKind::Copy: return PathKind::Copy;
        case TaskKind::HostWork: case TaskKind::HostSync: return PathKind::Host;
        case TaskKind::Kernel: return task.phase == Phase::Optimizer ? PathKind::Optimizer : PathKind::Compute;
    }
    return PathKind::Compute;
}

/// Which push of each key came in last, and when the key was applied.
struct LastPush {
    std::uint32_t rankClass = 0;
    TaskId task = kNone;
    Time arrived, applied;
};

std::vector<LastPush> lastPushes(const Schedule& schedule, const Timeline& timeline) {
    std::vector<LastPush> last(timeline.server.empty() || timeline.async ? 0 : schedule.servers.keys.size());
    if (last.empty()) return last;
    for (std::uint32_t c = 0; c < timeline.classes.size(); ++c) {
        const RankProgram& program = schedule.programs[schedule.classes[c].program];
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            if (program.tasks[t].kind != TaskKind::Push) continue;
            LastPush& key = last[schedule.messages[program.tasks[t].work].key];
            if (key.task == kNone || timeline.classes[c][t].end > key.arrived) key = {c, t, timeline.classes[c][t].end, {}};
        }
    }
    for (const ServerSlice& slice : timeline.server)
        if (slice.kind == ServerSlice::Kind::Apply) last[slice.key].applied = slice.end;
    return last;
}

/// What the host stood still for before it could issue `t`, as far ahead of its stream as it may get; kNone: it did not.
TaskId hostWaitedFor(const RankProgram& program, std::span<const TaskTimes> times, std::span<const TaskId> previous, std::size_t runAhead, TaskId t) {
    if (runAhead == 0 || t == 0 || program.tasks[t].stream == kHostStream) return kNone;
    TaskId awaited = t;
    for (std::size_t i = 0; i <= runAhead && awaited != kNone; ++i) awaited = previous[awaited];
    const TaskTimes& before = times[t - 1];
    const Time hostCame = program.tasks[t - 1].stream == kHostStream ? before.end : before.issued;
    return awaited != kNone && times[awaited].end > hostCame ? awaited : kNone;
}

}  // namespace

std::string_view nameOf(PathKind kind) {
    switch (kind) {
        case PathKind::Compute: return "compute";
        case PathKind::Communication: return "communication";
        case PathKind::Copy: return "copy";
        case PathKind::Host: return "host";
        case PathKind::Optimizer: return "optimizer";
        case PathKind::Server: return "server";
    }
    return "?";
}

std::vector<PathSegment> criticalPath(const Schedule& schedule, const Timeline& timeline) {
    const std::vector<CollectiveIndex> index = indexCollectives(schedule);
    // Previous task on the same stream, per program.
    std::vector<std::vector<TaskId>> previous(schedule.programs.size()), previousCollective;
    for (std::size_t p = 0; p < schedule.programs.size(); ++p) {
        const RankProgram& program = schedule.programs[p];
        previousCollective.push_back(previousOnCommunicator(schedule, program));
        std::vector<TaskId> last(program.streams.size(), kNone);
        previous[p].assign(program.tasks.size(), kNone);
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            previous[p][t] = last[program.tasks[t].stream];
            last[program.tasks[t].stream] = t;
        }
    }
    const std::vector<LastPush> pushes = lastPushes(schedule, timeline);
    // Start from the task that ends last.
    std::uint32_t c = 0;
    TaskId t = 0;
    Time end;
    for (std::uint32_t k = 0; k < timeline.classes.size(); ++k)
        for (TaskId i = 0; i < timeline.classes[k].size(); ++i)
            if (timeline.classes[k][i].end >= end) {
                end = timeline.classes[k][i].end;
                c = k;
                t = i;
            }

    std::vector<PathSegment> path;
    path.reserve(schedule.programs[schedule.classes[c].program].tasks.size() / 2);
    Time cursor = end;  // everything after it is explained
    while (cursor > Time()) {
        const Task& task = schedule.programs[schedule.classes[c].program].tasks[t];
        const TaskTimes& times = timeline.classes[c][t];
        Time begin = std::min(times.start, cursor);
        if (task.kind == TaskKind::Collective) {
            // It began when the last rank got there: the path goes on in that rank.
            const std::uint32_t axis = schedule.collectives[task.work].axis, sequence = index[schedule.classes[c].program].sequenceOf[t];
            const RankSet group = schedule.axes[axis].groupOf(schedule.classes[c].ranks.first);
            const std::uint32_t here = c;
            for (std::uint32_t k = 0; k < timeline.classes.size(); ++k) {
                const std::vector<TaskId>& theirs = index[schedule.classes[k].program].tasks[axis];
                if (k == here || sequence >= theirs.size()) continue;
                const TaskId twin = theirs[sequence];
                const TaskTimes& peer = timeline.classes[k][twin];
                if (peer.end == times.end && peer.start > begin && sharesRank(group, schedule.classes[k].ranks)) {
                    begin = peer.start;
                    c = k;
                    t = twin;
                }
            }
        }
        if (task.kind == TaskKind::Pull && !pushes.empty()) {
            // The answer waited for the key to be applied, and that for the last worker's push: the path goes on there.
            const LastPush& push = pushes[schedule.messages[task.work].key];
            const Time applied = std::min(push.applied, cursor);
            if (push.arrived > times.start || applied > times.start) {
                const Time from = std::max(times.start, applied), worked = std::min(push.arrived, from);
                if (from < cursor) path.push_back({PathKind::Communication, c, t, from, cursor});
                if (worked < from) path.push_back({PathKind::Server, c, t, worked, from});
                cursor = worked;
                c = push.rankClass;
                t = push.task;
                continue;
            }
        }
        if (task.kind == TaskKind::HostSync) begin = cursor;  // waiting is not work: what it waited for is
        if (begin < cursor) path.push_back({kindOf(task), c, t, begin, cursor});
        cursor = begin;
        const RankProgram& program = schedule.programs[schedule.classes[c].program];
        // What made it begin then: a dependency, the task before it on its stream, or the host that issued it.
        const std::vector<TaskTimes>& mine = timeline.classes[c];
        TaskId cause = kNone;
        Time latest = Time::fromPicoseconds(-1);
        const auto consider = [&](TaskId candidate) {
            if (candidate != kNone && mine[candidate].end <= cursor && mine[candidate].end > latest) {
                latest = mine[candidate].end;
                cause = candidate;
            }
        };
        for (const TaskId earlier : program.dependenciesOf(program.tasks[t])) consider(earlier);
        consider(previous[schedule.classes[c].program][t]);
        consider(previousCollective[schedule.classes[c].program][t]);
        if (program.tasks[t].stream != kHostStream && mine[t].issued >= cursor && latest < cursor) {
            // The host was late. Its time since it last waited is host time; go on from that wait: a sync, or a stream that it was far enough ahead of.
            const auto standsStill = [&](TaskId at) { return hostWaitedFor(program, mine, previous[schedule.classes[c].program], timeline.runAhead[c], at); };
            TaskId sync = t, awaited = standsStill(t);
            while (sync > 0 && program.tasks[sync].kind != TaskKind::HostSync && awaited == kNone) awaited = standsStill(--sync);
            const bool synced = program.tasks[sync].kind == TaskKind::HostSync;
            const Time from = awaited != kNone ? std::min(mine[awaited].end, cursor) : synced ? std::min(mine[sync].end, cursor) : Time();
            if (from < cursor) path.push_back({PathKind::Host, c, t, from, cursor});
            cursor = from;
            if ((awaited == kNone && !synced) || cursor <= Time()) break;
            t = awaited != kNone ? awaited : sync;
            continue;
        }
        if (cause == kNone) {
            if (cursor > Time()) path.push_back({PathKind::Host, c, t, Time(), cursor});
            break;
        }
        if (latest < cursor) path.push_back({PathKind::Host, c, t, latest, cursor});
        cursor = latest;
        t = cause;
    }
    std::reverse(path.begin(), path.end());
    return path;
}

}  // namespace ringside
