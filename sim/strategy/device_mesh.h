// DeviceMesh: how ranks are laid out over tensor, context, data and pipeline parallelism, and which program each of them runs.
//
// Ranks are numbered with tensor parallel fastest, then context, data, and pipeline slowest (Megatron's order), so that the
// chattiest groups share a node. Gradients are averaged over data × context (the axis "dp").
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/strategy/strategy.h"

namespace ringside {

struct DeviceMesh {
    std::int64_t tp = 1, cp = 1, dp = 1, pp = 1, ep = 1;
    bool wholeExperts = false;  ///< the ranks of the tensor axis hold different experts, not parts of the same

    std::int64_t stageRanks() const { return tp * cp * dp; }
    std::int64_t syncRanks() const { return cp * dp; }  ///< that average gradients with each other
    std::int64_t expertRanks() const { return wholeExperts ? stageRanks() : syncRanks(); }  ///< over which experts and copies of them are spread
    std::int64_t expertCopies() const { return expertRanks() / ep; }
};

/// Fails (bad input) where the axes do not divide the devices.
Result<DeviceMesh> meshOf(const ParallelConfig& parallel, std::int64_t devices);

/// Indices into Schedule::axes; kNoAxis where the mesh has no such axis.
constexpr std::uint32_t kNoAxis = 0xffffffffU;
struct MeshAxes {
    std::uint32_t data = 0;
    std::uint32_t tensor = kNoAxis, context = kNoAxis, expert = kNoAxis;
    std::uint32_t expertData = 0;                   ///< the ranks that hold the same experts
    std::vector<std::uint32_t> forward, backward;   ///< [boundary]: stage i to i + 1, and back
    std::uint32_t wrap = kNoAxis, wrapBack = kNoAxis;  ///< interleaved: last stage to first, and back
    std::uint32_t tiedEmbedding = kNoAxis;          ///< first and last stage
    std::uint32_t pipeline = kNoAxis;               ///< all stages
};
/// Adds the mesh's axes to the schedule.
MeshAxes addMeshAxes(Schedule& schedule, const DeviceMesh& mesh, const ParallelConfig& parallel);

/// Layers [begin, end) of a workload.
struct LayerRange {
    std::size_t begin = 0, end = 0;
};

/// What one program computes, and which ranks run it.
struct ProgramPart {
    std::shared_ptr<const Workload> workload;
    std::int64_t stage = 0;
    std::vector<LayerRange> chunks;  ///< one, unless the pipeline is interleaved
    std::vector<RankSet> ranks;
    double weight = 1;               ///< of its gradients (RankClass::weight)
};

/// One part for each stage, place in an unbalanced context ring, and batch size.
Result<std::vector<ProgramPart>> programParts(const StrategyInput& input, const DeviceMesh& mesh);

/// Adds classes for the ranks to the schedule, cut where the kind of node changes.
void addClasses(Schedule& schedule, const Cluster& cluster, std::uint32_t program, const RankSet& ranks, double weight = 1);

/// The mesh's knobs, for Strategy::knobs of those that can be combined with other kinds of parallelism.
std::vector<Knob> meshKnobs();
/// `own` and the mesh's.
std::vector<Knob> withMesh(std::vector<Knob> own);

}  // namespace ringside
