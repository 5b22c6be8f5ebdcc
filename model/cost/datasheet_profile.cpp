// datasheetProfile: the figures that stand for a device nobody has measured here. Every number below is explained in
// docs/models/profile.md; the `source` strings travel with the figures into results.
#include <fmt/format.h>

#include "model/cost/profile.h"
#include "model/cost/published_collectives.h"
#include "model/cost/published_figures.h"

namespace ringside {
namespace {

Figure assumed(double value, double spread, std::string source) { return {value, spread, Provenance::Assumed, std::move(source)}; }
Figure published(double value, double spread, std::string source) { return {value, spread, Provenance::Published, std::move(source)}; }

constexpr const char* kMamf = "best-shape matmul, stas00/ml-engineering compute/accelerator (mamf-finder)";
constexpr const char* kResNet = "fitted to ResNet-50 in NVIDIA/DeepLearningExamples, Oneflow-Inc/DLPerf and lambdal/deeplearning-benchmark";
constexpr const char* kFlash2 = "FlashAttention-2 benchmark, Dao-AILab/flash-attention assets, forward+backward split as in its paper";

bool isBlackwell(GpuArch arch) { return arch == GpuArch::Blackwell || arch == GpuArch::BlackwellUltra; }
bool isAmd(GpuArch arch) { return arch == GpuArch::Cdna2 || arch == GpuArch::Cdna3; }

/// 16-bit best-shape efficiency of the architecture, used where the device itself has no published best.
Figure sixteenBitEfficiency(const Device& device) {
    const auto peak = device.peakDenseTflops.find(DType::Bf16);
    if (device.measuredBestBf16Tflops && peak != device.peakDenseTflops.end() && peak->second > 0)
        return published(*device.measuredBestBf16Tflops / peak->second, 0.05, kMamf);
    switch (device.arch) {
        case GpuArch::Volta: return assumed(0.80, 0.08, "a square fp16 matmul reaches 95 of 125 TFLOPS (mli/transformers-benchmarks); best shapes a little above");
        case GpuArch::Ampere: return published(0.81, 0.08, kMamf);
        case GpuArch::Ada: return assumed(0.85, 0.10, "no published best shape; boost clocks above the datasheet's are common");
        case GpuArch::Hopper: return published(0.80, 0.05, kMamf);
        case GpuArch::Blackwell: case GpuArch::BlackwellUltra: return published(0.77, 0.05, kMamf);
        case GpuArch::Cdna2: return assumed(0.60, 0.15, "no published best shape");
        case GpuArch::Cdna3: return published(0.51, 0.10, kMamf);
        case GpuArch::Other: return assumed(0.70, 0.20, "unknown architecture");
    }
    return assumed(0.70, 0.20, "unknown architecture");
}

Figure sustainedClock(GpuArch arch) {  // of a device whose arithmetic never rests
    switch (arch) {
        case GpuArch::Blackwell:
            return published(0.53, 0.15, "long GEMMs, three quarters busy, at 0.46 to 0.52 of the peak, SimuMax configs/system/b200_bf16_ceperm.json, against 0.78 best shape");
        case GpuArch::BlackwellUltra: return assumed(0.62, 0.25, "as Blackwell, with 1.1 to 1.4 times the power for the same multiprocessors");
        case GpuArch::Hopper: return assumed(0.80, 0.10, "power limit at 700 W under continuous matmuls");
        case GpuArch::Ampere:
            return published(0.90, 0.05, "training steps against the best shape: 0.91 in mosaicml/llm-foundry, two thirds to three quarters busy");
        case GpuArch::Cdna2: case GpuArch::Cdna3: return assumed(0.88, 0.10, "power limit");
        case GpuArch::Volta: case GpuArch::Ada: case GpuArch::Other: break;
    }
    return assumed(0.93, 0.05, "power limit");
}

struct AttentionEfficiency {
    Figure forward, backward;
};

AttentionEfficiency attentionEfficiency(GpuArch arch) {
    switch (arch) {
        case GpuArch::Ampere: return {published(0.72, 0.06, kFlash2), published(0.62, 0.06, kFlash2)};
        case GpuArch::Hopper: return {published(0.39, 0.08, kFlash2), published(0.335, 0.08, kFlash2)};
        case GpuArch::Blackwell: {
            const char* source = "cuDNN attention, SimuMax configs/system/b200_bf16_ceperm.json (causal rows counted in full there)";
            return {published(0.54, 0.12, source), published(0.46, 0.12, source)};
        }
        case GpuArch::BlackwellUltra:  // what holds Blackwell's forward back is the softmax
            return {assumed(0.60, 0.20, "as Blackwell, with twice the exponentials per clock (verda.com/blog/gb300-nvl72-architecture)"), assumed(0.48, 0.15, "as Blackwell")};
        case GpuArch::Ada: return {assumed(0.70, 0.12, "as Ampere"), assumed(0.60, 0.12, "as Ampere")};
        case GpuArch::Volta: return {assumed(0.40, 0.20, "memory-efficient attention; FlashAttention-2 needs Ampere"), assumed(0.30, 0.20, "likewise")};
        case GpuArch::Cdna2: case GpuArch::Cdna3: case GpuArch::Other: break;
    }
    return {assumed(0.30, 0.25, "no published curve for this architecture"), assumed(0.25, 0.25, "no published curve for this architecture")};
}

}  // namespace

Profile datasheetProfile(const Device& device, const PublishedFigures& figures) {
    Profile p;
    p.name = fmt::format("{} datasheet+published", device.name);
    p.device = device.name;

    const Figure sixteenBit = sixteenBitEfficiency(device);
    p.gemmEfficiency[DType::Bf16] = p.gemmEfficiency[DType::Fp16] = sixteenBit;
    p.gemmEfficiency[DType::Tf32] = published(0.75, 0.10, "A100 116 of 156 TFLOPS in mli/transformers-benchmarks; H100 403 of 494 in XLA's table");
    p.gemmEfficiency[DType::Fp32] = published(0.89, 0.08, "V100 14 of 15.7 TFLOPS in mli/transformers-benchmarks");
    p.gemmEfficiency[DType::Fp64] = assumed(0.85, 0.10, "as fp32");
    p.gemmEfficiency[DType::Fp8] = isBlackwell(device.arch) ? published(0.76, 0.06, kMamf) : published(0.71, 0.06, kMamf);
    p.gemmEfficiency[DType::Int8] = assumed(0.65, 0.15, "a little below fp8");
    p.sustainedClock = sustainedClock(device.arch);
    p.convolutionEfficiency = published(1.0, 0.10, kResNet);
    p.winogradGain = device.computeCapability ? published(2.25, 0.10, "cuDNN on a V100 in fp32; F(2 x 2, 3 x 3) needs 2.25 times fewer products")
                                              : assumed(1.0, 0.10, "not known for this library");
    p.transposedShare = published(0.65, 0.20, kResNet);
    p.elementsPerClock = published(3.6, 0.10, kResNet);

    AttentionEfficiency attention = attentionEfficiency(device.arch);
    p.attentionForwardEfficiency = std::move(attention.forward);
    p.attentionBackwardEfficiency = std::move(attention.backward);

    p.flash1Attention = published(0.48, 0.10, "FlashAttention-2 is about twice as fast (its paper); MPT at 8k to 64k tokens (mosaicml/llm-foundry)");
    p.flash3Attention = device.arch == GpuArch::Hopper
                            ? published(1.62, 0.08, "FlashAttention-3: 621 of 989 TFLOPS forward (pytorch/benchmark pull request 2391), backward 1.5 to 1.75 times FlashAttention-2 (arXiv 2407.08608)")
                            : assumed(1.0, 0.10, "as flash");
    p.flash4Attention = isBlackwell(device.arch)
                            ? published(1.2, 0.10, "FlashAttention-4: up to 1.3 times cuDNN 9.13, 1,613 TFLOPS forward on a B200 (its paper, 2026); cuDNN is what flash stands for here")
                            : p.flash3Attention;
    p.gatherEfficiency = published(0.75, 0.15, "permutation of tokens on a B200: 0.50 of 8 TB/s, other kernels 0.67 (SimuMax configs/system/b200_bf16_ceperm.json)");
    p.fp8Attention = published(1.3, 0.15, "FlashAttention-3 forward on an H100: 1.2 PFLOPS in fp8, 0.74 in fp16 (arXiv 2407.08608); backward gains less: its gradients stay in sixteen bits");
    p.memoryEfficiency = isAmd(device.arch) ? assumed(0.75, 0.10, "streaming kernels on HBM")
                         : isBlackwell(device.arch) ? published(0.70, 0.10, "element-wise kernels on a B200: 0.67 of 8 TB/s (SimuMax configs/system/b200_bf16_ceperm.json)")
                         : device.memoryType.starts_with("GDDR") ? published(0.93, 0.06, "GDDR cards lose less than HBM: RTX A6000, A10 and RTX 6000 Ada in lambdal/deeplearning-benchmark; RTX 3090 Ti 0.85 in mli/transformers-benchmarks")
                                            : published(0.85, 0.05, "elementwise kernels: V100 784 of 900 GB/s, RTX 3090 Ti 856 of 1008 (mli/transformers-benchmarks)");
    p.kernelFixedUs = assumed(2.0, 0.25, "start-up and drain of a small kernel");
    p.launchUs = assumed(6.0, 0.40, "eager PyTorch: Python, dispatcher, autograd and the driver's launch");
    p.huggingfaceLaunch = published(2.0, 0.30, "Llama 1B, one sample of 512 tokens, eager on a B200 (stas00/ml-engineering training/performance)");
    p.transformerEngineLaunch = published(4.6, 0.35, "Linear and LayerNormLinear in MXFP8, forward and backward: 74 µs for each kernel on a GB200 (TransformerEngine pull request 3523), over arm_host");
    p.furtherLaunch = published(2.1, 0.50, "products of GroupedLinear: 267 µs for eight (TransformerEngine pull request 3134, taken to be on a GB200), over arm_host");
    p.armHost = published(2.75, 0.25, "a Linear of PyTorch's own: 37.1 µs on a GB200, 13.5 µs on a DGX H100 (TransformerEngine issue 2053)");
    p.profiledLaunch = published(8.6, 0.15, "a layer of width 1,024 in micro-batches of one under CUPTI, on an A100 (VIA-Research/vTrain, whose predictor replays it)");
    p.collectiveLaunchUs = assumed(20.0, 0.40, "ProcessGroupNCCL: work object, events, stream waits and the launch");
    p.hostStepUs = assumed(500.0, 0.50, "data loader hand-over, zero_grad, optimizer wrapper, logging");
    p.copyEfficiency = assumed(0.85, 0.08, "pinned copies of megabytes");
    p.hostMemoryGbPerS = assumed(250, 0.30, "two sockets of eight DDR4-3200 channels, 60 % of 410 GB/s");
    p.storageGbPerS = assumed(12, 0.40, "a few NVMe drives behind one driver; DeepSpeed reports 5 to 25 GB/s per node");
    // Before CUDA 11.7 every kernel of every library was loaded at once.
    p.contextBytes = device.arch == GpuArch::Volta ? published(1343.0 * 1024 * 1024, 0.10, "V100, CUDA context and PyTorch's kernels: 1343 MiB (Hugging Face, perf_train_gpu_one)")
                                                   : assumed(0.6 * static_cast<double>(kGiB), 0.30, "CUDA context, cuBLAS and cuDNN handles and workspaces");
    p.ncclBytes = assumed(1.0 * static_cast<double>(kGiB), 0.40, "buffers of one or two communicators; grows with channels and peers");
    p.collectiveBandwidth = published(1.0, 0.10, "held-out error on public nccl-tests tables, 1 MiB and more");
    p.collectiveLatency = published(1.0, 0.25, "held-out error on public nccl-tests tables, below 1 MiB");
    setCollectiveFigures(p, device, collectiveConstants(figures));
    p.severalRanks = assumed(1.0, 0.02, "a device's collectives are priced by what they take from its kernels");
    p.interference = assumed(0.10, 0.50, "bytes of a ring at NVLink rate against the memory bandwidth");
    const bool host = device.interconnect == "none";  // judged by runs of its own, not by others'
    p.deviceVariation = host ? assumed(0, 0.5, "ranks of one host share its cores") : published(0.018, 0.5, "best matmuls of the eight devices of a node differ by 5 % and more (stas00/ml-engineering): 2.8 standard deviations");
    for (Figure Profile::*spread : {&Profile::modelSpreadDevice, &Profile::modelSpreadNode, &Profile::modelSpreadNetwork, &Profile::modelSpreadMesh, &Profile::modelSpreadMemory})
        p.*spread = assumed(host ? 0 : 0.10, 0.3, "before any fit: what models of this kind reach on runs they have not seen");
    layOver(p, device, figures.figures);
    return p;
}

}  // namespace ringside
