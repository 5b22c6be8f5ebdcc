#include "model/cost/nccl_real_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ringside::nccl {
namespace {

constexpr Bytes kSmallPart = kMiB;         // below it NCCL gives a peer's part few channels
constexpr Bytes kUnevenPart = 32 * kMiB;   // from it on the channels' loads even out

double ringSteps(CollectiveOp op, std::int64_t ranks) {
    return static_cast<double>((op == CollectiveOp::AllReduce ? 2 : 1) * (ranks - 1));
}

bool isPowerOfTwo(std::int64_t n) { return std::has_single_bit(static_cast<std::uint64_t>(n)); }

}  // namespace

AchievedTerms achievedTerms(const Topology& t, const NcclAchieved& a, CollectiveOp op, CollectiveAlgorithm algorithm, CollectiveProtocol protocol,
                            const TunerFigures& tuner) {
    const bool oneNode = t.nodes == 1;
    const bool behindSwitch = oneNode && t.nvswitch;
    const double n = static_cast<double>(t.ranks);
    const bool direct = algorithm == CollectiveAlgorithm::Direct;
    const bool nvls = algorithm == CollectiveAlgorithm::Nvls || algorithm == CollectiveAlgorithm::NvlsTree;

    AchievedTerms terms;
    terms.transferFactor = 1 / (oneNode ? a.linkEfficiency : a.networkEfficiency);

    // The tuner's base stands for the call, which is replaced; its hops are scaled.
    double base = baseLatencyUs(direct ? CollectiveAlgorithm::Ring : algorithm, protocol);
    double call = a.callUs;
    if (nvls) {
        // The switch's own latency is a constant to the tuner; real ranks meet at a barrier, which grows with their number.
        base += hopLatencyUs(NcclVersion::V2_30, Link::NvLink, CollectiveAlgorithm::Nvls, protocol);
        call += a.nvlsStepUs * std::log2(oneNode ? n : t.ranksPerNode);
    }
    const double hops = a.hopFactor[protocolIndex(protocol)];
    if (direct) call += a.peerUs * (op == CollectiveOp::SendRecv ? 1 : n - 1);
    terms.latencyUs = call + hops * std::max(0.0, tuner.latencyUs - base);
    terms.plateauLatencyUs = call + hops * std::max(0.0, tuner.plateauLatencyUs - base);
    if (!behindSwitch) return terms;

    if (direct) {
        terms.transferFactor /= a.peerEfficiency;
        terms.rampUs = a.rampUs;
        terms.fills = false;
        if (op == CollectiveOp::SendRecv) return terms;
        terms.smallBytes = kSmallPart * t.ranks;
        terms.smallFactor = terms.transferFactor / a.smallPartShare;
        if (!isPowerOfTwo(t.ranks)) {
            terms.smallFactor /= a.unevenShare;
            terms.unevenBytes = kUnevenPart * t.ranks;
            terms.unevenUsPerByte = tuner.usPerByte * terms.transferFactor * (1 / a.unevenShare - 1);
        }
        terms.transferFactor *= 1 + a.idleStep / (n - 1);
    } else if (nvls) {
        // Every device sends its whole buffer up and its 1/n of the sum, and receives as much.
        terms.transferFactor = (1 + 1 / n) / (1000 * t.nvlinkGbPerS * a.nvlsEfficiency) / tuner.usPerByte;
        terms.rampUs = a.rampUs * std::log2(n);
    } else if (algorithm == CollectiveAlgorithm::Ring && protocol == CollectiveProtocol::Simple) {
        terms.transferFactor *= 1 + a.idleStep / ringSteps(op, t.ranks);
        terms.rampUs = a.rampUs;
    }
    return terms;
}

double achievedTransferUs(const AchievedTerms& terms, Bytes bytes, double linearUs, double fillUs) {
    if (bytes < terms.smallBytes) return linearUs * terms.smallFactor;
    const double size = static_cast<double>(bytes);
    double us = (linearUs + (terms.fills ? fillUs : 0)) * terms.transferFactor;
    us += terms.rampUs * std::sqrt(size / static_cast<double>(kMiB));
    return us + terms.unevenUsPerByte * std::min(size, static_cast<double>(terms.unevenBytes));
}

}  // namespace ringside::nccl
