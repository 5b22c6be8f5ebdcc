// NCCL constants: the figures of the tuner and of the topology search, by release. Data only.
//
// Source: NCCL src/graph/tuning.cc and src/graph/search.cc at 2.27.7 and 2.30.7; docs/models/nccl.md lists the differences.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "model/cost/collective_options.h"

namespace ringside::nccl {

/// Row of the tables that differ by GPU generation.
enum class Generation : std::size_t { Volta = 0, Ampere = 1, Hopper = 2, Blackwell = 3 };
enum class Link : std::size_t { NvLink = 0, Pcie = 1, Net = 2 };

/// Column of a protocol. REQUIRES: LL, LL128 or Simple.
std::size_t protocolIndex(CollectiveProtocol protocol);

/// Microseconds that an algorithm costs before the first hop.
double baseLatencyUs(CollectiveAlgorithm algorithm, CollectiveProtocol protocol);
/// Microseconds of one hop. 0 where NCCL has no figure.
double hopLatencyUs(NcclVersion version, Link link, CollectiveAlgorithm algorithm, CollectiveProtocol protocol);

/// Bandwidth caps, GB/s. `nodes` picks the column: 1, 2, or more.
struct Caps {
    double ll;                  ///< whole communicator
    double ringLL128PerChannel;
    double treeLL128PerChannel;
    double treePerChannel;
    double nvlsTreePerChannel;  ///< infinite where the release has none
};
/// On one node the LL cap follows the GPU; across nodes it follows the CPU (`amdCpu`).
Caps caps(NcclVersion version, Generation generation, std::int64_t nodes, bool amdCpu);

/// Fraction of the multicast rate that NVLS reaches (2.30).
double nvlsEfficiency(Generation generation);
/// Channels that NVLS runs on: 16 on Hopper, 24 on Blackwell (32 across nodes).
int nvlsChannels(Generation generation, std::int64_t nodes);

/// What the tree's bandwidth is multiplied by at a message size; 1 outside the table (below 64 B, from 512 MiB on).
double treeCorrection(CollectiveProtocol protocol, std::int64_t bytes);
/// The same table for NVLSTree on Blackwell with an x86 host, one size longer.
double nvlsTreeCorrection(std::int64_t bytes);

/// Channel speeds that the topology search tries, fastest first, GB/s.
std::span<const double> intraSpeeds(NcclVersion version, Generation generation);
std::span<const double> interSpeeds(NcclVersion version, Generation generation);

constexpr int kMaxChannels = 64;
constexpr int kMaxRingChannels = kMaxChannels / 2;

}  // namespace ringside::nccl
