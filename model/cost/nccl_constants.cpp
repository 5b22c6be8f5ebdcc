#include "model/cost/nccl_constants.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "model/base/check.h"

namespace ringside::nccl {
namespace {

using Row = std::array<double, 3>;  // LL, LL128, Simple; or one, two, more nodes

constexpr std::array<Row, 4> kLlMax{{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};

// Blackwell is the only row that changed between 2.27 (twice Hopper) and 2.30 (measured).
constexpr std::array<Row, 5> kRingLL128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}, {73.4, 73.4, 73.4}}};
constexpr std::array<Row, 5> kTreeLL128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}, {73.4, 73.4, 58.0}}};
constexpr std::array<Row, 5> kTree{{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}, {77.4, 82.8, 72.0}}};
constexpr std::array<Row, 4> kNvlsTree{{{0, 0, 0}, {0, 0, 0}, {0, 57.7, 45.5}, {0, 96.0, 80.0}}};

constexpr std::array<std::array<double, 24>, 3> kTreeCorrection{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

constexpr std::array<double, 13> kIntra{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr std::array<double, 19> kInter{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12};
constexpr std::array<double, 11> kIntraSm90{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr std::array<double, 17> kInterSm90{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
constexpr std::array<double, 12> kIntraSm100{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr std::array<double, 11> kIntraSm100V227{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr std::array<double, 20> kInterSm100{96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
constexpr std::array<double, 18> kInterSm100V227{96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};

std::size_t nodeColumn(std::int64_t nodes) { return nodes <= 2 ? static_cast<std::size_t>(nodes - 1) : 2; }

double correctionAt(std::size_t protocol, std::int64_t bytes, std::int64_t entries) {
    const auto units = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)) >> 6;
    if (units == 0) return 1;
    const auto index = static_cast<std::int64_t>(std::bit_width(units)) - 1;
    return index < entries ? kTreeCorrection[protocol][static_cast<std::size_t>(index)] : 1;
}

}  // namespace

std::size_t protocolIndex(CollectiveProtocol protocol) {
    CHECK(protocol == CollectiveProtocol::LL || protocol == CollectiveProtocol::LL128 || protocol == CollectiveProtocol::Simple);
    return static_cast<std::size_t>(protocol) - static_cast<std::size_t>(CollectiveProtocol::LL);
}

double baseLatencyUs(CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
    constexpr Row tree{6.8, 14.0, 8.4};
    constexpr Row ring{6.6, 14.0, 8.4};
    switch (algorithm) {
        case CollectiveAlgorithm::Tree: return tree[protocolIndex(protocol)];
        case CollectiveAlgorithm::Ring: return ring[protocolIndex(protocol)];
        case CollectiveAlgorithm::Pat: return 8.0;
        default: return 0;
    }
}

double hopLatencyUs(NcclVersion version, Link link, CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
    constexpr std::array<Row, 3> tree{{{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}};
    constexpr std::array<Row, 3> ring{{{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}}};
    // The rest exists in Simple only.
    constexpr Row collNetDirect{3.7, 3.7, 31.0};
    constexpr Row collNetChain{2.8, 2.8, 30.0};
    constexpr Row nvls{25.0, 0.0, 18.0};
    constexpr Row pat{4.0, 4.0, 14.0};
    const auto l = static_cast<std::size_t>(link);
    switch (algorithm) {
        case CollectiveAlgorithm::Tree: return tree[l][protocolIndex(protocol)];
        case CollectiveAlgorithm::Ring: return ring[l][protocolIndex(protocol)];
        case CollectiveAlgorithm::CollNetDirect: return collNetDirect[l];
        case CollectiveAlgorithm::CollNetChain: return collNetChain[l];
        case CollectiveAlgorithm::Nvls: return nvls[l];
        case CollectiveAlgorithm::NvlsTree:
            if (link == Link::Net) return version == NcclVersion::V2_30 ? 20.9 : 14.0;
            return nvls[l];
        case CollectiveAlgorithm::Pat: return pat[l];
        default: return 0;
    }
}

Caps caps(NcclVersion version, Generation generation, std::int64_t nodes, bool amdCpu) {
    const auto column = nodeColumn(nodes);
    const auto gpu = static_cast<std::size_t>(generation);
    const auto llRow = nodes == 1 ? gpu : (amdCpu ? std::size_t{1} : std::size_t{0});
    const auto row = generation == Generation::Blackwell && version == NcclVersion::V2_27 ? std::size_t{4} : gpu;
    const double nvlsTree = version == NcclVersion::V2_30 ? kNvlsTree[gpu][column] : std::numeric_limits<double>::infinity();
    return {kLlMax[llRow][column], kRingLL128[row][column], kTreeLL128[row][column], kTree[row][column], nvlsTree};
}

double nvlsEfficiency(Generation generation) {
    if (generation == Generation::Hopper) return 0.85;
    return generation == Generation::Blackwell ? 0.74 : 0;
}

int nvlsChannels(Generation generation, std::int64_t nodes) {
    if (generation != Generation::Blackwell) return 16;
    return nodes > 1 ? 32 : 24;
}

double treeCorrection(CollectiveProtocol protocol, std::int64_t bytes) { return correctionAt(protocolIndex(protocol), bytes, 23); }

double nvlsTreeCorrection(std::int64_t bytes) { return correctionAt(protocolIndex(CollectiveProtocol::Simple), bytes, 24); }

std::span<const double> intraSpeeds(NcclVersion version, Generation generation) {
    if (generation == Generation::Hopper) return kIntraSm90;
    if (generation == Generation::Blackwell) {
        if (version == NcclVersion::V2_27) return kIntraSm100V227;
        return kIntraSm100;
    }
    return kIntra;
}

std::span<const double> interSpeeds(NcclVersion version, Generation generation) {
    if (generation == Generation::Hopper) return kInterSm90;
    if (generation == Generation::Blackwell) {
        if (version == NcclVersion::V2_27) return kInterSm100V227;
        return kInterSm100;
    }
    return kInter;
}

}  // namespace ringside::nccl
