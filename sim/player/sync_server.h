// SyncServer: a parameter server while a step is played: messages into and out of its ports, the sums of what has come in,
// and the updates. It has no clock: the player tells it the time and asks when it wants to be told again.
//
// A push is done when it has arrived. The server adds it to the sum of its key, one push after another; when all workers'
// pushes of the key are in, it applies the sum; then pulls of the key are answered.
#pragma once

#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "sim/player/server_ports.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// What a server did when.
struct ServerSlice {
    enum class Kind : std::uint8_t { Receive, Sum, Apply, Send } kind = Kind::Apply;
    std::uint32_t key = 0;  ///< of Sum and Apply
    Time begin, end;
};

class SyncServer {
public:
    /// A message of all ranks of a class at once.
    struct Message {
        std::uint32_t rankClass = 0;
        TaskId task = 0;
        std::int64_t multiplicity = 1;  ///< ranks of the class
        std::int64_t rank = 0;          ///< one of them
        std::size_t nodeGroup = 0;
        double linkSlowdown = 1;
        MessageWork work;
        bool isPush = true;
    };
    struct Done {
        std::uint32_t rankClass = 0;
        TaskId task = 0;
    };

    /// A time in which a rank's core is taken by messages or by the server (ServerPrices::cores).
    struct CoreUse {
        std::uint32_t rankClass = 0;
        Time begin, end;
    };

    /// `serverClass`: that of rank 0.
    SyncServer(const ParameterServers& servers, const ServerPrices& prices, std::int64_t workers, std::uint32_t serverClass = 0);

    /// The class has come to this push or pull. REQUIRES: now is not before the last call.
    void send(Time now, const Message& message);
    /// When something happens next; Time::max() if nothing is under way.
    Time nextEvent() const;
    /// Lets happen what happens at nextEvent(), and appends the messages that are done. REQUIRES: now == nextEvent().
    void advance(Time now, std::vector<Done>& done);

    /// Those that came about since the last call.
    std::vector<CoreUse> takeCoreUses() { return std::exchange(coreUses_, {}); }

    /// Receive and Send: the times in which a port is in use; Sum and Apply one after another.
    std::vector<ServerSlice> takeActivity() { return std::move(activity_); }

private:
    struct Key {
        std::int64_t arrived = 0;             // pushes added to the sum under way
        std::int64_t version = 0;             // sums applied
        std::vector<std::uint32_t> waiting;   // pulls, by message
    };
    struct Event {
        Time time;
        std::uint64_t order;
        enum class Kind : std::uint8_t { Arrived, Applied } kind;
        std::uint32_t index;                  // message or key
        bool operator>(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
    };

    /// Nothing of it goes over a link.
    bool isOwn(const Message& message) const { return prices_.cores.serverOnRank0 && message.rank == 0; }
    void startFlow(Time now, std::uint32_t message);
    void arrived(Time now, std::uint32_t message, std::vector<Done>& done);
    void applied(Time now, std::uint32_t key);
    void work(ServerSlice::Kind kind, std::uint32_t key, Time begin, Time duration);
    void notePortUse(Time now);
    void takeCores(Time now, std::uint32_t message);
    void onRank0(Time begin, Time end);
    void schedule(Time time, Event::Kind kind, std::uint32_t index) { events_.push({time, order_++, kind, index}); }

    const ServerPrices& prices_;
    double count_;
    std::int64_t workers_;
    ServerPorts ports_;
    std::vector<Key> keys_;
    std::vector<std::vector<std::int64_t>> pulls_;  // per class and key: pulls so far
    std::vector<Message> messages_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::vector<SharedPort::Tag> ended_;
    std::vector<ServerSlice> activity_;
    Time processorFree_;
    std::uint32_t serverClass_;
    std::vector<Time> coreFree_;              // per class: when the messages so far leave its core
    std::vector<Time> handled_;               // per message: when the cores of both its ends are done with it
    std::vector<CoreUse> coreUses_;
    Time receivingSince_ = Time::max(), sendingSince_ = Time::max();
    std::uint64_t order_ = 0;
};

}  // namespace ringside
