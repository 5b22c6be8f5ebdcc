// A hand-made step for the trace tests: two ranks, a host thread, a compute and a communication stream each.
#pragma once

#include "traces/trace_builder.h"

namespace ringside {

inline Time us(double microseconds) { return Time::fromMicroseconds(microseconds); }

/// Per rank, in µs (rank 1 runs its kernels 2 µs later from the backward on):
///   host     launch forward [0,4)  launch backward [4,8)  launch all-reduce [8,10)  launch optimizer [10,12)
///   compute  forward [2,22)        backward [22,62)                                 optimizer [72,82)
///   comm                                     all-reduce [42,72)
inline Trace smallTrace() {
    TraceBuilder builder;
    builder.setTitle("small");
    builder.setWorldSize(2);
    const std::int32_t reduce = builder.addCollective(
        {.op = "allreduce", .elements = 1000, .dtype = "Float", .bytes = 4000, .groupSize = 2, .sequence = 3, .algorithm = "RING", .protocol = "LL"});
    for (const std::int64_t rank : {0, 1}) {
        const auto host = builder.addTrack(rank, 0, TrackKind::Host, "host");
        const auto compute = builder.addTrack(rank, 7, TrackKind::Compute, "compute");
        const auto comm = builder.addTrack(rank, 20, TrackKind::Communication, "nccl");
        const double late = rank == 0 ? 0 : 2;
        const auto launchForward = builder.addSlice(host, us(0), us(4), SliceCategory::Host, builder.internName("launch forward"), 0);
        const auto launchBackward = builder.addSlice(host, us(4), us(4), SliceCategory::Host, builder.internName("launch backward"), 1);
        const auto launchReduce = builder.addSlice(host, us(8), us(2), SliceCategory::Host, builder.internName("launch all-reduce"), 2);
        const auto launchOptimizer = builder.addSlice(host, us(10), us(2), SliceCategory::Host, builder.internName("launch optimizer"), 3);
        const auto optimizer = builder.addSlice(compute, us(72), us(10), SliceCategory::Optimizer, builder.internName("optimizer"), 3);
        const auto forward = builder.addSlice(compute, us(2), us(20), SliceCategory::Compute, builder.internName("forward/layer 0"), 0);
        const auto backward = builder.addSlice(compute, us(22 + late), us(40 - late), SliceCategory::Compute, builder.internName("backward/layer 0"), 1);
        const auto allReduce = builder.addSlice(comm, us(42 + late), us(30 - late), SliceCategory::Communication, builder.internName("bucket 0"), 2, reduce);
        builder.addFlow(launchForward, forward, Flow::Kind::Launch);
        builder.addFlow(launchBackward, backward, Flow::Kind::Launch);
        builder.addFlow(launchReduce, allReduce, Flow::Kind::Launch);
        builder.addFlow(launchOptimizer, optimizer, Flow::Kind::Launch);
        builder.addFlow(allReduce, optimizer, Flow::Kind::Dependency);
        builder.addCounter({rank, "memory", {"parameters", "activations"}, {us(0), us(22), us(62)}, {100, 0, 100, 50, 100, 0}});
    }
    return builder.build();
}

}  // namespace ringside
