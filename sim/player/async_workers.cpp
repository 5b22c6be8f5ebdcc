#include "sim/player/async_workers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "model/base/check.h"
#include "sim/engine/event_queue.h"

namespace ringside {
namespace {

// A round: as many iterations as there are workers. The slowest worker is seen through a few of its own, and where paces differ it is
// let fall behind by what the others may be ahead before measuring begins.
constexpr std::int64_t kWarmUpRounds = 3, kMostWarmUpRounds = 60, kLeastRounds = 2, kMostRounds = 40;
constexpr std::int64_t kRandomRounds = 12;  // where every iteration is drawn
constexpr std::int64_t kSlowestIterations = 2, kMostLead = 16;
constexpr double kSteady = 1e-3;

enum class EventKind : std::uint32_t { Begin, Ready, Arrived, Applied, End, Port };
struct Payload {
    EventKind kind = EventKind::Begin;
    std::uint32_t team = 0;      // Port: which
    std::uint32_t message = 0;   // Port: generation
};

/// Workers in lockstep.
struct Team {
    std::uint32_t group = 0;
    std::int64_t workers = 1, rank = 0;
    Time began, readyToBegin;
    std::int64_t clock = 0;       // iterations done
    std::size_t open = 0;         // messages of this iteration that are not done
    bool waiting = false;         // for the slowest
    std::vector<int> missing;     // per message
    std::vector<std::int64_t> seen;  // per message (of pushes): version of its key at the last pull
    double pace = 1;
    Time pause;
    Time measuredFrom;
    std::int64_t measured = 0;
};

class AsyncSimulation {
public:
    AsyncSimulation(const std::vector<WorkerGroup>& groups, const ServerPrices& prices, const AsyncOptions& options)
        : groups_(groups), prices_(prices), options_(options), versions_(prices.sum.size()), ports_(prices) {
        portScheduled_.fill(Time::max());
        for (const WorkerGroup& group : groups) workers_ += group.workers;
        formTeams();
        sums_.resize(groups.size());
        for (std::size_t g = 0; g < groups.size(); ++g) sums_[g].message.resize(groups[g].messages.size());
    }

    AsyncRun run() {
        for (std::uint32_t t = 0; t < teams_.size(); ++t)
            queue_.push(Time::fromSeconds(groups_[teams_[t].group].length.seconds() * static_cast<double>(t) / static_cast<double>(teams_.size())), 0, {EventKind::Begin, t, 0});
        nextRound_ = workers_;
        while (!finished_ && !queue_.empty()) {
            const auto event = queue_.pop();
            now_ = event.time;
            switch (event.payload.kind) {
                case EventKind::Begin: begin(event.payload.team); break;
                case EventKind::Ready: ready(event.payload.team, event.payload.message); break;
                case EventKind::Arrived: arrived(event.payload.team, event.payload.message); break;
                case EventKind::Applied: applied(event.payload.team, event.payload.message); break;
                case EventKind::End: end(event.payload.team); break;
                case EventKind::Port:
                    if (portGeneration_[event.payload.team] == event.payload.message) portEnds(event.payload.team);
                    break;
            }
        }
        CHECK(finished_);
        return result();
    }

private:
    struct Means {
        std::vector<std::pair<double, std::int64_t>> message;  // seconds, count
        double gate = 0;
        std::int64_t iterations = 0;
    };

    void formTeams() {
        const std::int64_t size = (workers_ + kMostTeams - 1) / kMostTeams;
        for (std::uint32_t g = 0; g < groups_.size(); ++g)
            for (std::int64_t first = 0; first < groups_[g].workers; first += size) {
                Team team;
                team.group = g;
                team.workers = std::min(size, groups_[g].workers - first);
                team.rank = groups_[g].firstRank + first;
                team.missing.resize(groups_[g].messages.size());
                team.seen.assign(groups_[g].messages.size(), -1);
                clocks_[0] += 1;
                teams_.push_back(std::move(team));
            }
    }

    void begin(std::uint32_t t) {
        Team& team = teams_[t];
        const WorkerGroup& group = groups_[team.group];
        team.began = now_;
        team.pace = 1;
        team.pause = {};
        if (options_.perturbation) {
            // Every iteration draws anew: the sample is (sample, iteration).
            RankDraws draws(*options_.perturbation, options_.sample * 1'000'003 + static_cast<std::uint64_t>(team.clock), team.rank, 1);
            team.pace = 1 + (draws.factor(0) - 1) * group.jitterShare;
            if (draws.pausedTask() == 0) team.pause = draws.pause();
        }
        if (t == 0 && keepActivity_) {
            lastActivity_ = std::move(activity_);
            lastActivityBegan_ = activityBegan_;
            activity_.clear();
            activityBegan_ = now_;
        }
        team.open = group.messages.size();
        for (std::uint32_t m = 0; m < group.messages.size(); ++m) {
            const WorkerMessage& message = group.messages[m];
            team.missing[m] = (message.before >= 0) + (message.after >= 0);
            if (team.missing[m] == 0) queue_.push(startOf(team, message), 0, {EventKind::Ready, t, m});
        }
        if (team.open == 0) queue_.push(now_ + lengthOf(team), 0, {EventKind::End, t, 0});
    }

    Time stretched(const Team& team, Time time) const { return Time::fromPicoseconds(std::llround(static_cast<double>(time.picoseconds()) * team.pace)); }
    Time startOf(const Team& team, const WorkerMessage& message) const { return std::max(now_, team.began + stretched(team, message.offset) + team.pause); }
    Time lengthOf(const Team& team) const { return stretched(team, groups_[team.group].length) + team.pause; }

    void ready(std::uint32_t t, std::uint32_t m) {
        Team& team = teams_[t];
        const WorkerGroup& group = groups_[team.group];
        const WorkerMessage& message = group.messages[m];
        if (!message.isPush) noteSeen(team, message);
        if (message.bytes <= 0) {
            queue_.push(now_, 0, {EventKind::Arrived, t, m});
            return;
        }
        const std::uint32_t p = ports_.indexOf(message.isPush, team.rank);
        ports_.start(now_, p, group.nodeGroup, group.linkSlowdown, message.bytes, team.workers, (SharedPort::Tag{t} << 32) | m);
        watchPort(p);
        watchPort(ServerPorts::opposite(p));
    }

    void watchPort(std::uint32_t p) {
        const Time next = ports_.nextEnd(p);
        if (next == portScheduled_[p]) return;
        portScheduled_[p] = next;
        ++portGeneration_[p];
        if (next != Time::max()) queue_.push(next, 0, {EventKind::Port, p, portGeneration_[p]});
    }

    void portEnds(std::uint32_t p) {
        ended_.clear();
        ports_.finish(now_, p, ended_);
        for (const SharedPort::Tag tag : ended_) queue_.push(now_ + ports_.latency(p), 0, {EventKind::Arrived, static_cast<std::uint32_t>(tag >> 32), static_cast<std::uint32_t>(tag)});
        portScheduled_[p] = Time::max();
        watchPort(p);
        watchPort(ServerPorts::opposite(p));
    }

    void arrived(std::uint32_t t, std::uint32_t m) {
        Team& team = teams_[t];
        const WorkerMessage& message = groups_[team.group].messages[m];
        if (measuring_) {
            auto& [seconds, count] = sums_[team.group].message[m];
            seconds += (now_ - team.began).seconds();
            ++count;
        }
        if (message.isPush) {
            // The server applies one push after another.
            const Time start = std::max(now_, processorFree_);
            processorFree_ = start + prices_.apply[message.key] * team.workers;
            if (keepActivity_) activity_.push_back({ServerSlice::Kind::Apply, message.key, start, processorFree_});
            queue_.push(processorFree_, 0, {EventKind::Applied, t, m});
            release(t, m, true);
            if (!isNeeded(groups_[team.group], m)) messageDone(t);
        } else {
            release(t, m, true);
            release(t, m, false);
            messageDone(t);
        }
    }

    void applied(std::uint32_t t, std::uint32_t m) {
        Team& team = teams_[t];
        const WorkerMessage& message = groups_[team.group].messages[m];
        std::int64_t& version = versions_[message.key];
        if (team.seen[m] >= 0 && measuring_) {
            // Between its own push and the next, each of a team sees the others push, too; a pull just before the push sees nobody of the team.
            const std::int64_t stale = version - team.seen[m] + (message.after < 0 ? team.workers - 1 : 0);
            stalenessSum_ += static_cast<double>(stale) * static_cast<double>(team.workers);
            stalenessCount_ += team.workers;
            mostStale_ = std::max(mostStale_, stale);
        }
        version += team.workers;
        release(t, m, false);
        if (isNeeded(groups_[team.group], m)) messageDone(t);
    }

    /// A pull shows its key as it is now: what the next push of the key is measured against.
    void noteSeen(Team& team, const WorkerMessage& pull) {
        const std::vector<WorkerMessage>& messages = groups_[team.group].messages;
        for (std::size_t m = 0; m < messages.size(); ++m)
            if (messages[m].isPush && messages[m].key == pull.key) team.seen[m] = versions_[pull.key];
    }

    static bool isNeeded(const WorkerGroup& group, std::uint32_t m) {
        return std::any_of(group.messages.begin(), group.messages.end(), [&](const WorkerMessage& other) { return other.after == static_cast<std::int32_t>(m); });
    }

    /// Messages that come after `m` on its stream, or that need it, have one thing less to wait for.
    void release(std::uint32_t t, std::uint32_t m, bool onStream) {
        Team& team = teams_[t];
        const std::vector<WorkerMessage>& messages = groups_[team.group].messages;
        for (std::uint32_t other = 0; other < messages.size(); ++other) {
            const std::int32_t waitsFor = onStream ? messages[other].before : messages[other].after;
            if (waitsFor != static_cast<std::int32_t>(m) || --team.missing[other] > 0) continue;
            Time at = startOf(team, messages[other]);
            // A push that needs a pull comes as long after it as compute between them takes.
            if (messages[other].isPush && messages[other].after >= 0)
                at = std::max(at, now_ + stretched(team, messages[other].offset - messages[static_cast<std::size_t>(messages[other].after)].offset));
            queue_.push(at, 0, {EventKind::Ready, t, other});
        }
    }

    void messageDone(std::uint32_t t) {
        Team& team = teams_[t];
        if (--team.open == 0) queue_.push(std::max(now_, team.began + lengthOf(team)), 0, {EventKind::End, t, 0});
    }

    void end(std::uint32_t t) {
        Team& team = teams_[t];
        const auto leaving = clocks_.find(team.clock);
        if (--leaving->second == 0) clocks_.erase(leaving);
        ++team.clock;
        ++clocks_[team.clock];
        if (measuring_) {
            if (team.measured < 0) team.measuredFrom = now_;
            ++team.measured;
        }
        completed_ += team.workers;
        if (completed_ >= nextRound_) roundEnds();
        team.readyToBegin = now_;
        team.waiting = true;
        if (options_.staleness < 0) return letBegin(t);
        // The slowest may have moved on: whoever waits for it may begin.
        const std::int64_t slowest = clocks_.begin()->first;
        if (slowest != slowest_) {
            slowest_ = slowest;
            for (std::uint32_t other = 0; other < teams_.size(); ++other)
                if (teams_[other].waiting && slowest_ >= teams_[other].clock - options_.staleness) letBegin(other);
        } else if (slowest_ >= team.clock - options_.staleness) {
            letBegin(t);
        }
    }

    void letBegin(std::uint32_t t) {
        Team& team = teams_[t];
        team.waiting = false;
        if (measuring_) {
            sums_[team.group].gate += (now_ - team.readyToBegin).seconds();
            ++sums_[team.group].iterations;
        }
        begin(t);
    }

    void roundEnds() {
        nextRound_ += workers_;
        ++rounds_;
        const double length = (now_ - roundBegan_).seconds();
        roundBegan_ = now_;
        if (!measuring_ && (rounds_ >= kMostWarmUpRounds || (rounds_ >= kWarmUpRounds && clocks_.begin()->first >= warmUpClock()))) {
            measuring_ = keepActivity_ = true;
            measuredFrom_ = now_;
            measuredAtStart_ = completed_;
            for (Team& team : teams_) team.measured = -1;
            rounds_ = 0;
            return;
        }
        if (!measuring_) return;
        steady_ = std::abs(length - lastRound_) <= kSteady * length;
        lastRound_ = length;
        const std::int64_t least = options_.perturbation && options_.perturbation->isRandom() ? kRandomRounds : kLeastRounds;
        const bool sawSlowest = std::all_of(teams_.begin(), teams_.end(), [](const Team& team) { return team.measured >= kSlowestIterations; });
        finished_ = rounds_ >= kMostRounds || (rounds_ >= least && sawSlowest && (steady_ || least == kRandomRounds));
    }

    /// What the slowest must have done before measuring begins.
    std::int64_t warmUpClock() const {
        if (groups_.size() == 1) return 0;
        return kSlowestIterations + std::clamp<std::int64_t>(options_.staleness, 0, kMostLead);
    }

    AsyncRun result() {
        AsyncRun run;
        AsyncOutcome& out = run.outcome;
        out.iterationSeconds = (now_ - measuredFrom_).seconds() * static_cast<double>(workers_) / static_cast<double>(completed_ - measuredAtStart_);
        out.fastestSeconds = out.slowestSeconds = out.iterationSeconds;
        bool first = true;
        double rate = 0;  // iterations per second of all workers together
        for (const Team& team : teams_) {
            // A worker that has not ended twice since is as slow as the time it was watched for.
            const double seconds = team.measured > 0 ? (team.readyToBegin - team.measuredFrom).seconds() / static_cast<double>(team.measured)
                                                     : (now_ - measuredFrom_).seconds();
            out.fastestSeconds = first ? seconds : std::min(out.fastestSeconds, seconds);
            out.slowestSeconds = first ? seconds : std::max(out.slowestSeconds, seconds);
            first = false;
            if (seconds > 0) rate += static_cast<double>(team.workers) / seconds;
        }
        // From end to end of each worker's own iterations: a window of the clock would cut some of them.
        if (rate > 0) out.iterationSeconds = static_cast<double>(workers_) / rate;
        out.meanStaleness = stalenessCount_ > 0 ? stalenessSum_ / static_cast<double>(stalenessCount_) : 0;
        out.maxStaleness = mostStale_;
        out.steady = steady_ || (options_.perturbation && options_.perturbation->isRandom());
        for (const Means& means : sums_) {
            std::vector<Time>& times = run.messageEnds.emplace_back();
            for (const auto& [seconds, count] : means.message) times.push_back(count > 0 ? Time::fromSeconds(seconds / static_cast<double>(count)) : Time());
            run.gateTimes.push_back(means.iterations > 0 ? Time::fromSeconds(means.gate / static_cast<double>(means.iterations)) : Time());
        }
        for (ServerSlice slice : lastActivity_) {
            slice.begin -= lastActivityBegan_;
            slice.end -= lastActivityBegan_;
            if (slice.begin >= Time()) run.activity.push_back(slice);
        }
        return run;
    }

    const std::vector<WorkerGroup>& groups_;
    const ServerPrices& prices_;
    const AsyncOptions& options_;
    std::vector<std::int64_t> versions_;       // per key
    ServerPorts ports_;
    std::array<std::uint32_t, ServerPorts::kCount> portGeneration_{};
    std::array<Time, ServerPorts::kCount> portScheduled_{};
    std::vector<SharedPort::Tag> ended_;
    std::vector<Team> teams_;
    CalendarQueue<Payload> queue_;
    Time now_, processorFree_;
    std::int64_t workers_ = 0, completed_ = 0, nextRound_ = 0, rounds_ = 0;
    std::map<std::int64_t, std::int64_t> clocks_;  // how many teams are at each clock
    std::int64_t slowest_ = 0;
    Time roundBegan_, measuredFrom_;
    std::int64_t measuredAtStart_ = 0;
    double lastRound_ = 0;
    bool measuring_ = false, finished_ = false, steady_ = false, keepActivity_ = false;
    double stalenessSum_ = 0;
    std::int64_t stalenessCount_ = 0, mostStale_ = 0;
    std::vector<Means> sums_;
    std::vector<ServerSlice> activity_, lastActivity_;
    Time activityBegan_, lastActivityBegan_;
};

}  // namespace

AsyncRun runAsyncWorkers(const std::vector<WorkerGroup>& groups, const ServerPrices& prices, const AsyncOptions& options) {
    return AsyncSimulation(groups, prices, options).run();
}

}  // namespace ringside
