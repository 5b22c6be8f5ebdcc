// Profile: what a device and its links achieve, as opposed to what a datasheet promises. Every figure has a spread and
// says where it comes from; a measured figure wins over a formula.
//
// Meaning and sources of each figure: docs/models/profile.md. File format: docs/reference/profile.schema.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/dtype.h"
#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/cost/environment.h"
#include "model/cost/measurements.h"
#include "model/hardware/device.h"
#include "model/training/training_config.h"
#include "model/workload/kernel_work.h"

namespace ringside {

enum class Provenance : std::uint8_t { Assumed, Datasheet, Published, Measured };
std::string_view nameOf(Provenance provenance);  ///< "assumed", "datasheet", "published", "measured"

/// A number with its standard deviation (relative to the value) and its origin.
struct Figure {
    double value = 0;
    double relativeSpread = 0;
    Provenance provenance = Provenance::Assumed;
    std::string source;

    bool operator==(const Figure&) const = default;
};

/// One measured matmul: shape and the throughput reached.
struct GemmSample {
    GemmShape shape;
    double tflops = 0;
    double relativeSpread = 0;

    bool operator==(const GemmSample&) const = default;
};

struct Profile {
    std::string name;                       ///< "a100-80gb-sxm datasheet+published"
    std::string device;                     ///< the device it is for
    std::map<DType, Figure> gemmEfficiency; ///< best-shape fraction of the dense peak, by arithmetic type
    Figure sustainedClock;                  ///< what the power limit leaves of the best-shape rate where arithmetic never rests
    Figure deviceVariation;                 ///< how much devices of one kind differ in speed (one standard deviation, relative); a step waits for the slowest
    Figure winogradGain;                    ///< FLOPs that fp32's Winograd convolutions (3 × 3) save, as a factor on their rate
    Figure transposedShare;                 ///< part of a convolution's NCHW images that its kernel does not read or write as they lie
    Figure elementsPerClock;                ///< that one multiprocessor does in kernels which go element by element
    Figure convolutionEfficiency;           ///< fraction of what a GEMM of the same shape reaches
    Figure attentionForwardEfficiency;      ///< fraction of the dense peak that fused attention reaches (head size 128, long sequence)
    Figure attentionBackwardEfficiency;
    Figure gatherEfficiency;  ///< of memory_efficiency: kernels that gather or scatter rows
    Figure fp8Attention;  ///< of that: a kernel that multiplies in eight bits
    Figure flash1Attention, flash3Attention, flash4Attention; ///< of that: kernels of the first generation; those written for Hopper; for Blackwell
    Figure memoryEfficiency;                ///< fraction of the memory bandwidth that streaming kernels reach
    Figure kernelFixedUs;                   ///< device time of an empty kernel (start-up and drain)
    Figure launchUs;                        ///< host time to issue one kernel from the framework, eager
    Figure huggingfaceLaunch, transformerEngineLaunch, profiledLaunch;  ///< that of Hugging Face's and Transformer Engine's modules, and under a profiler that records launches, over PyTorch's own modules
    Figure furtherLaunch;                   ///< that of the kernels that one call issues in a row, but the first, over launchUs
    Figure armHost;                         ///< time of the host's Python on an Arm processor (Grace), over that on x86
    Figure collectiveLaunchUs;              ///< host time to issue one collective
    Figure hostStepUs;                      ///< host time per step outside launches (Python, zero_grad, hooks)
    Figure copyEfficiency;                  ///< fraction of the PCIe rate of a pinned copy
    Figure hostMemoryGbPerS;                ///< memory bandwidth of a node's host, which its devices share
    Figure storageGbPerS;                   ///< rate of a node's local storage (NVMe), likewise
    Figure contextBytes;                    ///< device memory of the driver's context and the libraries
    Figure ncclBytes;                       ///< device memory of communicators
    Figure collectiveBandwidth;             ///< multiplies the bandwidth term of the collective model (1: as NCCL's model)
    Figure collectiveLatency;               ///< multiplies its latency term
    // What NCCL reaches, relative to its tuner's figures (NcclAchieved; docs/models/nccl-achieved.md):
    Figure collectiveCallUs;                ///< least time of a collective on the device
    Figure collectiveHopLl, collectiveHopLl128, collectiveHopSimple;  ///< real hop over the tuner's, by protocol
    Figure collectiveLinkEfficiency;        ///< bandwidth within a node over the tuner's
    Figure collectiveNetworkEfficiency;     ///< bandwidth between nodes over the tuner's
    Figure collectiveIdleStep;              ///< part of a ring step per round that moves nothing
    Figure collectiveRampUs;                ///< per √MiB: large transfers reach their rate late
    Figure nvlsStepUs;                      ///< per doubling of the ranks that reduce in the switch
    Figure nvlsEfficiency;                  ///< of the NVLink rate, in-switch reduction
    Figure allToAllPeerUs;                  ///< per peer
    Figure allToAllEfficiency;              ///< of the links
    Figure allToAllSmallPart;               ///< of that, while a peer's part is below 1 MiB
    Figure allToAllUneven;                  ///< of that, where the ranks are no power of two
    Figure severalRanks;                    ///< time of kernels among the collectives of a host's ranks, over that in steps without any
    Figure interference;                    ///< share of memory bandwidth that a running collective takes from compute
    // What the model itself is off by, beyond what its figures are (one standard deviation of the logarithm; docs/models/band.md):
    Figure modelSpreadDevice;               ///< a step of one device
    Figure modelSpreadNode;                 ///< data parallel within a node
    Figure modelSpreadNetwork;              ///< data parallel over several nodes
    Figure modelSpreadMesh;                 ///< with tensor, pipeline or context parallelism
    Figure modelSpreadMemory;               ///< of a peak of memory
    std::map<DType, std::vector<GemmSample>> gemmTable;  ///< measured; wins over the formula
    KernelPoints kernels;                   ///< measured, by KernelWork::name; they win over gemmTable and every formula
    std::vector<CollectiveCurve> collectives;     ///< measured; they win over the backend's closed form
    std::map<std::string, double> deviceFigures;  ///< measured figures of the device itself, by the keys of setDeviceFigure
    std::vector<ReferenceStep> steps;             ///< measured with it (docs/guides/validate.md, drift)
    std::optional<Environment> environment;       ///< where it was measured

    bool operator==(const Profile&) const = default;
};

/// Host time of a launch from `framework`, over launchUs.
double launchFactor(const Profile& profile, Framework framework);

/// The profile of a device made from its datasheet and what is published about its kind (docs/models/profile.md), with the figures that
/// a fit on published measurements gives (published_figures.h).
/// Never fails: what the datasheet lacks is missed where it is needed (ComputeCost::create).
Profile datasheetProfile(const Device& device);

/// The device with what the profile knows about it (a host has no datasheet): figures that `device` lacks come from deviceFigures.
Result<Device> withMeasuredFigures(Device device, const Profile& profile);

/// Every key that setProfileFigure and the "figures" object of a file know: "launch_us", …, "gemm_efficiency.bf16".
std::vector<std::string> profileFigureKeys();
/// Figure by key, or nullptr. gemm_efficiency.* is found only where the profile holds that type.
const Figure* findProfileFigure(const Profile& profile, std::string_view key);
Figure* findProfileFigure(Profile& profile, std::string_view key);

/// Sets one figure by hand: `--set profile.launch_us=4`. The spread becomes 0 and the provenance "assumed".
/// Error: unknown key (names the nearest) or a value outside the key's range.
Result<void> setProfileFigure(Profile& profile, std::string_view key, double value);

/// Reads "format": "ringside-profile", version 1. A figure is {value, relative_spread, provenance, source} or a bare number.
/// Figures that the file leaves out keep those of `base`; name and device too. Unknown keys are refused.
Result<Profile> profileFromJson(const JsonCursor& cursor, const Profile& base);
/// As above without a base: every figure must be there.
Result<Profile> profileFromJson(const JsonCursor& cursor);
/// The inverse of profileFromJson.
Json toJson(const Profile& profile);

}  // namespace ringside
