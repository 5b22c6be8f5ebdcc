// Collectives at message level: every message of a 1,024-rank ring all-reduce, and the folded ring at any size.
// The counter `messages` is per second of this thread's processor time.
#include <benchmark/benchmark.h>

#include "sim/collective/message_level.h"

namespace {

using namespace ringside;

SharedNicSpec spec(std::int64_t nodes) {
    SharedNicSpec s;
    s.nodes = nodes;
    s.devicesPerNode = 8;
    s.intraBytesPerSecond = 240e9;
    s.nicBytesPerSecond = 25e9;
    s.nicsPerNode = 1;
    s.intraLatency = Time::fromMicroseconds(3.4);
    s.nicLatency = Time::fromMicroseconds(14);
    return s;
}

void playRing(benchmark::State& state, const SharedNicSpec& s) {
    const auto network = sharedNicNetwork(s);
    std::uint64_t messages = 0;
    for (auto _ : state) {
        const auto result = playCollective(network, CollectiveOp::AllReduce, CollectiveAlgorithm::Ring, kGiB);
        if (!result) return state.SkipWithError(result.error().message.c_str());
        messages += result->messages;
    }
    state.counters["messages"] = benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
}

// Eight hops share each NIC.
void ringOverSharedNics(benchmark::State& state) {
    SharedNicSpec s = spec(128);
    s.order = SharedNicSpec::RankOrder::DeviceMajor;
    playRing(state, s);
}
BENCHMARK(ringOverSharedNics)->Name("MessageLevel/Ring1024/EightHopsPerNic")->Unit(benchmark::kMillisecond);

// One hop out and one in share each half-duplex NIC, so that all NICs form one chain.
void ringOverHalfDuplexNics(benchmark::State& state) {
    SharedNicSpec s = spec(128);
    s.fullDuplexNics = false;
    playRing(state, s);
}
BENCHMARK(ringOverHalfDuplexNics)->Name("MessageLevel/Ring1024/HalfDuplexNics")->Unit(benchmark::kMillisecond);

void ringUncontended(benchmark::State& state) { playRing(state, spec(128)); }
BENCHMARK(ringUncontended)->Name("MessageLevel/Ring1024/Uncontended")->Unit(benchmark::kMillisecond);

void foldedRing(benchmark::State& state) {
    const auto network = sharedNicNetwork(spec(state.range(0) / 8));
    for (auto _ : state) {
        const auto result = playCollectiveFolded(network, CollectiveOp::AllReduce, CollectiveAlgorithm::Ring, kGiB);
        if (!result || !result->folded) return state.SkipWithError("not folded");
        benchmark::DoNotOptimize(result->duration);
    }
}
BENCHMARK(foldedRing)->Name("MessageLevel/FoldedRing")->ArgName("ranks")->Arg(1024)->Arg(16384)->Arg(1048576)->Unit(benchmark::kMicrosecond);

}  // namespace
