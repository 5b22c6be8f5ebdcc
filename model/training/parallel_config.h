// ParallelConfig: how training is spread over devices: the strategy's name, the axes of the device mesh and the knobs.
//
// One struct for all strategies keeps a scenario comparable; which knobs a strategy takes is its own business
// (Strategy::knobs), and giving one that it does not take is an error, not silence. parallel_knobs.h reads and writes them
// by key; what an empty optional stands for is the strategy's default, which its knobs() states.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/dtype.h"

namespace ringside {

struct ParallelConfig {
    std::string strategy = "ddp";

    // The mesh: data parallel is what the other axes leave.
    std::int64_t tp = 1, pp = 1, cp = 1, ep = 1;
    std::optional<std::int64_t> etp;            ///< ranks that an expert is cut over: tp (as if not given), or 1
    std::string tokenDispatcher = "alltoall";   ///< of experts: alltoall, flex
    bool sequenceParallel = false;              ///< with tp: norms and residuals on 1/tp of the tokens
    std::string tensorStyle = "megatron";       ///< megatron, picotron
    std::string pipelineSchedule = "1f1b";      ///< gpipe, 1f1b, interleaved
    std::int64_t virtualStages = 2;             ///< interleaved: model chunks per rank
    std::vector<std::int64_t> pipelineLayout;   ///< blocks of each stage, of each chunk in the model's order where interleaved; empty: evenly
    std::string contextKind = "ring";           ///< ring, ulysses
    bool contextBalanced = true;                ///< ring: zig-zag order, so that causal work is even

    // DDP and its relatives.
    std::optional<double> bucketMb;             ///< MiB
    bool gradientAsBucketView = false;
    bool findUnusedParameters = false;
    bool staticGraph = false;
    std::string commHook = "none";              ///< none, fp16, bf16, powersgd
    std::int64_t powerSgdRank = 1;
    bool noSync = true;                         ///< with gradient accumulation: reduce only in the last micro-step
    bool broadcastBuffers = true;               ///< rank 0's buffers (batch-norm statistics) travel in each forward
    bool join = false;                          ///< DDP's join context for uneven inputs
    std::int64_t exhaustedRanks = 0;            ///< with join: ranks that have run out of inputs and only shadow collectives
    bool asyncGradients = false;                ///< apply the previous step's averaged gradients while this step's travel

    // Local steps.
    std::optional<std::int64_t> period;         ///< local optimizer steps between two averagings
    std::int64_t localGroup = 0;                ///< post-local SGD: gradients are still averaged in groups of this size; 0: not at all
    bool asyncAveraging = false;                ///< easgd: each worker talks to the centre by itself

    // Parameter servers.
    std::optional<std::int64_t> servers;        ///< dedicated server nodes
    std::int64_t staleness = 3;                 ///< ssp: clocks a worker may run ahead
    bool pushPullOverlap = true;                ///< layers are pushed while backward goes on

    // DeepSpeed ZeRO; sizes in elements, as DeepSpeed counts.
    double reduceBucketElements = 5e8;
    std::optional<bool> overlapComm;            ///< DeepSpeed: only stage 3 by default
    bool reduceScatter = true;
    bool multiRankBucketAllReduce = true;
    bool contiguousGradients = true;
    double prefetchBucketElements = 5e7;
    double maxLiveParameters = 1e9;
    double maxReuseDistance = 1e9;
    double paramPersistenceThreshold = 1e5;
    double subGroupElements = 1e9;
    bool zeroInit = true;                       ///< stage 3: the model is built shared out (zero.Init), never whole
    std::string offloadOptimizer = "none";      ///< none, cpu, nvme
    std::string offloadParam = "none";          ///< none, cpu, nvme
    bool quantizedWeights = false;              ///< ZeRO++ qwZ
    std::int64_t hpzPartitionSize = 1;          ///< ZeRO++ hpZ; 1: off
    bool quantizedGradients = false;            ///< ZeRO++ qgZ
    bool parametersAsBucketView = false;        ///< ZeroRedundancyOptimizer: one broadcast per rank instead of per tensor

    // Megatron.
    std::optional<double> bucketElements;
    bool distributedOptimizer = true;
    bool overlapGradReduce = false;
    bool overlapParamGather = false;
    bool gradReduceInFp32 = false;
    bool tpCommOverlap = false;                 ///< tensor-parallel collectives beside the products next to them (userbuffers)
    std::string transformerImpl = "local";      ///< local, transformer_engine
    std::int64_t optimizerInstances = 1;
    bool padBuckets = false;
    bool fusesExpertMlp = false;                ///< the products of experts are one kernel each that also activates and quantises (Transformer Engine's op fuser)
    bool padExpertInputToCapacity = false;      ///< experts get as many tokens as they hold, however many were sent: the host need not know
    std::vector<std::string> cudaGraphScope;    ///< what is captured as graphs: attn, mlp, moe, moe_router, moe_preprocess; or full_iteration
    bool overlapExpertExchange = false;         ///< each forward runs beside a backward, while tokens travel

    // FSDP.
    std::string shardingStrategy = "full_shard";  ///< full_shard, shard_grad_op, hybrid_shard, hybrid_shard_zero2, no_shard
    std::int64_t shardGroup = 0;                ///< hybrid: ranks that hold one copy; 0: a node
    std::string wrap = "block";                 ///< block, size, none; or the layers of wrapLayers
    std::vector<std::string> wrapLayers;        ///< names of layers, each a unit of its own
    double minWrapElements = 1e8;               ///< wrap by size
    std::string backwardPrefetch = "pre";       ///< pre, post, none
    std::int64_t forwardPrefetch = 0;           ///< units gathered ahead explicitly
    bool limitAllGathers = true;
    bool useOrigParams = true;
    std::optional<std::int64_t> reshardAfterForward;  ///< 0: no, 1: yes, k: keep shards over k ranks
    std::optional<DType> paramDtype, reduceDtype, bufferDtype;
    bool keepLowPrecisionGrads = false;
    bool cpuOffload = false;

    bool captures(std::string_view scope) const { return std::find(cudaGraphScope.begin(), cudaGraphScope.end(), scope) != cudaGraphScope.end(); }
    /// Forward and backward of the whole step are one graph of kernels.
    bool capturesIteration() const { return captures("full_iteration"); }
    /// The ranks of the tensor axis hold different experts, not parts of the same.
    bool keepsExpertsWhole() const { return tp > 1 && etp && *etp == 1; }
    /// Experts are not the same on all ranks of the data and the tensor axis.
    bool spreadsExperts() const { return ep > 1 || keepsExpertsWhole(); }

    std::set<std::string> given;                ///< knobs named in the scenario, by key
};

}  // namespace ringside
