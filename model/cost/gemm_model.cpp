#include "model/cost/gemm_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ringside {
namespace {

struct Tile {
    int shiftM, shiftN;  ///< log2 of the sides, so that counting tiles needs no division
};
/// What cuBLAS and hipBLASLt choose among; the last only where constants.largeTile.
constexpr std::array kTiles{Tile{8, 7}, Tile{7, 8}, Tile{7, 7}, Tile{7, 6}, Tile{6, 7}, Tile{6, 6}, Tile{8, 8}};
struct Split {
    double ways, share;
};
constexpr std::array kSplits{Split{1, 1}, Split{2, 1. / 2}, Split{4, 1. / 4}, Split{8, 1. / 8}, Split{16, 1. / 16}};

constexpr double kA100FlopsPerSm = 312e12 / 108;  ///< of the tables that Ampere's constants are fitted to (bf16)

double lossOf(const Tile& tile, double c) { return 1 + c * (std::ldexp(1.0, -tile.shiftM) + std::ldexp(1.0, -tile.shiftN)); }
/// Smallest whole number not below x ≥ 0, forgiving rounding of the quotient. (std::ceil is a call on plain x86-64.)
double wholeWaves(double x) { return x < 1e15 ? static_cast<double>(static_cast<std::int64_t>(x + (1 - 1e-9))) : x; }
double tilesAlong(std::int64_t size, int shift) { return static_cast<double>((size + (std::int64_t{1} << shift) - 1) >> shift); }

/// Vectorised loads want 16 bytes; each halving of the alignment costs. The last step is what a vocabulary of 50257 costs instead of
/// 50304: about 25 % of a step whose logits are a third of the work (nanoGPT), 82 instead of 245 TFLOPS in vTrain's runs on A100s.
double alignmentOf(std::int64_t size, Bytes elementSize) {
    const std::int64_t bytes = size * elementSize;
    if (bytes % 16 == 0) return 1.0;
    if (bytes % 8 == 0) return 0.85;
    if (bytes % 4 == 0) return 0.70;
    return 0.35;
}

}  // namespace

GemmConstants gemmConstants(GpuArch arch, Bytes elementSize, double flopsPerSm) {
    // Fitted to: Hopper, Blackwell: openxla/xla xla/service/gpu/model/default_matmul_perf_table.txtpb (sm_90 and sm_100, bf16 and
    // f32); Ampere: MooreThreads/SimuMax configs/system/a100_pcie.json; Cdna: XLA's gfx950 table. Volta and Ada are taken as
    // Ampere. docs/models/compute.md has the residuals.
    const bool wide = elementSize >= 4, eight = elementSize == 1;
    GemmConstants c;
    switch (arch) {
        case GpuArch::Hopper: c = wide ? GemmConstants{1.025, 0, 4.3e-6, 0.48, 0.0, 100, 0, false, {}}
                                   : GemmConstants{1.08, 185, 3.0e-6, 0.0, 1.0, 37, 1.7e-6, false, {}}; break;
        case GpuArch::Blackwell:
        case GpuArch::BlackwellUltra: c = wide ? GemmConstants{1.115, 156, 4.7e-6, 0.11, 1.0, 24, 8.4e-6, false, {}}
                                      : GemmConstants{1.045, 257, 3.2e-6, 0.0, 1.0, 59, 7.9e-6, true, {}}; break;
        case GpuArch::Cdna2:
        case GpuArch::Cdna3: c = {0.87, 67, 1.6e-6, 1.0, 0.6, 100, 2.0e-6, true, {}}; break;
        case GpuArch::Volta:
        case GpuArch::Ampere:
        case GpuArch::Ada:
        case GpuArch::Other:
            c = {1.0, 97, 1.0e-6, 0.39, 0.53, 60, 2.0e-6, false, {}};
            // Filling the pipeline and writing the tile take their time whatever the arithmetic: at a sixteenth of the rate a sixteenth of the columns.
            if (flopsPerSm > 0) c.rampK *= flopsPerSm / kA100FlopsPerSm;
            break;
    }
    // The same of eight bits, whose rate is twice that of sixteen, to which the columns above are fitted.
    if (eight && (arch == GpuArch::Hopper || arch == GpuArch::Blackwell || arch == GpuArch::BlackwellUltra)) c.rampK *= 2;
    for (std::size_t t = 0; t < kTiles.size(); ++t) {
        const double loss = std::max(1.0, lossOf(kTiles[t], c.tileLoss) / lossOf(kTiles[0], c.tileLoss));
        c.flopsPerColumn[t] = std::ldexp(2.0, kTiles[t].shiftM + kTiles[t].shiftN) * loss;
    }
    return c;
}

double GemmModel::seconds(const GemmShape& shape, double bytes, Bytes elementSize) const {
    const double batch = static_cast<double>(shape.batch);
    const double k = static_cast<double>(shape.k);
    const double memory = bytes / bandwidth;
    const double secondsPerFlop = sms / (rate * alignmentEfficiency(shape, elementSize));  // of one multiprocessor
    const double perFreeSm = 1 / freeSms;
    const double partialSums = 4.0 * batch * static_cast<double>(shape.m) * static_cast<double>(shape.n) / bandwidth;
    const double q = constants.quantisation;
    const std::size_t tileCount = constants.largeTile ? kTiles.size() : kTiles.size() - 1;

    double best = std::numeric_limits<double>::infinity();
    for (std::size_t t = 0; t < tileCount; ++t) {
        const double tiles = batch * tilesAlong(shape.m, kTiles[t].shiftM) * tilesAlong(shape.n, kTiles[t].shiftN);
        const double secondsPerColumn = constants.flopsPerColumn[t] * secondsPerFlop;
        for (const Split& split : kSplits) {
            // Partial sums are written and read as fp32, half of it served by the last-level cache.
            const double reduction = split.ways > 1 ? constants.splitSeconds + split.ways * partialSums : 0;
            // Splitting only fills idle multiprocessors, and is hopeless once the reduction alone is slower.
            if (split.ways > 1 && (tiles >= freeSms || reduction + memory >= best)) break;
            const double perSm = tiles * split.ways * perFreeSm;
            const double waves = q * wholeWaves(perSm) + (1 - q) * std::max(1.0, perSm);
            const double arithmetic = waves * secondsPerColumn * (k * split.share + constants.rampK);
            best = std::min(best, reduction + std::max(arithmetic, memory) + constants.overlapLoss * std::min(arithmetic, memory));
        }
    }
    return best + constants.extraSeconds;
}

double alignmentEfficiency(const GemmShape& shape, Bytes elementSize) {
    // n is contiguous in the result; k in the left operand, or m where that is stored by columns.
    return std::min(alignmentOf(shape.n, elementSize), alignmentOf(shape.columnsOfA ? shape.m : shape.k, elementSize));
}

double gemmBytes(const GemmShape& shape, Bytes elementSize) {
    const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
    return static_cast<double>(shape.batch) * (m * k + k * n + m * n) * static_cast<double>(elementSize);
}

}  // namespace ringside
