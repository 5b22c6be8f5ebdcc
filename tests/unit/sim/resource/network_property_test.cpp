// Laws of the flow network: bytes are conserved on every link, and no link ever carries more than its capacity allows.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "sim/resource/network.h"

namespace ringside {
namespace {

struct Start {
    RouteId route;
    Bytes bytes;
    Time time;
};

TEST(FlowNetworkLaws, BytesAreConservedOnEveryLinkAndNoLinkIsFasterThanItsCapacity) {
    ASSERT_TRUE(rc::check([] {
        const int links = *rc::gen::inRange(1, 5), routes = *rc::gen::inRange(1, 7);
        std::vector<double> capacities;
        for (int l = 0; l < links; ++l) capacities.push_back(1e6 * *rc::gen::inRange(1, 1000));
        FlowNetwork network(capacities);
        std::vector<std::vector<LinkIndex>> paths;
        for (int r = 0; r < routes; ++r) {
            std::vector<LinkIndex> path{static_cast<LinkIndex>(*rc::gen::inRange(0, links))};
            const LinkIndex second = static_cast<LinkIndex>(*rc::gen::inRange(0, links));
            if (second != path[0]) path.push_back(second);
            network.addRoute(path);
            paths.push_back(path);
        }
        network.freeze();
        std::vector<Start> starts;  // one flow per route, at random instants, several at once
        for (int r = 0; r < routes; ++r)
            starts.push_back({static_cast<RouteId>(r), *rc::gen::inRange<Bytes>(0, 10'000'000),
                              Time::fromNanoseconds(*rc::gen::inRange(0, 4) * 1'000'000)});
        std::sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) { return a.time < b.time; });

        std::vector<double> expected(static_cast<std::size_t>(links), 0.0);
        for (const Start& start : starts)
            for (const LinkIndex link : paths[start.route]) expected[link] += static_cast<double>(start.bytes);

        std::vector<Time> finish(static_cast<std::size_t>(routes), Time::max());
        std::vector<RouteId> done;
        std::size_t next = 0;
        for (;;) {
            const Time completion = network.nextCompletion();
            const Time start = next < starts.size() ? starts[next].time : Time::max();
            const Time now = std::min(completion, start);
            if (now == Time::max()) break;
            if (completion == now) {
                done.clear();
                network.complete(now, done);
                for (const RouteId route : done) finish[route] = now;
            }
            for (; next < starts.size() && starts[next].time == now; ++next) network.start(starts[next].route, starts[next].bytes, now);
        }
        RC_ASSERT(network.bytesPerLink() == expected);
        // Over any interval from a start to a finish, the flows wholly inside it fit through each link; each flow's
        // finish is rounded to a picosecond, and rates to whole bytes per second.
        for (const Start& first : starts) {
            for (const Time last : finish) {
                std::vector<double> inside(static_cast<std::size_t>(links), 0.0);
                for (const Start& start : starts)
                    if (start.time >= first.time && finish[start.route] <= last)
                        for (const LinkIndex link : paths[start.route]) inside[link] += static_cast<double>(start.bytes);
                for (std::size_t l = 0; l < inside.size(); ++l)
                    RC_ASSERT(inside[l] <= std::max(0.0, (last - first.time).seconds()) * capacities[l] * (1 + 1e-9) + 1);
            }
        }
        for (const Time time : finish) RC_ASSERT(time < Time::max());
    }));
}

}  // namespace
}  // namespace ringside
