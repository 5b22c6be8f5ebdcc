#include "sim/strategy/device_mesh.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace ringside {
namespace {

/// Blocks are shared out as the layout says, else evenly (the first stages get one more where they do not divide); what stands before them goes to
/// the first stage, what follows to the last. A module of multi-token prediction counts as a block.
Result<std::vector<LayerRange>> cutIntoChunks(const Workload& workload, std::int64_t chunks, const std::vector<std::int64_t>& layout) {
    std::size_t firstBlock = workload.layers.size(), endBlock = 0;
    for (std::size_t l = 0; l < workload.layers.size(); ++l)
        if (workload.typeOf(l).isBlock) {
            firstBlock = std::min(firstBlock, l);
            endBlock = l + 1;
        }
    const std::int64_t blocks = endBlock > firstBlock ? static_cast<std::int64_t>(endBlock - firstBlock) : 0;
    const std::int64_t laidOut = std::accumulate(layout.begin(), layout.end(), std::int64_t{0});
    if (!layout.empty() && (static_cast<std::int64_t>(layout.size()) != chunks || laidOut != blocks))
        return badInput("strategy.pipeline_layout", fmt::format("{} numbers that add up to {}; expected one for each of {} chunks, and the {} blocks of {} in all", layout.size(),
                                                                laidOut, chunks, blocks, workload.name));
    if (chunks == 1) return std::vector<LayerRange>{{0, workload.layers.size()}};
    if (blocks < chunks)
        return badInput("strategy.pp", fmt::format("{} has {} blocks, which cannot be cut into {} stages; use fewer stages", workload.name, blocks, chunks));
    std::vector<LayerRange> cut;
    std::size_t at = firstBlock;
    for (std::int64_t c = 0; c < chunks; ++c) {
        const auto take = static_cast<std::size_t>(layout.empty() ? blocks / chunks + (c < blocks % chunks ? 1 : 0) : layout[static_cast<std::size_t>(c)]);
        cut.push_back({c == 0 ? 0 : at, c + 1 == chunks ? workload.layers.size() : at + take});
        at += take;
    }
    return cut;
}

ModelShard shardOf(const ParallelConfig& parallel) {
    ModelShard shard;
    shard.tp = parallel.tp;
    shard.cp = parallel.cp;
    shard.ep = parallel.ep;
    shard.wholeExperts = parallel.keepsExpertsWhole();
    shard.sendsTokensOnce = parallel.tokenDispatcher == "flex";
    shard.sequenceParallel = parallel.sequenceParallel;
    const bool transformerEngine = parallel.transformerImpl == "transformer_engine";
    shard.transformerEngine = transformerEngine;
    shard.mainGradientsInFp32 = parallel.gradReduceInFp32;
    shard.fusesExperts = transformerEngine && parallel.fusesExpertMlp;
    shard.launchesEachExpert = transformerEngine && !parallel.fusesExpertMlp;
    shard.readsRouterCounts = transformerEngine && !parallel.padExpertInputToCapacity && !parallel.capturesIteration();
    shard.overlapsTensor = parallel.tpCommOverlap;
    shard.style = parallel.tensorStyle == "picotron" ? TensorStyle::Picotron : TensorStyle::Megatron;
    shard.context = parallel.contextKind == "ulysses" ? ContextKind::Ulysses : ContextKind::Ring;
    shard.balanced = parallel.contextBalanced;
    return shard;
}

}  // namespace

Result<DeviceMesh> meshOf(const ParallelConfig& parallel, std::int64_t devices) {
    DeviceMesh mesh{parallel.tp, parallel.cp, 1, parallel.pp, parallel.ep, parallel.keepsExpertsWhole()};
    if (parallel.etp && *parallel.etp != 1 && *parallel.etp != mesh.tp)
        return badInput("strategy.etp", fmt::format("is {}; expected tp, which is {}, or 1", *parallel.etp, mesh.tp));
    const std::int64_t model = mesh.tp * mesh.cp * mesh.pp;
    if (devices % model != 0)
        return badInput("strategy", fmt::format("tp {} × pp {} × cp {} = {} does not divide {} devices; choose axes whose product does", mesh.tp, mesh.pp, mesh.cp, model, devices));
    mesh.dp = devices / model;
    if (mesh.expertRanks() % mesh.ep != 0)
        return badInput("strategy.ep", fmt::format("{} expert-parallel ranks do not divide the {} ranks that share a batch (dp {} × cp {}{})", mesh.ep, mesh.expertRanks(), mesh.dp, mesh.cp,
                                                   mesh.wholeExperts ? fmt::format(" × tp {}", mesh.tp) : ""));
    return mesh;
}

MeshAxes addMeshAxes(Schedule& schedule, const DeviceMesh& mesh, const ParallelConfig& parallel) {
    MeshAxes axes;
    const auto add = [&](CommAxis axis) {
        schedule.axes.push_back(std::move(axis));
        return static_cast<std::uint32_t>(schedule.axes.size() - 1);
    };
    axes.data = axes.expertData = add({"dp", mesh.syncRanks(), mesh.tp});
    if (mesh.tp > 1) axes.tensor = add({"tp", mesh.tp, 1});
    if (mesh.cp > 1) axes.context = add({"cp", mesh.cp, mesh.tp});
    const std::int64_t expertStride = mesh.wholeExperts ? 1 : mesh.tp;
    if (mesh.ep > 1) axes.expert = add({"ep", mesh.ep, expertStride});
    if (mesh.ep > 1 || mesh.wholeExperts) axes.expertData = add({"expert dp", mesh.expertCopies(), expertStride * mesh.ep});
    const std::int64_t stage = mesh.stageRanks();
    for (std::int64_t i = 0; i + 1 < mesh.pp; ++i) {
        axes.forward.push_back(add({fmt::format("pp {}-{}", i, i + 1), 2, stage, i, mesh.pp}));
        axes.backward.push_back(add({fmt::format("pp {}-{}", i + 1, i), 2, stage, i, mesh.pp}));
    }
    if (mesh.pp > 1) {
        axes.pipeline = add({"pp", mesh.pp, stage});
        axes.tiedEmbedding = add({"first and last stage", 2, (mesh.pp - 1) * stage});
        if (parallel.pipelineSchedule == "interleaved") {
            axes.wrap = add({"pp last-first", 2, (mesh.pp - 1) * stage});
            axes.wrapBack = add({"pp first-last", 2, (mesh.pp - 1) * stage});
        }
    }
    return axes;
}

Result<std::vector<ProgramPart>> programParts(const StrategyInput& input, const DeviceMesh& mesh) {
    const ParallelConfig& parallel = input.parallel;
    const std::int64_t chunksPerStage = mesh.pp > 1 && parallel.pipelineSchedule == "interleaved" ? parallel.virtualStages : 1;

    // Data-parallel ranks with the same batch, as runs of ranks.
    struct Run {
        std::int64_t batch, first, count;
    };
    std::vector<Run> runs;
    const std::vector<std::int64_t>& batches = input.training.rankBatches;
    if (batches.empty()) {
        runs.push_back({input.training.microBatch, 0, mesh.dp});
    } else {
        for (std::int64_t d = 0; d < mesh.dp; ++d) {
            const std::int64_t batch = batches[static_cast<std::size_t>(d)];
            if (!runs.empty() && runs.back().batch == batch) ++runs.back().count;
            else runs.push_back({batch, d, 1});
        }
    }
    double mean = 0;
    for (const Run& run : runs) mean += static_cast<double>(run.batch * run.count) / static_cast<double>(mesh.dp);

    // A causal ring that is not balanced gives each of its ranks other work.
    const ModelShard shard = shardOf(parallel);
    const bool unbalanced = mesh.cp > 1 && shard.context == ContextKind::Ring && !shard.balanced;
    std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const Workload>> built;  // by batch and place in the ring
    std::vector<ProgramPart> parts;
    for (const Run& run : runs)
        for (std::int64_t place = 0; place < (unbalanced ? mesh.cp : 1); ++place) {
            std::shared_ptr<const Workload>& workload = built[{run.batch, place}];
            if (!workload) {
                if (run.batch == input.training.microBatch && shard.isWhole() && !shard.transformerEngine) {
                    workload = input.workload;
                } else {
                    TrainingConfig training = input.training;
                    training.microBatch = run.batch;
                    ModelShard mine = shard;
                    mine.cpRank = place;
                    TRY(Workload other, buildWorkload(input.model, training, mine));
                    workload = std::make_shared<const Workload>(std::move(other));
                }
            }
            TRY(const std::vector<LayerRange> cut, cutIntoChunks(*workload, mesh.pp * chunksPerStage, parallel.pipelineLayout));
            // Megatron's rule too: whoever shares the embedding's table is with the head, for the first and the last stage add up its gradient.
            for (const TiedParameter& tie : workload->ties)
                if (mesh.pp > 1 && static_cast<std::size_t>(tie.layer) < cut.back().begin)
                    return badInput("strategy.pp", fmt::format("'{}', which shares the embedding, is not in the last of {} pipeline chunks; use fewer stages, or give strategy.pipeline_layout",
                                                               workload->layers[static_cast<std::size_t>(tie.layer)].name, cut.size()));
            for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
                ProgramPart part;
                part.workload = workload;
                part.stage = stage;
                part.weight = static_cast<double>(run.batch) / mean;
                for (std::int64_t c = 0; c < chunksPerStage; ++c) part.chunks.push_back(cut[static_cast<std::size_t>(c * mesh.pp + stage)]);
                const std::int64_t perReplica = mesh.tp * mesh.cp, first = stage * mesh.stageRanks() + run.first * perReplica;
                if (unbalanced)
                    for (std::int64_t t = 0; t < mesh.tp; ++t) part.ranks.push_back({first + place * mesh.tp + t, perReplica, run.count});
                else
                    part.ranks.push_back({first, 1, run.count * perReplica});
                // The same batch elsewhere is the same program.
                const auto same = std::find_if(parts.begin(), parts.end(), [&](const ProgramPart& p) { return p.workload == part.workload && p.stage == stage; });
                if (same != parts.end()) same->ranks.insert(same->ranks.end(), part.ranks.begin(), part.ranks.end());
                else parts.push_back(std::move(part));
            }
        }
    return parts;
}

void addClasses(Schedule& schedule, const Cluster& cluster, std::uint32_t program, const RankSet& ranks, double weight) {
    std::int64_t begin = 0;  // of the node group, in ranks
    std::int64_t done = 0;   // of `ranks`
    for (std::size_t g = 0; g < cluster.nodes.size() && done < ranks.count; ++g) {
        const std::int64_t end = begin + cluster.nodes[g].count * cluster.nodes[g].kind.devices;
        const std::int64_t first = ranks.at(done);
        if (first < end) {
            const std::int64_t count = std::min(ranks.count - done, (end - 1 - first) / ranks.stride + 1);
            RankClass rankClass;
            rankClass.program = program;
            rankClass.nodeGroup = g;
            rankClass.ranks = {first, ranks.stride, count};
            rankClass.weight = weight;
            schedule.classes.push_back(rankClass);
            done += count;
        }
        begin = end;
    }
}

std::vector<Knob> meshKnobs() {
    return {{"tp", "1", "tensor-parallel ranks: each matrix is cut over them"},
            {"pp", "1", "pipeline stages: blocks are shared out over them"},
            {"cp", "1", "context-parallel ranks: each sequence is cut over them"},
            {"ep", "1", "expert-parallel ranks: experts are shared out over them (mixture of experts only)"},
            {"etp", "tp", "ranks that each expert is cut over: those of tp, or 1: they hold further experts (Megatron's expert_tensor_parallel_size)"},
            {"moe_token_dispatcher", "alltoall", "alltoall: a token travels once for each of its experts; flex: once to each rank that has any of them (DeepEP, HybridEP)"},
            {"sequence_parallel", "false", "with tp: norms and residuals work on 1/tp of the tokens, all-reduces become reduce-scatter and all-gather"},
            {"tensor_style", "megatron", "picotron: separate q, k, v and gate, up, each with its own backward all-reduce"},
            {"pipeline_schedule", "1f1b", "gpipe, 1f1b or interleaved"},
            {"virtual_stages", "2", "interleaved: model chunks per rank"},
            {"pipeline_layout", "evenly", "blocks of each stage, or of each chunk in the model's order; a module of multi-token prediction counts as one"},
            {"context_kind", "ring", "ring attention, or ulysses: all-to-all between sequence and heads"},
            {"context_balanced", "true", "ring: zig-zag order, so that causal attention is even work"}};
}

std::vector<Knob> withMesh(std::vector<Knob> own) {
    for (Knob& knob : meshKnobs()) own.push_back(std::move(knob));
    return own;
}

}  // namespace ringside
