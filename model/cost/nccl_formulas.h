// NCCL formulas: latency and bandwidth of one (operation, algorithm, protocol) on a topology.
//
// Source: NCCL src/graph/tuning.cc (ncclTopoTuneModel) and src/enqueue.cc; docs/models/nccl.md names each formula.
#pragma once

#include "model/base/units.h"
#include "model/cost/nccl_topology.h"

namespace ringside::nccl {

/// Whether NCCL offers the pair for the op on this topology. LL128's default rule is Topology::ll128, not asked here.
bool isAvailable(const Topology& t, CollectiveOp op, CollectiveAlgorithm algorithm, CollectiveProtocol protocol, bool networkReduces);

/// Microseconds that do not depend on the size. REQUIRES: available.
double latencyUs(const Topology& t, NcclVersion version, CollectiveOp op, CollectiveAlgorithm algorithm, CollectiveProtocol protocol);
/// Algorithm bandwidth in GB/s: bytes of the buffer per nanosecond. REQUIRES: available.
double algorithmBandwidth(const Topology& t, NcclVersion version, CollectiveOp op, CollectiveAlgorithm algorithm,
                          CollectiveProtocol protocol);

/// Channels of the communicator: the searched ones twice (rings and trees share them), at most 64.
int communicatorChannels(const Topology& t);
/// A ring or tree uses one channel per that many bytes, up to all of them.
Bytes bytesPerChannel(const Topology& t, CollectiveAlgorithm algorithm, CollectiveProtocol protocol);
/// Ring-Simple all-reduce across nodes pays 1.4× the latency (1.9× before compute capability 8.0) once chunks reach 64 B.
bool hasPlateau(const Topology& t, CollectiveOp op, CollectiveAlgorithm algorithm, CollectiveProtocol protocol);

struct PointToPoint {
    double latencyUs = 0, usPerByte = 0;
    Bytes fillBytes = 0;        ///< the first chunk to every peer is not overlapped
    Bytes bytesPerChannel = 0;
};
/// Send/receive around the group, or all-to-all: an approximation of our own (NCCL models neither).
PointToPoint pointToPoint(const Topology& t, NcclVersion version, CollectiveOp op);

}  // namespace ringside::nccl
