#include "model/cost/compute_cost.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/cost/published_figures.h"

namespace ringside {
namespace {

Device device(GpuArch arch, std::int64_t sms, double tflops, double gbPerS) {
    Device d;
    d.name = "test";
    d.arch = arch;
    d.sms = sms;
    d.peakDenseTflops = {{DType::Bf16, tflops}};
    d.memoryBandwidthGbPerS = gbPerS;
    return d;
}
Device h100() { return device(GpuArch::Hopper, 132, 989, 3350); }
Device a100() { return device(GpuArch::Ampere, 108, 312, 2039); }
Device b200() { return device(GpuArch::Blackwell, 148, 2250, 8000); }

/// Without a power limit, as benchmarks run.
ComputeCost costOf(const Device& d) {
    Profile profile = datasheetProfile(d, PublishedFigures{});
    profile.sustainedClock.value = 1;
    return ComputeCost::create(d, profile, DType::Bf16).value();
}

KernelWork gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
    KernelWork work;
    work.cls = KernelClass::Gemm;
    work.math = DType::Bf16;
    work.shape = {batch, m, n, k};
    work.flops = 2.0 * static_cast<double>(batch * m) * static_cast<double>(n * k);
    work.bytes = 2.0 * static_cast<double>(batch) * static_cast<double>(m * k + k * n + m * n);
    return work;
}

KernelWork attention(KernelClass cls, std::int64_t batchHeads, std::int64_t tokens, std::int64_t head, bool causal) {
    KernelWork work;
    work.cls = cls;
    work.math = DType::Bf16;
    work.shape = {batchHeads, tokens, tokens, head};
    work.causal = causal;
    work.bytes = 8.0 * static_cast<double>(batchHeads * tokens * head);
    return work;
}

KernelWork memoryKernel(double bytes) {
    KernelWork work;
    work.bytes = bytes;
    return work;
}

double tflops(const KernelWork& work, double seconds) { return work.flops / seconds * 1e-12; }

struct Published {
    std::int64_t batch, m, n, k;
    double tflops;
};

// A few rows of openxla/xla xla/service/gpu/model/default_matmul_perf_table.txtpb: small, thin, deep and large.
TEST(AttentionCost, FlashAttention4IsFasterThanCudnnOnBlackwellOnly) {
    KernelWork four = attention(KernelClass::AttentionForward, 32, 16384, 128, true), three = four;
    four.flash = 4;
    three.flash = 3;
    // 1,613 TFLOPS at most on a B200 (its paper), up to 1.3 times cuDNN.
    const double ratio = costOf(b200()).seconds(three) / costOf(b200()).seconds(four);
    EXPECT_GT(ratio, 1.1);
    EXPECT_LT(ratio, 1.3);
    EXPECT_DOUBLE_EQ(costOf(h100()).seconds(four), costOf(h100()).seconds(three));
}

TEST(GemmCost, ComesWithinAFifthOfPublishedH100Matmuls) {
    const Published rows[] = {{1, 256, 256, 256, 6.72},   {1, 512, 512, 1024, 73.4},    {1, 1024, 1024, 4096, 473},
                              {1, 2048, 2048, 2048, 641}, {1, 4096, 4096, 4096, 780},   {4, 4096, 4096, 256, 505}};
    const ComputeCost cost = costOf(h100());
    for (const Published& row : rows) {
        const KernelWork work = gemm(row.m, row.n, row.k, row.batch);
        EXPECT_NEAR(tflops(work, cost.seconds(work)) / row.tflops, 1.0, 0.2) << row.m << "x" << row.n << "x" << row.k;
    }
}

TEST(GemmCost, ComesWithinAFifthOfPublishedB200Matmuls) {
    const Published rows[] = {{1, 256, 256, 256, 6.77},   {1, 512, 512, 1024, 80.3},    {1, 1024, 1024, 2048, 468},
                              {1, 2048, 2048, 2048, 986}, {1, 4096, 4096, 4096, 1417},  {4, 4096, 4096, 256, 792}};
    const ComputeCost cost = costOf(b200());
    for (const Published& row : rows) {
        const KernelWork work = gemm(row.m, row.n, row.k, row.batch);
        EXPECT_NEAR(tflops(work, cost.seconds(work)) / row.tflops, 1.0, 0.2) << row.m << "x" << row.n << "x" << row.k;
    }
}

TEST(GemmCost, NeverBeatsThePeak) {
    for (const Device& d : {a100(), h100(), b200()}) {
        const KernelWork work = gemm(65536, 65536, 65536);
        EXPECT_LT(tflops(work, costOf(d).seconds(work)), d.peakDenseTflops.at(DType::Bf16)) << static_cast<int>(d.arch);
    }
}

TEST(GemmCost, OneTileMoreThanAWaveCostsAnotherWave) {
    // k is large, so arithmetic alone counts. 128·11 × 256·12 makes 132 tiles of 128 × 256: one wave of an H100. Twelve rows of
    // tiles make 144: a second wave that is nearly empty. A tile half as large needs three waves of half the time, at 10 % less.
    const ComputeCost cost = costOf(h100());
    const double whole = cost.seconds(gemm(128 * 11, 256 * 12, 16384));
    const double more = cost.seconds(gemm(128 * 12, 256 * 12, 16384));
    EXPECT_GT(more / whole, 1.3);  // a device without waves would need 144/132 = 1.09
    EXPECT_LE(more / whole, 2.0);
}

TEST(GemmCost, ACollectivesChannelsPushAFullWaveIntoASecond) {
    // NVIDIA developer forum 337991: a 132-CTA GEMM on H100 beside an all-gather on 24 SMs falls from 80 % to 47 %: 1.7 times.
    const ComputeCost cost = costOf(h100());
    const KernelWork work = gemm(128 * 11, 256 * 12, 16384);
    EXPECT_NEAR(cost.seconds(work, 24) / cost.seconds(work), 1.7, 0.2);
}

TEST(GemmCost, PiecesThatRunAtATimeFillEachOthersWaves) {
    // 512 rows by 1,280 columns are 20 tiles of 256 × 128: alone they leave most of 132 multiprocessors idle.
    const ComputeCost cost = costOf(h100());
    KernelWork piece = gemm(512, 1280, 8192);
    const double alone = cost.seconds(piece);
    piece.beside = 3;
    KernelWork together = gemm(3 * 512, 1280, 8192);
    together.bytes = 3 * piece.bytes;  // each reads the weight
    EXPECT_DOUBLE_EQ(3 * cost.seconds(piece), cost.seconds(together));
    EXPECT_LT(cost.seconds(piece), 0.7 * alone);
}

TEST(GemmCost, UnalignedRowsAreSlower) {
    // GPT-2's vocabulary: 50257 is odd, 50304 is a multiple of 128.
    const ComputeCost cost = costOf(a100());
    EXPECT_GT(cost.seconds(gemm(16384, 50257, 768)), 1.3 * cost.seconds(gemm(16384, 50304, 768)));
}

TEST(GemmCost, AnOddSizeCountsOnlyWhereItIsContiguous) {
    // 4097 rows of the left operand are aligned rows; stored by columns, as in a weight gradient, they are odd ones.
    const ComputeCost cost = costOf(a100());
    KernelWork byRows = gemm(4097, 4096, 4096), byColumns = byRows;
    byColumns.shape.columnsOfA = true;
    EXPECT_GT(cost.seconds(byColumns), 2 * cost.seconds(byRows));
    EXPECT_GT(cost.seconds(gemm(4096, 4096, 4097)), 2 * cost.seconds(byRows));
}

TEST(GemmCost, ThinProductsAreBoundByMemory) {
    // 16 rows times a 16384 × 16384 matrix read 512 MiB: 0.85 · 3350 GB/s gives 189 µs; the arithmetic of a tile row of 64 is
    // 34 GFLOP, 43 µs at 800 TFLOPS.
    const ComputeCost cost = costOf(h100());
    const KernelWork work = gemm(16, 16384, 16384);
    EXPECT_NEAR(cost.seconds(work) / (work.bytes / (0.85 * 3350e9)), 1.0, 0.05);
}

TEST(GemmCost, ConvolutionIsAGemmAtItsEfficiency) {
    Profile profile = datasheetProfile(a100(), PublishedFigures{});
    profile.kernelFixedUs.value = 0;
    KernelWork work = gemm(100352, 256, 2304);
    const double asGemm = ComputeCost::create(a100(), profile, DType::Bf16)->seconds(work);
    work.cls = KernelClass::Convolution;
    profile.convolutionEfficiency.value = 0.5;
    const double asConvolution = ComputeCost::create(a100(), profile, DType::Bf16)->seconds(work);
    EXPECT_GT(asConvolution / asGemm, 1.6);
    EXPECT_LE(asConvolution / asGemm, 2.0);
}

TEST(GemmCost, PowerLimitScalesLargeProducts) {
    Profile profile = datasheetProfile(h100(), PublishedFigures{});
    profile.sustainedClock.value = 0.5;
    const KernelWork work = gemm(16384, 16384, 16384);
    EXPECT_NEAR(ComputeCost::create(h100(), profile, DType::Bf16)->seconds(work) / costOf(h100()).seconds(work), 2.0, 0.01);
}

TEST(ComputeCost, TheClockFallsWithHowBusyTheStepIs) {
    Profile profile = datasheetProfile(h100(), PublishedFigures{});
    profile.sustainedClock.value = 0.6;
    const KernelWork work = gemm(16384, 16384, 16384);
    const auto slower = [&](double busy) { return ComputeCost::create(h100(), profile, DType::Bf16, {}, busy)->seconds(work) / costOf(h100()).seconds(work); };
    EXPECT_NEAR(slower(0), 1.0, 1e-12);
    EXPECT_NEAR(slower(0.5), 1 / 0.8, 0.005);
    EXPECT_NEAR(slower(1), 1 / 0.6, 0.01);
    EXPECT_EQ(slower(7), slower(1));
}

TEST(ComputeCost, TellsWhatProductsWouldTakeAtThePeak) {
    const ComputeCost cost = costOf(h100());
    KernelWork work = gemm(4096, 4096, 4096);
    EXPECT_NEAR(cost.secondsAtPeak(work), 2 * std::pow(4096.0, 3) / 989e12, 1e-9);
    for (const KernelClass cls : {KernelClass::Memory, KernelClass::AttentionForward, KernelClass::AttentionBackward}) {
        work.cls = cls;
        EXPECT_EQ(cost.secondsAtPeak(work), 0);
    }
}

// 32 experts of 4096 × 7168 with fp32 gradients: 6 of 8 bytes per element beyond a plain result, three quarters of their time on top.
TEST(GemmCost, AProductThatAddsToItsResultIsLongerByMostOfWhatThatMoves) {
    const ComputeCost cost = costOf(b200());
    KernelWork plain = gemm(4096, 7168, 1024, 32), adding = plain;
    adding.accumulatedBytes = 6.0 * 32 * 4096 * 7168;
    const double bandwidth = 8e12 * datasheetProfile(b200(), PublishedFigures{}).memoryEfficiency.value;
    EXPECT_NEAR(cost.seconds(adding) - cost.seconds(plain), 0.75 * adding.accumulatedBytes / bandwidth, 1e-9);
    EXPECT_GT(cost.seconds(adding, 0, 0.5) - cost.seconds(plain, 0, 0.5), 1.9 * (cost.seconds(adding) - cost.seconds(plain))) << "on half the bandwidth";
}

// Filling the pipeline takes as long in eight bits as in sixteen, at twice the rate: it counts for twice the columns.
TEST(GemmCost, ShortProductsGainLessFromEightBits) {
    EXPECT_EQ(gemmConstants(GpuArch::Hopper, 1, 0).rampK, 2 * gemmConstants(GpuArch::Hopper, 2, 0).rampK);
    EXPECT_EQ(gemmConstants(GpuArch::Blackwell, 1, 0).rampK, 2 * gemmConstants(GpuArch::Blackwell, 2, 0).rampK);
    EXPECT_EQ(gemmConstants(GpuArch::Ada, 1, 0).rampK, gemmConstants(GpuArch::Ada, 2, 0).rampK) << "nothing was fitted for it";
}

TEST(MemoryCost, RowsThatAnIndexScattersReachTheGatherEfficiency) {
    Profile profile = datasheetProfile(h100(), PublishedFigures{});
    profile.gatherEfficiency.value = 0.5;
    const ComputeCost cost = ComputeCost::create(h100(), profile, DType::Bf16).value();
    KernelWork streamed = memoryKernel(1e9), scattered = streamed;
    scattered.scattered = true;
    EXPECT_DOUBLE_EQ(cost.seconds(scattered), cost.seconds(memoryKernel(2e9)));
    EXPECT_GT(cost.seconds(scattered), 1.9 * cost.seconds(streamed));
}

TEST(GemmTable, AMeasuredShapeCostsWhatWasMeasured) {
    Profile profile = datasheetProfile(a100(), PublishedFigures{});
    profile.gemmTable[DType::Bf16] = {{{1, 4096, 4096, 4096}, 100}, {{1, 1024, 1024, 1024}, 40}};
    const ComputeCost cost = ComputeCost::create(a100(), profile, DType::Bf16).value();
    const KernelWork work = gemm(4096, 4096, 4096);
    EXPECT_NEAR(tflops(work, cost.seconds(work)), 100, 1e-9);
}

TEST(GemmTable, BetweenSamplesTheFormulaIsCorrectedByTheNearest) {
    // Both samples are made 1.5 times slower than the formula, so every shape must be.
    const ComputeCost formula = costOf(h100());
    Profile profile = datasheetProfile(h100(), PublishedFigures{});
    profile.sustainedClock.value = 1;
    for (const KernelWork& work : {gemm(4096, 4096, 4096), gemm(1024, 2048, 4096)})
        profile.gemmTable[DType::Bf16].push_back({work.shape, tflops(work, 1.5 * formula.seconds(work))});
    const ComputeCost corrected = ComputeCost::create(h100(), profile, DType::Bf16).value();
    for (const KernelWork& work : {gemm(2048, 2048, 2048), gemm(8192, 512, 640), gemm(64, 64, 64, 100)})
        EXPECT_NEAR(corrected.seconds(work) / formula.seconds(work), 1.5, 1e-5);
}

TEST(GemmTable, SamplesOfOneShapeAreAveraged) {
    // Half the time at 100 and half at 50 TFLOPS: mean time is that of 2 / (1/100 + 1/50) = 66.7 TFLOPS.
    Profile profile = datasheetProfile(a100(), PublishedFigures{});
    profile.gemmTable[DType::Bf16] = {{{1, 4096, 4096, 4096}, 100}, {{1, 4096, 4096, 4096}, 50}};
    const KernelWork work = gemm(4096, 4096, 4096);
    EXPECT_NEAR(tflops(work, ComputeCost::create(a100(), profile, DType::Bf16)->seconds(work)), 200.0 / 3, 1e-6);
}

TEST(AttentionCost, FollowsFlashAttention2OnA100AndH100) {
    // Dao-AILab/flash-attention, forward + backward, 16k tokens of hidden size 2048 in all; TFLOPS as printed there.
    struct Row {
        Device device;
        std::int64_t head, tokens;
        bool causal;
        double tflops;
    };
    const Row rows[] = {{a100(), 64, 512, false, 132},  {a100(), 64, 16384, false, 176}, {a100(), 128, 4096, false, 196}, {a100(), 128, 512, true, 99},
                        {a100(), 128, 16384, true, 189}, {h100(), 64, 512, true, 141},    {h100(), 128, 1024, false, 294}, {h100(), 128, 8192, true, 308}};
    for (const Row& row : rows) {
        const ComputeCost cost = costOf(row.device);
        const std::int64_t batchHeads = 16384 / row.tokens * (2048 / row.head);
        const double seconds = cost.seconds(attention(KernelClass::AttentionForward, batchHeads, row.tokens, row.head, row.causal)) +
                               cost.seconds(attention(KernelClass::AttentionBackward, batchHeads, row.tokens, row.head, row.causal));
        // Forward is 4, backward 10 · b·s²·d; causal counts half.
        const double flops = 14.0 * static_cast<double>(batchHeads * row.head) * static_cast<double>(row.tokens * row.tokens) * (row.causal ? 0.5 : 1);
        EXPECT_NEAR(flops / seconds * 1e-12 / row.tflops, 1.0, 0.1) << row.head << " " << row.tokens << " " << row.causal;
    }
}

TEST(AttentionCost, OfTheFirstGenerationIsWhatMptRunsShowForAnyHeadSizeAndLength) {
    // mosaicml/llm-foundry, A100: the slope of the step over the sequence length is 96 to 99 TFLOPS for heads of 64 and 128.
    const ComputeCost cost = costOf(a100());
    for (const std::int64_t head : {64, 128})
        for (const std::int64_t tokens : {8192, 32768}) {
            KernelWork forward = attention(KernelClass::AttentionForward, 4 * 2048 / head, tokens, head, true), backward = forward;
            backward.cls = KernelClass::AttentionBackward;
            forward.flash = backward.flash = 1;
            const double flops = 7.0 * static_cast<double>(4 * 2048) * static_cast<double>(tokens * tokens);
            EXPECT_NEAR(flops / (cost.seconds(forward) + cost.seconds(backward)) * 1e-12, 97, 6) << head << " " << tokens;
        }
}

TEST(AttentionCost, OfTheThirdGenerationIsFasterOnHopperOnly) {
    // FlashAttention-3: 621 TFLOPS forward without a mask, head size 128, 16k tokens (pytorch/benchmark, pull request 2391).
    KernelWork forward = attention(KernelClass::AttentionForward, 32, 16384, 128, false);
    forward.flash = 3;
    const double flops = 4.0 * 32 * 128 * 16384.0 * 16384.0;
    EXPECT_NEAR(flops / costOf(h100()).seconds(forward) * 1e-12, 621, 30);
    KernelWork second = forward;
    second.flash = 2;
    EXPECT_EQ(costOf(a100()).seconds(forward), costOf(a100()).seconds(second));
}

TEST(AttentionCost, CausalIsCheaperButNotByHalf) {
    const ComputeCost cost = costOf(a100());
    const double full = cost.seconds(attention(KernelClass::AttentionForward, 128, 4096, 128, false));
    const double causal = cost.seconds(attention(KernelClass::AttentionForward, 128, 4096, 128, true));
    EXPECT_LT(causal, full);
    EXPECT_GT(causal, 0.5 * full);
}

TEST(AttentionCost, FewHeadsLeaveMultiprocessorsIdle) {
    // Eight times the heads on an otherwise idle device cost less than eight times the time.
    const ComputeCost cost = costOf(a100());
    EXPECT_LT(cost.seconds(attention(KernelClass::AttentionForward, 32, 4096, 128, true)),
              6 * cost.seconds(attention(KernelClass::AttentionForward, 4, 4096, 128, true)));
}

TEST(MemoryCost, LargeTensorsReachTheStreamingBandwidth) {
    // 1 GB at 0.85 · 2039 GB/s = 577 µs.
    EXPECT_NEAR(costOf(a100()).seconds(memoryKernel(1e9)), 577e-6, 5e-6);
}

TEST(MemoryCost, SmallTensorsDoNot) {
    // 64 KiB would take 0.04 µs at full rate; 2 µs of an empty kernel and the ramp remain.
    const double seconds = costOf(a100()).seconds(memoryKernel(65536));
    EXPECT_GT(seconds, 2e-6);
    EXPECT_LT(seconds, 4e-6);
}

TEST(MemoryCost, HalfTheBandwidthTakenDoublesALargeTransfer) {
    const ComputeCost cost = costOf(a100());
    EXPECT_NEAR(cost.seconds(memoryKernel(1e10), 0, 0.5) / cost.seconds(memoryKernel(1e10)), 2.0, 0.01);
}

TEST(ComputeCost, UnknownMultiprocessorsAreNoErrorButWavesAreNotQuantised) {
    Device unknown = h100();
    unknown.sms.reset();
    const auto cost = ComputeCost::create(unknown, datasheetProfile(unknown, PublishedFigures{}), DType::Bf16);
    ASSERT_TRUE(cost);
    EXPECT_FALSE(cost->waveQuantised());
    EXPECT_TRUE(costOf(h100()).waveQuantised());
    // Nine per cent more tiles cost nine per cent more time.
    EXPECT_NEAR(cost->seconds(gemm(128 * 12, 256 * 12, 16384)) / cost->seconds(gemm(128 * 11, 256 * 12, 16384)), 12.0 / 11, 0.02);
}

TEST(ComputeCost, MissingPeakOrBandwidthIsAnErrorThatNamesIt) {
    Device noPeak = h100();
    noPeak.peakDenseTflops.clear();
    const auto peak = ComputeCost::create(noPeak, datasheetProfile(noPeak, PublishedFigures{}), DType::Bf16);
    ASSERT_FALSE(peak);
    EXPECT_NE(peak.error().message.find("bf16"), std::string::npos) << peak.error().toString();
    Device noBandwidth = h100();
    noBandwidth.memoryBandwidthGbPerS.reset();
    const auto bandwidth = ComputeCost::create(noBandwidth, datasheetProfile(noBandwidth, PublishedFigures{}), DType::Bf16);
    ASSERT_FALSE(bandwidth);
    EXPECT_NE(bandwidth.error().message.find("bandwidth"), std::string::npos) << bandwidth.error().toString();
}

TEST(ComputeCost, AnEmptyProfileIsAnErrorNotADivisionByZero) { EXPECT_FALSE(ComputeCost::create(h100(), Profile{}, DType::Bf16)); }

/// Any kernel whose dimensions are multiples of 8 elements (16 bytes).
KernelWork anyWork() {
    const auto dimension = [] { return 8 * *rc::gen::inRange<std::int64_t>(1, 1024); };
    switch (*rc::gen::inRange(0, 4)) {
        case 0: return gemm(dimension(), dimension(), dimension(), *rc::gen::inRange<std::int64_t>(1, 33));
        case 1: return attention(KernelClass::AttentionForward, *rc::gen::inRange<std::int64_t>(1, 256), dimension(), 64, *rc::gen::arbitrary<bool>());
        case 2: return attention(KernelClass::AttentionBackward, *rc::gen::inRange<std::int64_t>(1, 256), dimension(), 128, *rc::gen::arbitrary<bool>());
        default: return memoryKernel(static_cast<double>(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000)));
    }
}
ComputeCost anyCost() {
    const Device devices[] = {a100(), h100(), b200(), device(GpuArch::Cdna3, 304, 1307, 5300), device(GpuArch::Volta, 80, 125, 900)};
    return costOf(devices[*rc::gen::inRange<std::size_t>(0, std::size(devices))]);
}

TEST(ComputeCostLaws, ALongerSequenceThatStartsOneMoreBlockIsNotFaster) {
    // 376 tokens are three blocks of 128, 392 are four: one more multiprocessor works, but on a block that is mostly padding.
    const ComputeCost cost = costOf(a100());
    EXPECT_GE(cost.seconds(attention(KernelClass::AttentionForward, 1, 392, 64, false)), cost.seconds(attention(KernelClass::AttentionForward, 1, 376, 64, false)));
}

TEST(ComputeCostLaws, MoreWorkIsNeverFaster) {
    EXPECT_TRUE(rc::check("growing any one dimension never shortens a kernel", [] {
        const ComputeCost cost = anyCost();
        const KernelWork small = anyWork();
        KernelWork large = small;
        std::int64_t* dimensions[] = {&large.shape.batch, &large.shape.m, &large.shape.n, &large.shape.k};
        if (large.cls == KernelClass::Memory) {
            large.bytes += static_cast<double>(*rc::gen::inRange(0, 1'000'000));
        } else if (large.cls == KernelClass::Gemm) {
            const auto which = *rc::gen::inRange<std::size_t>(0, 4);
            *dimensions[which] += 8 * *rc::gen::inRange<std::int64_t>(0, 300);
            large = gemm(large.shape.m, large.shape.n, large.shape.k, large.shape.batch);
        } else {
            large.shape.m += 8 * *rc::gen::inRange<std::int64_t>(0, 300);
            large = attention(large.cls, large.shape.batch, large.shape.m, large.shape.k, large.causal);
        }
        const double busy = *rc::gen::inRange(0, 40);
        RC_ASSERT(cost.seconds(large, busy) >= cost.seconds(small, busy) * (1 - 1e-12));
    }));
}

TEST(ComputeCostLaws, TakingMultiprocessorsOrBandwidthIsNeverFaster) {
    EXPECT_TRUE(rc::check("busy multiprocessors and busy bandwidth only cost", [] {
        const ComputeCost cost = anyCost();
        const KernelWork work = anyWork();
        const double few = *rc::gen::inRange(0, 400), more = few + *rc::gen::inRange(0, 60);
        const double little = *rc::gen::inRange(0, 100) * 0.01, much = std::min(1.0, little + *rc::gen::inRange(0, 50) * 0.01);
        const double before = cost.seconds(work, few, little), after = cost.seconds(work, more, much);
        RC_ASSERT(std::isfinite(after) && after > 0);
        RC_ASSERT(after >= before * (1 - 1e-12));
    }));
}

}  // namespace
}  // namespace ringside
