#include "sim/player/async_step.h"

#include <algorithm>
#include <cmath>

namespace ringside {
namespace {

bool sameSpeed(const RankClass& a, const RankClass& b) {
    return a.program == b.program && a.nodeGroup == b.nodeGroup && a.computeSlowdown == b.computeSlowdown && a.linkSlowdown == b.linkSlowdown;
}

/// One class for each speed, however the ranks are folded: the same answer whichever way.
struct Speeds {
    Schedule schedule;                    // with one class per speed
    std::vector<std::int64_t> workers;    // per speed
    std::vector<std::size_t> speedOf;     // per class of the original
};

Speeds bySpeed(const Schedule& schedule) {
    Speeds speeds;
    speeds.schedule = schedule;
    std::vector<RankClass>& classes = speeds.schedule.classes;
    classes.clear();
    for (const RankClass& rankClass : schedule.classes) {
        const auto same = std::find_if(classes.begin(), classes.end(), [&](const RankClass& other) { return sameSpeed(rankClass, other); });
        speeds.speedOf.push_back(static_cast<std::size_t>(same - classes.begin()));
        if (same == classes.end()) {
            classes.push_back(rankClass);
            speeds.workers.push_back(0);
        }
        speeds.workers[speeds.speedOf.back()] += rankClass.ranks.count;
    }
    return speeds;
}

/// The messages of a program, joined to at most kMostWorkerMessages in each direction; and which of them each task went into.
struct JoinedMessages {
    std::vector<WorkerMessage> messages;
    std::vector<std::int32_t> ofTask;      // per task: into messages, −1
};

JoinedMessages joinMessages(const Schedule& schedule, const RankProgram& program, const std::vector<TaskTimes>& times, Time begin) {
    std::vector<std::uint32_t> keyOrder;  // in the order of their first message
    std::vector<std::int32_t> place(schedule.servers.keys.size(), -1);
    for (const Task& task : program.tasks) {
        if (task.kind != TaskKind::Push && task.kind != TaskKind::Pull) continue;
        const std::uint32_t key = schedule.messages[task.work].key;
        if (place[key] >= 0) continue;
        place[key] = static_cast<std::int32_t>(keyOrder.size());
        keyOrder.push_back(key);
    }
    const std::size_t perMessage = (keyOrder.size() + kMostWorkerMessages - 1) / kMostWorkerMessages;
    JoinedMessages joined;
    joined.ofTask.assign(program.tasks.size(), -1);
    struct Pair {
        std::int32_t push = -1, pull = -1;
    };
    std::vector<Pair> pairs(perMessage > 0 ? (keyOrder.size() + perMessage - 1) / perMessage : 0);
    std::int32_t last[2] = {-1, -1};
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind != TaskKind::Push && task.kind != TaskKind::Pull) continue;
        const MessageWork& work = schedule.messages[task.work];
        const bool isPush = task.kind == TaskKind::Push;
        const std::size_t p = static_cast<std::size_t>(place[work.key]) / perMessage;
        std::int32_t& mine = isPush ? pairs[p].push : pairs[p].pull;
        if (mine < 0) {
            mine = static_cast<std::int32_t>(joined.messages.size());
            // Whichever of a key's messages comes second needs the first.
            joined.messages.push_back({isPush, static_cast<std::uint32_t>(p), 0, {}, last[isPush], isPush ? pairs[p].pull : pairs[p].push});
            last[isPush] = mine;
        }
        WorkerMessage& message = joined.messages[static_cast<std::size_t>(mine)];
        message.bytes += static_cast<double>(work.bytes) / static_cast<double>(schedule.servers.count);
        message.offset = std::max(message.offset, begin + times[t].start);
        joined.ofTask[t] = mine;
    }
    return joined;
}

/// Server prices of the joined keys.
ServerPrices joinPrices(const Schedule& schedule, const ServerPrices& prices, const JoinedMessages& joined) {
    ServerPrices out = prices;
    out.sum.clear();
    out.apply.clear();
    const RankProgram& program = schedule.programs.front();
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        if (program.tasks[t].kind != TaskKind::Push) continue;
        const std::uint32_t key = joined.messages[static_cast<std::size_t>(joined.ofTask[t])].key;
        if (out.apply.size() <= key) {
            out.apply.resize(key + 1);
            out.sum.resize(key + 1);
        }
        out.apply[key] += prices.apply[schedule.messages[program.tasks[t].work].key];
    }
    return out;
}

/// Independent jitter of every kernel averages out over the iteration: √Σt² / Σt.
double jitterShare(const RankProgram& program, const std::vector<TaskTimes>& times) {
    double sum = 0, squares = 0;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        if (program.tasks[t].kind != TaskKind::Kernel) continue;
        const double seconds = (times[t].end - times[t].start).seconds();
        sum += seconds;
        squares += seconds * seconds;
    }
    return sum > 0 ? std::sqrt(squares) / sum : 0;
}

}  // namespace

Result<Timeline> playAsync(const Schedule& schedule, const Prices& prices, const PlayOptions& options) {
    std::vector<Time> messageEnds(2 * schedule.messages.size());
    if (options.localStep) return play(schedule, prices, {options.perturbation, options.sample, true, &messageEnds});
    const Speeds speeds = bySpeed(schedule);
    TRY(const Timeline alone, play(speeds.schedule, prices, {nullptr, 0, false, &messageEnds}));
    // Repeated micro-steps come before the last one, which has the messages, and steps without messages before the one with them.
    const auto repeated = [&](const Timeline& timeline) { return timeline.steadyPeriod * (schedule.steady.times - 1); };
    std::vector<Time> begin(speeds.workers.size(), repeated(alone));
    if (schedule.period > 1) {
        TRY(const Timeline local, play(speeds.schedule, prices, {nullptr, 0, true, &messageEnds}));
        for (std::size_t c = 0; c < begin.size(); ++c) {
            Time end;
            for (const TaskTimes& times : local.classes[c]) end = std::max(end, times.end);
            begin[c] += (end + repeated(local)) * (schedule.period - 1);
        }
    }

    std::vector<WorkerGroup> groups;
    std::vector<JoinedMessages> joined;
    std::int64_t firstRank = 0;
    for (std::size_t c = 0; c < speeds.workers.size(); ++c) {
        const RankClass& rankClass = speeds.schedule.classes[c];
        const RankProgram& program = schedule.programs[rankClass.program];
        joined.push_back(joinMessages(schedule, program, alone.classes[c], begin[c]));
        WorkerGroup group;
        group.messages = joined.back().messages;
        for (const TaskTimes& times : alone.classes[c]) group.length = std::max(group.length, begin[c] + times.end);
        group.firstRank = firstRank;
        group.workers = speeds.workers[c];
        group.nodeGroup = rankClass.nodeGroup;
        group.linkSlowdown = rankClass.linkSlowdown;
        group.jitterShare = jitterShare(program, alone.classes[c]) / std::sqrt(static_cast<double>(schedule.period));
        firstRank += group.workers;
        groups.push_back(std::move(group));
    }
    AsyncOptions asyncOptions;
    if (schedule.servers.discipline == ServerDiscipline::BoundedStaleness) asyncOptions.staleness = schedule.servers.staleness;
    if (options.perturbation && options.perturbation->isRandom()) asyncOptions.perturbation = options.perturbation;
    asyncOptions.sample = options.sample;
    AsyncRun run = runAsyncWorkers(groups, joinPrices(schedule, prices.servers, joined.front()), asyncOptions);
    run.outcome.iterationSeconds /= static_cast<double>(schedule.period);
    run.outcome.fastestSeconds /= static_cast<double>(schedule.period);
    run.outcome.slowestSeconds /= static_cast<double>(schedule.period);

    // A mean iteration of each speed. Waiting for the slowest is drawn into the last pull.
    Timeline timeline;
    std::vector<std::vector<TaskTimes>> shown;
    for (std::size_t c = 0; c < speeds.workers.size(); ++c) {
        const RankProgram& program = schedule.programs[speeds.schedule.classes[c].program];
        std::fill(messageEnds.begin(), messageEnds.end(), Time());
        Time* lastPull = nullptr;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const std::int32_t m = joined[c].ofTask[t];
            if (m < 0) continue;
            const bool isPull = program.tasks[t].kind == TaskKind::Pull;
            Time& time = messageEnds[2 * program.tasks[t].work + (isPull ? 1 : 0)];
            time = run.messageEnds[c][static_cast<std::size_t>(m)] - begin[c];
            if (isPull) lastPull = &time;
        }
        if (lastPull) *lastPull += run.gateTimes[c];
        Schedule one = speeds.schedule;
        one.classes = {speeds.schedule.classes[c]};
        TRY(Timeline mean, play(one, prices, {nullptr, 0, options.localStep, &messageEnds}));
        timeline.stepTime = std::max(timeline.stepTime, mean.stepTime);
        timeline.steadyBegin = mean.steadyBegin;
        timeline.steadyPeriod = mean.steadyPeriod;
        timeline.steadyConverged = timeline.steadyConverged && mean.steadyConverged;
        timeline.events += mean.events;
        shown.push_back(std::move(mean.classes.front()));
    }
    for (std::size_t c = 0; c < speeds.speedOf.size(); ++c) {
        timeline.classes.push_back(shown[speeds.speedOf[c]]);
        timeline.runAhead.push_back(prices.nodes[schedule.classes[c].nodeGroup].runAhead);
    }
    timeline.server = std::move(run.activity);
    timeline.async = run.outcome;
    return timeline;
}

}  // namespace ringside
