#include "sim/player/sync_server.h"

#include <algorithm>

namespace ringside {
namespace {

/// Saturates: an absurd cost stays an absurd time.
Time timesOver(Time time, std::int64_t n) {
    return n > 1 && time.picoseconds() > Time::max().picoseconds() / n ? Time::max() : time * n;
}

}  // namespace

SyncServer::SyncServer(const ParameterServers& servers, const ServerPrices& prices, std::int64_t workers, std::uint32_t serverClass)
    : prices_(prices), count_(static_cast<double>(servers.count)), workers_(workers), ports_(prices), keys_(servers.keys.size()), serverClass_(serverClass) {}

void SyncServer::send(Time now, const Message& message) {
    const auto index = static_cast<std::uint32_t>(messages_.size());
    messages_.push_back(message);
    handled_.push_back({});
    if (message.isPush) return startFlow(now, index);
    if (pulls_.size() <= message.rankClass) pulls_.resize(message.rankClass + 1, std::vector<std::int64_t>(keys_.size()));
    Key& key = keys_[message.work.key];
    if (key.version > pulls_[message.rankClass][message.work.key]++) startFlow(now, index);
    else key.waiting.push_back(index);
}

void SyncServer::startFlow(Time now, std::uint32_t index) {
    const Message& message = messages_[index];
    takeCores(now, index);
    // The server's own device, or its own process.
    if (message.work.bytes == 0 || isOwn(message)) return schedule(std::max(now, handled_[index]), Event::Kind::Arrived, index);
    ports_.start(now, ports_.indexOf(message.isPush, message.rank), message.nodeGroup, message.linkSlowdown, static_cast<double>(message.work.bytes) / count_, message.multiplicity, index);
    notePortUse(now);
}

Time SyncServer::nextEvent() const {
    Time next = events_.empty() ? Time::max() : events_.top().time;
    for (std::uint32_t p = 0; p < ServerPorts::kCount; ++p) next = std::min(next, ports_.nextEnd(p));
    return next;
}

void SyncServer::advance(Time now, std::vector<Done>& done) {
    for (std::uint32_t p = 0; p < ServerPorts::kCount; ++p)
        while (ports_.nextEnd(p) == now) {
            ended_.clear();
            ports_.finish(now, p, ended_);
            for (const SharedPort::Tag index : ended_) schedule(std::max(now + ports_.latency(p), handled_[index]), Event::Kind::Arrived, static_cast<std::uint32_t>(index));
        }
    while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        if (event.kind == Event::Kind::Arrived) arrived(now, event.index, done);
        else applied(now, event.index);
    }
    notePortUse(now);
}

void SyncServer::arrived(Time now, std::uint32_t index, std::vector<Done>& done) {
    const Message message = messages_[index];
    done.push_back({message.rankClass, message.task});
    if (!message.isPush) return;
    const std::uint32_t k = message.work.key;
    Key& key = keys_[k];
    work(ServerSlice::Kind::Sum, k, std::max(now, processorFree_), timesOver(prices_.sum[k], message.multiplicity));
    key.arrived += message.multiplicity;
    if (key.arrived < workers_) return;
    key.arrived = 0;
    work(ServerSlice::Kind::Apply, k, processorFree_, prices_.apply[k]);
    schedule(processorFree_, Event::Kind::Applied, k);
}

void SyncServer::applied(Time now, std::uint32_t k) {
    Key& key = keys_[k];
    ++key.version;
    for (const std::uint32_t pull : key.waiting) startFlow(now, pull);
    key.waiting.clear();
}

void SyncServer::onRank0(Time begin, Time end) {
    if (prices_.cores.shared && prices_.cores.serverOnRank0) coreUses_.push_back({serverClass_, begin, end});
}

// Each core does one thing after another. What a rank exchanges with a server of its own process is copied, no more.
void SyncServer::takeCores(Time now, std::uint32_t index) {
    const ServerCores& cores = prices_.cores;
    if (!cores.shared) return;
    const Message& message = messages_[index];
    const Bytes bytes = message.work.bytes;
    const auto take = [&](Time& free, Time duration, std::uint32_t rankClass) {
        const Time begin = std::max(now, free);
        free = begin + duration;
        if (duration > Time()) coreUses_.push_back({rankClass, begin, free});
        handled_[index] = std::max(handled_[index], free);
    };
    if (isOwn(message)) return take(processorFree_, message.isPush ? Time() : cores.copyTime(bytes), serverClass_);  // adding its push is counted there
    if (coreFree_.size() <= message.rankClass) coreFree_.resize(message.rankClass + 1);
    take(coreFree_[message.rankClass], cores.messageTime(bytes) + cores.copyTime(bytes), message.rankClass);
    if (cores.serverOnRank0) take(processorFree_, timesOver(cores.messageTime(bytes), message.multiplicity), serverClass_);
}

void SyncServer::work(ServerSlice::Kind kind, std::uint32_t key, Time begin, Time duration) {
    processorFree_ = std::min(begin + duration, Time::max());
    onRank0(begin, processorFree_);
    if (!activity_.empty()) {
        ServerSlice& last = activity_.back();
        if (last.kind == kind && last.key == key && last.end == begin) {
            last.end = processorFree_;
            return;
        }
    }
    activity_.push_back({kind, key, begin, processorFree_});
}

void SyncServer::notePortUse(Time now) {
    const auto note = [&](ServerSlice::Kind kind, Time& since, std::int64_t active) {
        if (active > 0 && since == Time::max()) since = now;
        if (active > 0 || since == Time::max()) return;
        activity_.push_back({kind, 0, since, now});
        since = Time::max();
    };
    note(ServerSlice::Kind::Receive, receivingSince_, ports_.receiving());
    note(ServerSlice::Kind::Send, sendingSince_, ports_.sending());
}

}  // namespace ringside
