#include "model/cost/compute_cost.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "model/base/check.h"
#include "model/cost/gemm_table.h"
#include "model/cost/kernel_table.h"
#include "model/cost/profile_fields.h"

namespace ringside {
namespace {

/// Where a device's count is not published: the count of its best-known relative, only to know what share of the device a
/// small kernel or a collective takes.
double assumedMultiprocessors(GpuArch arch) {
    switch (arch) {
        case GpuArch::Volta: return 80;
        case GpuArch::Ampere: return 108;
        case GpuArch::Ada: return 60;
        case GpuArch::Hopper: return 114;
        case GpuArch::Blackwell: case GpuArch::BlackwellUltra: return 148;
        case GpuArch::Cdna2: return 208;
        case GpuArch::Cdna3: return 304;
        case GpuArch::Other: return 100;
    }
    return 100;
}

/// Time for the loads in flight to build up and drain: what keeps small tensors from the full bandwidth.
constexpr double kMemoryRampSeconds = 0.6e-6;
/// Share of the multiprocessors that can saturate the memory (docs/models/compute.md).
constexpr double kSmsToSaturateMemory = 0.6;
constexpr double kMaxBusyBandwidth = 0.95;
/// Of the time in which a product reads and writes what it adds to, so much is not hidden behind its arithmetic: tiles do it at their end (docs/models/compute.md).
constexpr double kExposedAccumulation = 0.75;

// Fused attention, fitted to the FlashAttention-2 benchmark (A100 and H100, head sizes 64 and 128, 512 to 16k tokens) and
// SimuMax's A100 rows with few heads.
constexpr double kHeadHalf = 22.5;         ///< head sizes below 128 use the tensor cores less: d / (d + 22.5), 1 at 128
constexpr double kSequenceHalf = 165;      ///< keys lost to prologue and epilogue of a block
constexpr double kSequenceHalfCausal = 530;  ///< and to the masked half of the diagonal blocks
constexpr double kBlock = 128;             ///< queries (forward) or keys (backward) of one block
constexpr double kTailForward = 1.3, kTailBackward = 0.65;  ///< waves lost to the tail, causal; half of it otherwise

/// From the datasheet's fp32 peak: two FLOPs per lane and clock. 0 where the lanes of a multiprocessor are not known.
double clockHz(const Device& device, double sms) {
    const auto fp32 = device.peakDenseTflops.find(DType::Fp32);
    if (!device.computeCapability || fp32 == device.peakDenseTflops.end()) return 0;
    const double lanes = *device.computeCapability < 8.5 ? 64 : 128;  // Volta, Turing and A100; those after them
    return fp32->second * 1e12 / (2 * lanes * sms);
}

/// What a limit below the TDP leaves of the sustained clock: near it power goes with about the square of the clock.
double powerLimitClock(const Device& device) {
    if (!device.tdpW || !device.powerLimitW || *device.powerLimitW >= *device.tdpW) return 1;
    return std::sqrt(*device.powerLimitW / *device.tdpW);
}

constexpr std::size_t indexOf(DType type) { return static_cast<std::size_t>(type); }

}  // namespace

Result<ComputeCost> ComputeCost::create(const Device& device, const Profile& profile, DType math, const ComputeScales& scales, double busy) {
    ComputeCost cost;
    cost.math_ = math;
    cost.scales_ = scales;
    if (!profile.kernels.empty()) cost.measured_ = std::make_shared<const KernelTable>(profile.kernels);
    TRY_VOID(peakFlops(device, math));
    const double clock = 1 - (1 - profile.sustainedClock.value * powerLimitClock(device)) * std::clamp(busy, 0.0, 1.0);
    TRY(const double bandwidth, memoryBandwidth(device));
    cost.bandwidth_ = bandwidth * profile.memoryEfficiency.value;
    cost.fixedSeconds_ = profile.kernelFixedUs.value * 1e-6;
    cost.convolutionEfficiency_ = profile.convolutionEfficiency.value;
    cost.winogradGain_ = profile.winogradGain.value;
    cost.transposedShare_ = profile.transposedShare.value;
    cost.attentionForward_ = profile.attentionForwardEfficiency.value * powerLimitClock(device);
    cost.attentionBackward_ = profile.attentionBackwardEfficiency.value * powerLimitClock(device);
    cost.flash1_ = profile.flash1Attention.value;
    cost.flash3_ = profile.flash3Attention.value;
    cost.flash4_ = profile.flash4Attention.value;
    cost.fp8Attention_ = profile.fp8Attention.value;
    cost.gatherEfficiency_ = profile.gatherEfficiency.value;
    cost.waveQuantised_ = device.sms.has_value() && *device.sms > 0;
    cost.sms_ = cost.waveQuantised_ ? static_cast<double>(*device.sms) : assumedMultiprocessors(device.arch);
    cost.elementRate_ = cost.sms_ * clockHz(device, cost.sms_) * clock * profile.elementsPerClock.value;
    std::array<GemmConstants, 10> constants{};
    for (const DType type : kArithmeticTypes) {
        const auto peak = device.peakDenseTflops.find(type);
        const bool known = cost.waveQuantised_ && peak != device.peakDenseTflops.end();
        GemmConstants& c = constants[indexOf(type)];
        c = gemmConstants(device.arch, sizeOf(type), known ? peak->second * 1e12 / cost.sms_ : 0);
        if (!cost.waveQuantised_) c.quantisation = 0;
    }
    cost.constants_ = std::make_shared<const std::array<GemmConstants, 10>>(constants);

    for (const DType type : kArithmeticTypes) {
        const auto known = device.peakDenseTflops.find(type);
        const auto efficiency = profile.gemmEfficiency.find(type);
        if (known == device.peakDenseTflops.end() || known->second <= 0 || efficiency == profile.gemmEfficiency.end()) continue;
        Arithmetic& arithmetic = cost.arithmetic_[indexOf(type)];
        arithmetic.peak = known->second * 1e12;
        arithmetic.constants = &(*cost.constants_)[indexOf(type)];
        arithmetic.gemmRate = arithmetic.peak * efficiency->second.value * arithmetic.constants->headroom * clock;
        const auto samples = profile.gemmTable.find(type);
        if (samples != profile.gemmTable.end() && !samples->second.empty())
            arithmetic.table = std::make_shared<const GemmTable>(samples->second, cost.gemmModel(arithmetic, 0, 0), cost.fixedSeconds_, sizeOf(type));
    }
    // Only now: what was measured was measured on the device as it is.
    if (scales.memory != 1) cost.bandwidth_ = *device.memoryBandwidthGbPerS * scales.memory * 1e9 * profile.memoryEfficiency.value;
    for (const DType type : kArithmeticTypes) {
        Arithmetic& arithmetic = cost.arithmetic_[indexOf(type)];
        if (scales.compute == 1 || arithmetic.peak <= 0) continue;
        arithmetic.peak = device.peakDenseTflops.at(type) * scales.compute * 1e12;
        arithmetic.gemmRate = arithmetic.peak * profile.gemmEfficiency.at(type).value * arithmetic.constants->headroom * clock;
    }
    if (cost.arithmetic_[indexOf(math)].gemmRate <= 0)
        return badInput("profile " + profile.name, fmt::format("gemm_efficiency.{0} or sustained_clock is missing or 0; give them with "
                                                               "--set profile.gemm_efficiency.{0}=VALUE", nameOf(math)));
    if (!(cost.bandwidth_ > 0) || !(cost.convolutionEfficiency_ > 0) || !(cost.gatherEfficiency_ > 0) || !(cost.attentionForward_ > 0) || !(cost.attentionBackward_ > 0))
        return badInput("profile " + profile.name, "every efficiency must be above 0: memory, gather, convolution, attention forward and backward");
    return cost;
}

const ComputeCost::Arithmetic& ComputeCost::arithmetic(DType type) const {
    const Arithmetic& own = arithmetic_[indexOf(type)];
    return own.gemmRate > 0 ? own : arithmetic_[indexOf(math_)];
}

GemmModel ComputeCost::gemmModel(const Arithmetic& arithmetic, double busySms, double busyBandwidth) const {
    return GemmModel{*arithmetic.constants, arithmetic.gemmRate, sms_, std::clamp(sms_ - busySms, 1.0, sms_),
                     bandwidth_ * (1 - std::clamp(busyBandwidth, 0.0, kMaxBusyBandwidth))};
}

double ComputeCost::seconds(const KernelWork& work, double busySms, double busyBandwidth) const {
    const auto measured = measured_ ? measured_->seconds(work) : std::nullopt;
    if (!measured) return formulaSeconds(work, busySms, busyBandwidth);
    const double alone = *measured / (work.cls == KernelClass::Memory ? scales_.memory : scales_.compute);
    if (busySms <= 0 && busyBandwidth <= 0) return alone;
    return alone * formulaSeconds(work, busySms, busyBandwidth) / formulaSeconds(work, 0, 0);
}

double ComputeCost::secondsAtPeak(const KernelWork& work) const {
    const bool products = work.cls == KernelClass::Gemm || work.cls == KernelClass::Convolution;
    return products ? work.flops / arithmetic(work.math).peak : 0;
}

double ComputeCost::formulaSeconds(const KernelWork& work, double busySms, double busyBandwidth) const {
    switch (work.cls) {
        case KernelClass::Gemm: return work.beside > 1 ? piecesSeconds(work, busySms, busyBandwidth) : gemmSeconds(work, busySms, busyBandwidth);
        case KernelClass::Convolution: return convolutionSeconds(work, busySms, busyBandwidth);
        case KernelClass::AttentionForward:
        case KernelClass::AttentionBackward: return attentionSeconds(work, busySms, busyBandwidth);
        case KernelClass::Memory: return memorySeconds(work.scattered ? work.bytes / gatherEfficiency_ : work.bytes, work.elements, busySms, busyBandwidth);
    }
    CHECK(false && "every class is priced");
    return 0;
}

double ComputeCost::gemmSeconds(const KernelWork& work, double busySms, double busyBandwidth, double gain) const {
    const GemmShape& shape = work.shape;
    const Arithmetic& own = arithmetic(work.math);
    GemmModel model = gemmModel(own, busySms, busyBandwidth);
    const Bytes elementSize = sizeOf(work.math);
    const bool convolution = work.cls == KernelClass::Convolution;
    if (convolution) model.rate *= convolutionEfficiency_ * gain;
    if (shape.batch <= 0 || shape.m <= 0 || shape.n <= 0 || shape.k <= 0) {  // no shape: as an endless product
        const double arithmeticSeconds = work.flops / (model.rate * model.freeSms / sms_);
        return fixedSeconds_ + std::max(arithmeticSeconds, work.bytes / model.bandwidth);
    }
    const double bytes = work.bytes > 0 ? work.bytes : gemmBytes(shape, elementSize);
    const double formula = fixedSeconds_ + model.seconds(shape, bytes, elementSize) + kExposedAccumulation * work.accumulatedBytes / model.bandwidth;
    if (convolution || !own.table) return formula;
    if (!waveQuantised_) {  // tiles and waves say nothing about a CPU: the formula only tells what a busy memory costs
        const double alone = work.flops > 0 ? work.flops * own.table->secondsPerFlop(shape) / scales_.compute : formula;
        if (busySms <= 0 && busyBandwidth <= 0) return alone;
        const double free = fixedSeconds_ + gemmModel(own, 0, 0).seconds(shape, bytes, elementSize);
        return alone * std::max(1.0, formula / free);
    }
    // A table's ratio belongs to the bytes of the bare product: what the kernel adds (a bias, an fp32 result) stays on top.
    return formula * own.table->correction(shape);
}

/// Pieces that run at a time fill each other's waves: together they are one product of all their rows.
double ComputeCost::piecesSeconds(const KernelWork& work, double busySms, double busyBandwidth) const {
    KernelWork together = work;
    together.beside = 1;
    together.shape.m *= work.beside;
    together.flops *= work.beside;
    together.bytes *= work.beside;
    return gemmSeconds(together, busySms, busyBandwidth) / work.beside;
}

double ComputeCost::convolutionSeconds(const KernelWork& work, double busySms, double busyBandwidth) const {
    double product = gemmSeconds(work, busySms, busyBandwidth);
    // The library takes the fastest of its algorithms: where fp32 is not far behind tf32, Winograd's form beats the tensor cores.
    if (work.winograd && sizeOf(work.math) == 4 && arithmetic_[indexOf(DType::Fp32)].gemmRate > 0) {
        KernelWork fp32 = work;
        fp32.math = DType::Fp32;
        product = std::min(product, gemmSeconds(fp32, busySms, busyBandwidth, winogradGain_));
    }
    if (work.transposedBytes <= 0) return product;
    const double moved = 2 * transposedShare_ * work.transposedBytes;  // read and written
    return product + memorySeconds(moved, moved / static_cast<double>(sizeOf(work.math)), busySms, busyBandwidth);
}

double ComputeCost::attentionSeconds(const KernelWork& work, double busySms, double busyBandwidth) const {
    const bool forward = work.cls == KernelClass::AttentionForward;
    const GemmShape& shape = work.shape;
    const double freeSms = std::clamp(sms_ - busySms, 1.0, sms_);
    const double bandwidth = bandwidth_ * (1 - std::clamp(busyBandwidth, 0.0, kMaxBusyBandwidth));
    // Eight bits: what they gain over sixteen, since exponentials stay what they are.
    const bool eight = work.math == DType::Fp8;
    double rate = arithmetic(eight ? DType::Bf16 : work.math).peak * (eight ? fp8Attention_ : 1) * (forward ? attentionForward_ : attentionBackward_) * freeSms / sms_;
    double flops = work.flops;
    if (shape.batch > 0 && shape.m > 0 && shape.n > 0 && shape.k > 0) {
        const double batch = static_cast<double>(shape.batch), queries = static_cast<double>(shape.m);
        const double keys = static_cast<double>(shape.n), head = static_cast<double>(shape.k);
        const double value = work.valueHead > 0 ? static_cast<double>(work.valueHead) : head;
        // Blocks of queries (forward) or keys (backward) are worked on whole, so a started one costs as much as a full one.
        const double blocks = std::ceil((forward ? queries : keys) / kBlock);
        const double padded = blocks * kBlock * (forward ? keys : queries);
        // Two products forward (one over the head of keys, one over that of values), five backward (three and two); a causal mask skips half.
        flops = (forward ? 2 * (head + value) : 2 * (3 * head + 2 * value)) * batch * padded * (work.causal ? 0.5 : 1.0);
        const double headEfficiency = std::min(1.0, head / (head + kHeadHalf) * (128 + kHeadHalf) / 128);
        const double sequenceHalf = work.causal ? kSequenceHalfCausal : kSequenceHalf;
        const double waves = batch * blocks / freeSms;
        const double tail = (forward ? kTailForward : kTailBackward) * (work.causal ? 1.0 : 0.5);
        // The first generation is as fast for any head size and length: it never came near what those limit.
        const double shapeEfficiency = work.flash == 1 ? flash1_ : headEfficiency * keys / (keys + sequenceHalf) * (work.flash == 3 ? flash3_ : work.flash == 4 ? flash4_ : 1);
        rate *= shapeEfficiency * waves / (waves + tail);
    }
    return fixedSeconds_ + std::max(flops / rate, work.bytes / bandwidth);
}

double ComputeCost::memorySeconds(double bytes, double elements, double busySms, double busyBandwidth) const {
    const double freeShare = std::clamp(sms_ - busySms, 1.0, sms_) / sms_;
    const double bandwidth = bandwidth_ * (1 - std::clamp(busyBandwidth, 0.0, kMaxBusyBandwidth)) * std::min(1.0, freeShare / kSmsToSaturateMemory);
    if (bytes <= 0) return fixedSeconds_;
    const double issue = elements > 0 && elementRate_ > 0 ? elements / (elementRate_ * freeShare) : 0;
    return fixedSeconds_ + kMemoryRampSeconds + std::max(bytes / bandwidth, issue);
}

}  // namespace ringside
