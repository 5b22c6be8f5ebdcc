#include "sim/player/server_ports.h"

namespace ringside {
namespace {

/// A port that nobody uses still needs a rate.
double rateOf(const ServerPort& port) { return port.bytesPerS > 0 ? port.bytesPerS : 1; }

}  // namespace

ServerPorts::ServerPorts(const ServerPrices& prices)
    : prices_(prices), ports_{SharedPort(rateOf(prices.local)), SharedPort(rateOf(prices.remote)), SharedPort(rateOf(prices.local)), SharedPort(rateOf(prices.remote))} {}

void ServerPorts::start(Time now, std::uint32_t p, std::size_t nodeGroup, double linkSlowdown, double bytes, std::int64_t multiplicity, SharedPort::Tag tag) {
    const std::vector<double>& caps = pricesOf(p).flowBytesPerS;
    ports_[p].start(now, ports_[p].groupOf(caps[caps.size() == 1 ? 0 : nodeGroup] / linkSlowdown), bytes, multiplicity, tag);
    share(now, p);
}

void ServerPorts::finish(Time now, std::uint32_t p, std::vector<SharedPort::Tag>& ended) {
    ports_[p].finish(now, ended);
    share(now, p);
}

void ServerPorts::share(Time now, std::uint32_t p) {
    SharedPort &one = ports_[p], &other = ports_[opposite(p)];
    const double rate = rateOf(pricesOf(p)) / (one.active() > 0 && other.active() > 0 ? pricesOf(p).bothWaysSlowdown : 1);
    one.setRate(now, rate);
    other.setRate(now, rate);
}

}  // namespace ringside
