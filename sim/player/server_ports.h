// ServerPorts: the ports of a parameter server, in and out, towards workers of its own node and towards the others.
//
// The directions of a port are apart, but one that is in use slows the other down where calibration saw it: acknowledgements of what comes
// in wait behind what goes out. docs/models/parameter-server.md.
#pragma once

#include <array>
#include <vector>

#include "sim/player/server_prices.h"
#include "sim/resource/shared_port.h"

namespace ringside {

class ServerPorts {
public:
    static constexpr std::uint32_t kCount = 4;  // in local, in remote, out local, out remote

    /// Borrows `prices`.
    explicit ServerPorts(const ServerPrices& prices);

    std::uint32_t indexOf(bool isPush, std::int64_t rank) const { return (isPush ? 0U : 2U) + (rank < prices_.localRanks ? 0U : 1U); }
    /// A worker's flow through port `p`. REQUIRES: as SharedPort::start.
    void start(Time now, std::uint32_t p, std::size_t nodeGroup, double linkSlowdown, double bytes, std::int64_t multiplicity, SharedPort::Tag tag);
    Time nextEnd(std::uint32_t p) const { return ports_[p].nextEnd(); }
    /// As SharedPort::finish.
    void finish(Time now, std::uint32_t p, std::vector<SharedPort::Tag>& ended);
    Time latency(std::uint32_t p) const { return pricesOf(p).latency; }
    std::int64_t receiving() const { return ports_[0].active() + ports_[1].active(); }
    std::int64_t sending() const { return ports_[2].active() + ports_[3].active(); }
    /// The other direction of port `p`, whose pace may change when `p` begins or ends.
    static constexpr std::uint32_t opposite(std::uint32_t p) { return p ^ 2U; }

private:
    const ServerPort& pricesOf(std::uint32_t p) const { return p % 2 == 0 ? prices_.local : prices_.remote; }
    void share(Time now, std::uint32_t p);

    const ServerPrices& prices_;
    std::array<SharedPort, kCount> ports_;
};

}  // namespace ringside
