#include "sim/player/player.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "model/base/check.h"
#include "sim/engine/event_queue.h"
#include "sim/player/async_step.h"
#include "sim/player/broadcast_row.h"

namespace ringside {
namespace {

constexpr std::uint32_t kNone = kNoTask;
enum class EventKind : std::uint32_t { TaskEnd, Arrive, CollectiveEnd, Server, CoreTaken, CoreFree };
// At one instant work ends before work begins, so that a collective that ends as another starts does not slow anything twice.
constexpr std::uint16_t kEndFirst = 0, kThenArrive = 1;

struct Payload {
    EventKind kind = EventKind::TaskEnd;
    std::uint32_t rankClass = 0;   // CollectiveEnd: the communicator
    std::uint32_t task = 0;        // CollectiveEnd: its sequence number there
    std::uint32_t generation = 0;  // of the stream (TaskEnd), the collective or the server; an older one was rescheduled
};

/// A communicator of some classes' representatives, and the collective that runs or gathers on it now.
struct Communicator {
    std::vector<std::uint32_t> members;  // classes
    struct Gathering {
        std::uint32_t sequence = kNone;
        std::vector<std::pair<std::uint32_t, TaskId>> arrived;
        // Once all are there: how much is left, counted as if no kernel ran beside it, from `since` on.
        bool running = false;
        Time since;
        double remainingPs = 0;
        double slowdown = 1, slowdownByCompute = 1, busyShare = 0;
        std::uint32_t generation = 0;
    };
    std::vector<Gathering> gathering;  // usually one
    std::vector<std::uint32_t> classAt;  // by position; filled by the first broadcast through a tree
    BroadcastRow row;
};

struct StreamState {
    std::vector<TaskId> queue;  // issued, in order
    std::size_t head = 0;
    bool busy = false;
    // The running kernel: how much is left, counted as if it ran alone, from `since` on.
    Time since;
    double remainingPs = 0;
    double slowdown = 1;
    std::uint32_t generation = 0;
};

struct ClassState {
    const RankProgram* program = nullptr;
    const NodePrices* prices = nullptr;
    std::vector<StreamState> streams;
    std::vector<std::uint32_t> firstWaiter, nextWaiter;  // per task: who waits for it (stream heads and the host)
    std::vector<bool> done;
    std::vector<std::uint32_t> axisCommunicator;  // per axis
    std::vector<std::uint32_t> axisSequence;      // per axis: collectives reached so far
    double slowdown = 1, linkSlowdown = 1;
    RankDraws draws;
    TaskId nextToIssue = 0;
    Time hostClock;
    bool hostBlocked = false;
    std::vector<std::uint32_t> runningInterference;  // classes of the collectives on this device now
    std::vector<std::uint32_t> slowable;             // communicators whose running collective a kernel or another one slows down here
    int runningKernels = 0;
    double busyShares = 0;                           // what the running collectives need of this rank's core or link
};

template <class Queue>
class PlayerRun {
public:
    PlayerRun(const Schedule& schedule, const Prices& prices, const PlayOptions& options) : schedule_(schedule), prices_(prices), options_(options) {
        if (schedule.servers.count > 0 && !options.messageEnds) server_.emplace(schedule.servers, prices.servers, schedule.world, classOfRank0());
        for (const RankProgram& program : schedule.programs) previousCollective_.push_back(previousOnCommunicator(schedule, program));
        timeline_.classes.resize(schedule.classes.size());
        classes_.resize(schedule.classes.size());
        for (std::size_t c = 0; c < classes_.size(); ++c) {
            ClassState& state = classes_[c];
            state.program = &schedule.programs[schedule.classes[c].program];
            state.prices = &prices.nodes[schedule.classes[c].nodeGroup];
            timeline_.runAhead.push_back(state.prices->runAhead);
            state.streams.resize(state.program->streams.size());
            const std::size_t tasks = state.program->tasks.size();
            timeline_.classes[c].resize(tasks);
            state.firstWaiter.assign(tasks, kNone);
            state.nextWaiter.assign(tasks, kNone);
            state.done.assign(tasks, false);
            state.axisSequence.assign(schedule.axes.size(), 0);
            state.slowdown = schedule.classes[c].computeSlowdown;
            state.linkSlowdown = schedule.classes[c].linkSlowdown;
            if (options.perturbation)
                state.draws = RankDraws(*options.perturbation, options.sample, schedule.classes[c].ranks.first, static_cast<std::uint32_t>(tasks));
        }
        formCommunicators();
    }

    Result<Timeline> run() {
        for (std::uint32_t c = 0; c < classes_.size(); ++c) issue(c);
        while (!queue_.empty()) {
            const auto event = queue_.pop();
            now_ = event.time;
            ++timeline_.events;
            const Payload& p = event.payload;
            switch (p.kind) {
                case EventKind::TaskEnd: {
                    ClassState& state = classes_[p.rankClass];
                    const StreamId stream = state.program->tasks[p.task].stream;
                    if (state.streams[stream].generation == p.generation) finish(p.rankClass, p.task);
                    break;
                }
                case EventKind::Arrive: arrive(p.rankClass, p.task); break;
                case EventKind::CollectiveEnd: endCollective(p.rankClass, p.task, p.generation); break;
                case EventKind::Server:
                    if (serverGeneration_ == p.generation) advanceServer();
                    break;
                case EventKind::CoreTaken:
                    classes_[p.rankClass].runningInterference.push_back(prices_.servers.cores.interference);
                    repace(p.rankClass);
                    break;
                case EventKind::CoreFree: {
                    std::vector<std::uint32_t>& running = classes_[p.rankClass].runningInterference;
                    running.erase(std::find(running.begin(), running.end(), prices_.servers.cores.interference));
                    repace(p.rankClass);
                    break;
                }
            }
        }
        if (server_) timeline_.server = server_->takeActivity();
        for (std::size_t c = 0; c < classes_.size(); ++c) {
            const ClassState& state = classes_[c];
            for (TaskId t = 0; t < state.done.size(); ++t)
                if (!state.done[t])
                    return badInput(fmt::format("schedule of {}", schedule_.strategy),
                                    fmt::format("rank {} waits forever in task {} ({}): its peers never get there", schedule_.classes[c].ranks.first, t,
                                                taskName(schedule_, state.program->tasks[t])));
            for (const TaskTimes& times : timeline_.classes[c]) timeline_.stepTime = std::max(timeline_.stepTime, times.end);
        }
        repeatSteadyMicroStep();
        return std::move(timeline_);
    }

private:
    // Two classes share a communicator of an axis if the group of one's first rank holds a rank of the other.
    void formCommunicators() {
        std::vector<std::map<std::vector<std::uint32_t>, std::uint32_t>> known(schedule_.axes.size());
        for (std::uint32_t c = 0; c < classes_.size(); ++c)
            for (std::size_t a = 0; a < schedule_.axes.size(); ++a) {
                const RankSet group = schedule_.axes[a].groupOf(schedule_.classes[c].ranks.first);
                std::vector<std::uint32_t> members;
                for (std::uint32_t other = 0; other < classes_.size(); ++other)
                    if (other == c || sharesRank(group, schedule_.classes[other].ranks)) members.push_back(other);
                const auto [it, isNew] = known[a].try_emplace(members, static_cast<std::uint32_t>(communicators_.size()));
                if (isNew) communicators_.push_back({members, {}, {}, {}});
                classes_[c].axisCommunicator.push_back(it->second);
            }
    }

    /// The micro-step that stands for several took as long as its successor began after it. If its predecessor did too, so
    /// would all that are left out.
    void repeatSteadyMicroStep() {
        const int steady = schedule_.steady.microStep;
        if (steady < 1) return;
        for (std::size_t c = 0; c < classes_.size(); ++c) {
            Time begin[3] = {Time::max(), Time::max(), Time::max()};
            const std::vector<Task>& tasks = classes_[c].program->tasks;
            for (TaskId t = 0; t < tasks.size(); ++t) {
                const int k = tasks[t].microStep - (steady - 1);
                if (k < 0 || k > 2 || tasks[t].stream != kComputeStream || (tasks[t].phase != Phase::Forward && tasks[t].phase != Phase::Input)) continue;
                begin[k] = std::min(begin[k], timeline_.classes[c][t].start);
            }
            if (begin[0] == Time::max() || begin[1] == Time::max() || begin[2] == Time::max()) continue;
            const Time before = begin[1] - begin[0], period = begin[2] - begin[1];
            if (std::abs((period - before).seconds()) > 1e-4 * period.seconds()) timeline_.steadyConverged = false;
            if (period > timeline_.steadyPeriod) {
                timeline_.steadyPeriod = period;
                timeline_.steadyBegin = begin[1];
            }
        }
        timeline_.stepTime += Time::fromPicoseconds(timeline_.steadyPeriod.picoseconds() * (schedule_.steady.times - 1));
    }

    /// The host goes on issuing until it has to wait or is through.
    void issue(std::uint32_t c) {
        ClassState& state = classes_[c];
        const std::vector<Task>& tasks = state.program->tasks;
        std::vector<TaskTimes>& times = timeline_.classes[c];
        while (state.nextToIssue < tasks.size()) {
            const TaskId t = state.nextToIssue;
            const Task& task = tasks[t];
            TaskTimes& time = times[t];
            if (task.stream == kHostStream) {
                const TaskId missing = firstUnfinished(c, t);
                if (missing != kNone) {
                    waitFor(state, missing, t);
                    state.hostBlocked = true;
                    return;
                }
                // An unblocked host goes on no earlier than what it waited for has ended, which is now.
                time.issued = time.start = state.hostClock;
                if (state.hostBlocked) state.hostClock = std::max(state.hostClock, now_);
                state.hostBlocked = false;
                if (task.kind == TaskKind::HostWork && !isLeftOut(task)) state.hostClock += state.prices->hostWorks[task.work];
                time.end = state.hostClock;
                state.done[t] = true;
                ++state.nextToIssue;
                wakeWaiters(c, t);
                continue;
            }
            StreamState& stream = state.streams[task.stream];
            if (const std::size_t ahead = state.prices->runAhead; ahead > 0 && stream.queue.size() - stream.head > ahead) {
                waitFor(state, stream.queue[stream.queue.size() - 1 - ahead], t);
                state.hostBlocked = true;
                return;
            }
            if (state.hostBlocked) state.hostClock = std::max(state.hostClock, now_);
            state.hostBlocked = false;
            state.hostClock += launchTime(state, task);
            time.issued = state.hostClock;
            ++state.nextToIssue;
            stream.queue.push_back(t);
            if (!stream.busy && stream.head + 1 == stream.queue.size()) tryStart(c, task.stream);
        }
    }

    /// Left out: a local step does without the periodic tasks. They stay in place and take no time.
    bool isLeftOut(const Task& task) const { return options_.localStep && task.periodic; }

    Time launchTime(const ClassState& state, const Task& task) const {
        if (task.kind == TaskKind::HostWork || isLeftOut(task)) return {};  // another process or thread does it, or nobody
        const Time launch = ringside::launchTime(schedule_, *state.prices, task);
        const bool shared = state.program->interpreterThreads > 1 && (task.phase == Phase::Forward || task.phase == Phase::Input);
        return shared ? Time::fromPicoseconds(launch.picoseconds() * state.program->interpreterThreads) : launch;
    }

    /// Of a kernel in pieces the device begins with the first one while the host still issues the others; where the host is the slower of
    /// the two, so late that it never waits between them.
    Time headStart(const ClassState& state, const Task& task) const {
        const int launches = task.kind == TaskKind::Kernel && !task.replayed ? schedule_.kernels[task.work].launches : 1;
        if (launches == 1 || isLeftOut(task)) return {};
        const Time others = Time::fromPicoseconds(state.prices->kernels[task.work].picoseconds() * (launches - 1) / launches);
        return std::min(others, Time::fromPicoseconds(state.prices->furtherLaunch.picoseconds() * (launches - 1)));
    }

    TaskId firstUnfinished(std::uint32_t c, TaskId t) const {
        const ClassState& state = classes_[c];
        const Task& task = state.program->tasks[t];
        for (const TaskId earlier : state.program->dependenciesOf(task))
            if (!state.done[earlier]) return earlier;
        if (task.kind == TaskKind::Collective && !isLeftOut(task)) {
            const TaskId before = previousCollective_[schedule_.classes[c].program][t];
            if (before != kNoTask && !state.done[before]) return before;
        }
        return kNone;
    }

    static void waitFor(ClassState& state, TaskId earlier, TaskId waiter) {
        state.nextWaiter[waiter] = state.firstWaiter[earlier];
        state.firstWaiter[earlier] = waiter;
    }

    void tryStart(std::uint32_t c, StreamId s) {
        ClassState& state = classes_[c];
        StreamState& stream = state.streams[s];
        if (stream.busy || stream.head == stream.queue.size()) return;
        const TaskId t = stream.queue[stream.head];
        const Task& task = state.program->tasks[t];
        const TaskId missing = firstUnfinished(c, t);
        if (missing != kNone) {
            waitFor(state, missing, t);
            return;
        }
        TaskTimes& time = timeline_.classes[c][t];
        time.start = std::max(now_, time.issued - headStart(state, task));
        stream.busy = true;
        if (isLeftOut(task)) return endAfter(c, s, t, Time());
        switch (task.kind) {
            case TaskKind::Kernel:
                stream.since = time.start;
                stream.remainingPs = static_cast<double>(state.prices->kernels[task.work].picoseconds()) * state.slowdown * state.draws.factor(t);
                if (t >= state.draws.pausedTask()) {
                    stream.remainingPs += static_cast<double>(state.draws.pause().picoseconds());
                    state.draws.pauseTaken();
                }
                ++state.runningKernels;
                stream.slowdown = slowdownOf(state, task.work);
                scheduleEnd(c, s, t);
                if (state.runningKernels == 1) repaceCollectives(c, time.start);
                else if (state.prices->oneCore) repace(c);
                break;
            case TaskKind::Copy: endAfter(c, s, t, state.prices->copies[task.work]); break;
            case TaskKind::Collective: queue_.push(time.start, kThenArrive, {EventKind::Arrive, c, t, 0}); break;
            case TaskKind::HostWork: endAfter(c, s, t, state.prices->hostWorks[task.work]); break;  // a loader's, or storage's
            case TaskKind::Push:
            case TaskKind::Pull:
                if (options_.messageEnds) endAfter(c, s, t, std::max(Time(), (*options_.messageEnds)[2 * task.work + (task.kind == TaskKind::Pull ? 1 : 0)] - time.start));
                else queue_.push(time.start, kThenArrive, {EventKind::Arrive, c, t, 0});
                break;
            case TaskKind::HostSync: CHECK(false);
        }
    }

    void endAfter(std::uint32_t c, StreamId s, TaskId t, Time duration) {
        StreamState& stream = classes_[c].streams[s];
        ++stream.generation;
        queue_.push(timeline_.classes[c][t].start + duration, kEndFirst, {EventKind::TaskEnd, c, t, stream.generation});
    }

    void sendMessage(std::uint32_t c, TaskId t) {
        const Task& task = classes_[c].program->tasks[t];
        const RankClass& rankClass = schedule_.classes[c];
        server_->send(now_, {c, t, rankClass.ranks.count, rankClass.ranks.first, rankClass.nodeGroup, rankClass.linkSlowdown, schedule_.messages[task.work],
                             task.kind == TaskKind::Push});
        watchServer();
    }

    std::uint32_t classOfRank0() const {
        for (std::uint32_t c = 0; c < schedule_.classes.size(); ++c)
            if (schedule_.classes[c].ranks.first == 0) return c;
        return 0;
    }

    void watchServer() {
        for (const SyncServer::CoreUse& use : server_->takeCoreUses()) {
            queue_.push(use.begin, kThenArrive, {EventKind::CoreTaken, use.rankClass, 0, 0});
            queue_.push(use.end, kEndFirst, {EventKind::CoreFree, use.rankClass, 0, 0});
        }
        const Time next = server_->nextEvent();
        ++serverGeneration_;
        if (next != Time::max()) queue_.push(next, kEndFirst, {EventKind::Server, 0, 0, serverGeneration_});
    }

    void advanceServer() {
        std::vector<SyncServer::Done> done;
        server_->advance(now_, done);
        for (const SyncServer::Done& message : done) finish(message.rankClass, message.task);
        watchServer();
    }

    void scheduleEnd(std::uint32_t c, StreamId s, TaskId t) {
        StreamState& stream = classes_[c].streams[s];
        ++stream.generation;
        const Time end = stream.since + Time::fromPicoseconds(std::llround(stream.remainingPs * stream.slowdown));
        queue_.push(end, kEndFirst, {EventKind::TaskEnd, c, t, stream.generation});
    }

    double slowdownOf(const ClassState& state, std::uint32_t kernel) const {
        double factor = 1;
        for (const std::uint32_t interference : state.runningInterference) factor += static_cast<double>(state.prices->slowdown[interference][kernel]) - 1;
        if (state.prices->oneCore && state.runningKernels > 1) factor *= state.runningKernels;
        return factor;
    }

    /// A collective came or went on this device: running kernels change their pace from now on.
    void repace(std::uint32_t c) {
        ClassState& state = classes_[c];
        for (StreamId s = 1; s < state.streams.size(); ++s) {
            StreamState& stream = state.streams[s];
            if (!stream.busy) continue;
            const TaskId t = stream.queue[stream.head];
            const Task& task = state.program->tasks[t];
            if (task.kind != TaskKind::Kernel) continue;
            const double slowdown = slowdownOf(state, task.work);
            if (slowdown == stream.slowdown) continue;
            if (now_ > stream.since) {
                stream.remainingPs = std::max(0.0, stream.remainingPs - static_cast<double>((now_ - stream.since).picoseconds()) / stream.slowdown);
                stream.since = now_;
            }
            stream.slowdown = slowdown;
            scheduleEnd(c, s, t);
        }
    }

    void arrive(std::uint32_t c, TaskId t) {
        ClassState& state = classes_[c];
        if (state.program->tasks[t].kind != TaskKind::Collective) return sendMessage(c, t);
        const std::uint32_t work = state.program->tasks[t].work;
        const CollectivePrice& price = prices_.collectives[work];
        if (!price.idleWhileWaiting) interfere(c, price);
        const std::uint32_t axis = schedule_.collectives[work].axis;
        const std::uint32_t id = state.axisCommunicator[axis], sequence = state.axisSequence[axis]++;
        Communicator& communicator = communicators_[id];
        auto slot = std::find_if(communicator.gathering.begin(), communicator.gathering.end(), [&](const auto& g) { return g.sequence == sequence; });
        if (slot == communicator.gathering.end()) {
            slot = communicator.gathering.insert(slot, Communicator::Gathering());
            slot->sequence = sequence;
        }
        slot->arrived.emplace_back(c, t);
        if (slot->arrived.size() < communicator.members.size()) return;
        for (const auto& [other, twin] : slot->arrived)  // ranks that call different collectives hang, here as there
            if (!(schedule_.collectives[classes_[other].program->tasks[twin].work] == schedule_.collectives[work])) return;
        double slowest = 1;
        for (const std::uint32_t member : communicator.members) slowest = std::max(slowest, classes_[member].linkSlowdown);
        Time duration = price.duration;
        if (slowest > 1) duration += Time::fromSeconds(price.cost.transferSeconds * (slowest - 1));
        if (price.tree) duration = beginBroadcast(communicator, *slot, schedule_.collectives[work], {price.tree->latency, price.tree->transfer * slowest});
        if (price.idleWhileWaiting)
            for (const auto& [other, twin] : slot->arrived) interfere(other, price);
        if (price.slowdownByCompute <= 1 && price.busyShare <= 0) {
            queue_.push(now_ + duration, kEndFirst, {EventKind::CollectiveEnd, id, sequence, 0});
            return;
        }
        slot->running = true;
        slot->since = now_;
        slot->remainingPs = static_cast<double>(duration.picoseconds());
        slot->slowdownByCompute = price.slowdownByCompute;
        slot->busyShare = price.busyShare;
        for (const auto& [other, twin] : slot->arrived) classes_[other].busyShares += price.busyShare;
        slot->slowdown = collectiveSlowdown(communicator, *slot);
        scheduleCollectiveEnd(id, *slot);
        const std::vector<std::uint32_t> members = communicator.members;
        for (const std::uint32_t member : members) {
            repaceCollectives(member, now_);  // those that were there before
            classes_[member].slowable.push_back(id);
        }
    }

    /// Each rank comes to a broadcast when it is through with the one before, which is not over while others still receive it.
    Time beginBroadcast(Communicator& communicator, const Communicator::Gathering& broadcast, const CollectiveWork& work, BroadcastHop hop) {
        const RankSet group = schedule_.axes[work.axis].groupOf(schedule_.classes[communicator.members.front()].ranks.first);
        if (communicator.classAt.empty())
            for (std::int64_t i = 0; i < group.count; ++i) communicator.classAt.push_back(static_cast<std::uint32_t>(classOf(schedule_, group.at(i))));
        std::vector<Time> readyOf(classes_.size());
        for (const auto& [c, t] : broadcast.arrived) readyOf[c] = readyBesides(c, t);
        std::vector<Time> ready;
        for (const std::uint32_t c : communicator.classAt) ready.push_back(readyOf[c]);
        return communicator.row.begin(now_, ready, static_cast<std::size_t>(work.root), hop);
    }

    /// When the collective at the head of its stream could have begun but for the one before it on its communicator.
    Time readyBesides(std::uint32_t c, TaskId t) const {
        const ClassState& state = classes_[c];
        const std::vector<TaskTimes>& times = timeline_.classes[c];
        const Task& task = state.program->tasks[t];
        const StreamState& stream = state.streams[task.stream];
        const TaskId before = previousCollective_[schedule_.classes[c].program][t];
        Time ready = times[t].issued;
        for (const TaskId earlier : state.program->dependenciesOf(task))
            if (earlier != before) ready = std::max(ready, times[earlier].end);
        if (stream.head > 0 && stream.queue[stream.head - 1] != before) ready = std::max(ready, times[stream.queue[stream.head - 1]].end);
        return ready;
    }

    void interfere(std::uint32_t c, const CollectivePrice& price) {
        classes_[c].runningInterference.push_back(price.interference);
        repace(c);
    }

    /// A kernel on any of its ranks slows a collective down, and so do others that need more of the core or the link than there is: all wait for
    /// the slowest rank.
    double collectiveSlowdown(const Communicator& communicator, const Communicator::Gathering& collective) const {
        double slowdown = 1, crowded = 1;
        for (const std::uint32_t member : communicator.members) {
            if (classes_[member].runningKernels > 0) slowdown = collective.slowdownByCompute;
            crowded = std::max(crowded, classes_[member].busyShares);
        }
        return collective.busyShare > 0 ? slowdown * crowded : slowdown;
    }

    void scheduleCollectiveEnd(std::uint32_t id, Communicator::Gathering& collective) {
        ++collective.generation;
        const Time end = collective.since + Time::fromPicoseconds(std::llround(collective.remainingPs * collective.slowdown));
        queue_.push(end, kEndFirst, {EventKind::CollectiveEnd, id, collective.sequence, collective.generation});
    }

    /// The first kernel began on this device, or the last one ended: its running collectives change their pace from `at` on.
    void repaceCollectives(std::uint32_t c, Time at) {
        for (const std::uint32_t id : classes_[c].slowable)
            for (Communicator::Gathering& collective : communicators_[id].gathering) {
                if (!collective.running) continue;
                const double slowdown = collectiveSlowdown(communicators_[id], collective);
                if (slowdown == collective.slowdown) continue;
                // A kernel that the host has still to launch begins later than now, perhaps when the collective is over.
                if (at > now_ && collective.since + Time::fromPicoseconds(std::llround(collective.remainingPs * collective.slowdown)) <= at) continue;
                if (at > collective.since) {
                    collective.remainingPs = std::max(0.0, collective.remainingPs - static_cast<double>((at - collective.since).picoseconds()) / collective.slowdown);
                    collective.since = at;
                }
                collective.slowdown = slowdown;
                scheduleCollectiveEnd(id, collective);
            }
    }

    void endCollective(std::uint32_t id, std::uint32_t sequence, std::uint32_t generation) {
        Communicator& communicator = communicators_[id];
        const auto slot = std::find_if(communicator.gathering.begin(), communicator.gathering.end(), [&](const auto& g) { return g.sequence == sequence; });
        if (slot == communicator.gathering.end() || slot->generation != generation) return;
        const bool slowable = slot->running;
        const double share = slot->busyShare;
        const std::vector<std::pair<std::uint32_t, TaskId>> arrived = std::move(slot->arrived);
        communicator.gathering.erase(slot);
        communicator.row.end(now_);
        for (const auto& [c, t] : arrived) {
            const std::uint32_t interference = prices_.collectives[classes_[c].program->tasks[t].work].interference;
            std::vector<std::uint32_t>& running = classes_[c].runningInterference;
            running.erase(std::find(running.begin(), running.end(), interference));
            if (slowable) {
                const auto own = std::find(classes_[c].slowable.begin(), classes_[c].slowable.end(), id);
                if (own != classes_[c].slowable.end()) classes_[c].slowable.erase(own);
                classes_[c].busyShares = std::max(0.0, classes_[c].busyShares - share);
                repaceCollectives(c, now_);
            }
            finish(c, t);
            repace(c);
        }
    }

    void finish(std::uint32_t c, TaskId t) {
        ClassState& state = classes_[c];
        const StreamId s = state.program->tasks[t].stream;
        StreamState& stream = state.streams[s];
        timeline_.classes[c][t].end = now_;
        state.done[t] = true;
        stream.busy = false;
        ++stream.head;
        const bool wasKernel = state.program->tasks[t].kind == TaskKind::Kernel && !isLeftOut(state.program->tasks[t]);
        if (wasKernel) --state.runningKernels;
        tryStart(c, s);
        wakeWaiters(c, t);
        if (wasKernel && state.runningKernels == 0) repaceCollectives(c, now_);
        if (wasKernel && state.runningKernels > 0 && state.prices->oneCore) repace(c);
    }

    void wakeWaiters(std::uint32_t c, TaskId t) {
        ClassState& state = classes_[c];
        TaskId waiter = state.firstWaiter[t];
        state.firstWaiter[t] = kNone;
        while (waiter != kNone) {
            const TaskId next = state.nextWaiter[waiter];
            const StreamId s = state.program->tasks[waiter].stream;
            if (s == kHostStream || waiter == state.nextToIssue)
                issue(c);
            else
                tryStart(c, s);
            waiter = next;
        }
    }

    const Schedule& schedule_;
    const Prices& prices_;
    const PlayOptions& options_;
    std::optional<SyncServer> server_;
    std::uint32_t serverGeneration_ = 0;
    std::vector<std::vector<TaskId>> previousCollective_;  // per program
    Queue queue_;
    Time now_;
    std::vector<ClassState> classes_;
    std::vector<Communicator> communicators_;
    Timeline timeline_;
};

}  // namespace

Result<Timeline> play(const Schedule& schedule, const Prices& prices, const PlayOptions& options) {
    if (schedule.servers.count > 0 && schedule.servers.discipline != ServerDiscipline::Sync && !options.messageEnds) return playAsync(schedule, prices, options);
    // A handful of classes keeps a handful of events pending, where a heap is unbeatable; thousands want the calendar.
    if (schedule.classes.size() < 64) return PlayerRun<BinaryHeapQueue<Payload>>(schedule, prices, options).run();
    return PlayerRun<CalendarQueue<Payload>>(schedule, prices, options).run();
}

}  // namespace ringside
