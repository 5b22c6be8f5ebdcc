// Workload: a model as the layers and ops of one forward and backward pass over one micro-batch, with every shape
// concrete. No clock and no device here.
//
// Identical layers share one LayerType, so a 126-block model costs what its three kinds of layer cost. Layers form a
// chain: each takes the output of the one before it. Inside a layer the ops form a graph over the layer's values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/collective_op.h"
#include "model/base/dtype.h"
#include "model/base/units.h"
#include "model/training/training_config.h"
#include "model/workload/kernel_work.h"
#include "model/workload/token_spread.h"

namespace ringside {

using Shape = std::vector<std::int64_t>;
std::int64_t elementCount(const Shape& shape);

/// A tensor that an op writes (or the layer's input, value 0).
struct Value {
    std::string name;
    Shape shape;
    DType dtype = DType::Fp32;
    bool autocastCache = false;  ///< a parameter's cast, which autocast keeps until its region ends (the forward pass)

    Bytes bytes() const { return elementCount(shape) * sizeOf(dtype); }
};

/// A trainable tensor. A layer lists its parameters in the order its module registers them: buckets depend on it.
struct Parameter {
    std::string name;                ///< local to the layer: "attn.c_attn.weight"
    Shape shape;                     ///< of the part that this rank holds
    bool tensorSharded = false;      ///< split over the tensor axis; else every rank of it holds the same
    bool expert = false;             ///< of experts split over the expert axis: its gradient is averaged over ranks with the same experts
    bool partialOverTensor = false;  ///< not split, but each rank of the tensor axis has part of its gradient: to be summed over it

    std::int64_t elements() const { return elementCount(shape); }
};

/// A tensor that is state but not trained (batch-norm statistics).
struct StateTensor {
    std::string name;
    Shape shape;
    DType dtype = DType::Fp32;
};

enum class OpKind : std::uint8_t {
    Embedding, PositionEmbedding, Linear, Attention, Scores, AttentionSoftmax, AttentionValues, Rotary, RepeatHeads, LatentHeads, Norm, BatchNorm, Gelu, Silu,
    GatedSilu, Relu, Tanh, Sigmoid, Add, ChannelScale, Dropout, Convolution, MaxPool, AveragePool, Flatten, Concat, Router, ExpertDispatch, ExpertCombine,
    CrossEntropy,
    // Of a sharded model only (docs/models/model-shards.md):
    TensorCopy, TensorReduce, TensorGather, SequenceGather, SequenceScatter, AllToAll, LogitsMax, LogitsSum,
};
/// "linear", "batch-norm", …
std::string_view nameOf(OpKind kind);

/// Which axis of the device mesh an op talks over.
enum class MeshAxis : std::uint8_t { Tensor, Context, Expert };
std::string_view nameOf(MeshAxis axis);  ///< "tp", "cp", "ep"

/// A collective that an op needs. `elements` are those of the whole buffer, as nccl-tests counts: for all-gather and
/// reduce-scatter of all ranks together, for send-receive and all-to-all what one rank sends.
struct OpCollective {
    CollectiveOp op = CollectiveOp::AllReduce;
    MeshAxis axis = MeshAxis::Tensor;
    std::int64_t elements = 0;
    DType dtype = DType::Fp32;
    TokenSpread spread{};  ///< of an all-to-all that sends a token once to each rank, and over the network once to each node

    Bytes bytes() const { return elements * sizeOf(dtype); }
    bool operator==(const OpCollective&) const = default;
};

/// Attention whose keys and values go round a ring of ranks, one block per step.
///
/// The kernels of step i are the next forwardKernels[i] of Op::forward (backwardKernels[i] of Op::backward); a step may have
/// none: a causal ring that is not balanced leaves a rank idle while blocks pass it. Steps count in the order of their pass.
/// `exchange` i (0 ≤ i < steps − 1), in forward and again in backward, starts with step i, may run beside its kernels, and
/// step i + 1 waits for it. `gradientExchange` j (1 ≤ j ≤ gradientExchanges), in backward only, starts when the kernels of
/// step j − 1 are done and may run beside those of step j; step j + 1, or the end of the op, waits for it. j = steps stands
/// alone at the end.
struct RingSteps {
    int steps = 0;  ///< 0: the op is no ring
    std::vector<int> forwardKernels, backwardKernels;
    OpCollective exchange;          ///< keys and values of one block, to the next rank
    OpCollective gradientExchange;  ///< their gradients
    int gradientExchanges = 0;
};

/// The part of a block that an op belongs to where parts of blocks are captured as graphs of kernels (Megatron's cuda_graph_scope).
enum class GraphScope : std::uint8_t { None, Attention, Mlp, Router, Experts };

/// One operation. `outputs[0]` is its result (rotary embeddings of separate queries and keys have two); further outputs
/// are by-products kept for backward: casts, masks, statistics. Tensors that live only between two kernels of one op are
/// not listed; where they are large, the op's workspace counts them.
///
/// Attributes by kind (with the shapes of the values, all that an executor needs to run the op); unnamed places are 0:
///   Linear            {in, out, hasBias, weightIsInByOut, groups}  groups > 1: one weight per expert, tokens shared out evenly
///   Attention, Scores, AttentionValues
///                     {heads, kvHeads, headDim, causal, fusedQkv}  fused: one input [b, s, (heads + 2·kvHeads)·headDim]
///   AttentionSoftmax  {keys}
///   Rotary            {heads, kvHeads, headDim, 0, fusedQkv}
///   RepeatHeads       {heads, kvHeads, headDim}: each key (value) head once per query head that reads it
///   LatentHeads       {heads, headDim, valueHeadDim, ropeDim}: queries with rotary positions; keys and values from their joint projection and a shared key
///   Norm              {features, isRms, hasBias, severalKernels}
///   BatchNorm         {channels}
///   Embedding         {rows, features};  PositionEmbedding {rows, features}: adds a row to each token
///   Convolution       {kernel, stride, padding, hasBias, groups}
///   ChannelScale      {}: an image times one factor per sample and channel (squeeze-and-excitation)
///   MaxPool           {kernel, stride, padding};  AveragePool {outputSize}
///   GatedSilu         {features, activation, fusedInput, oneKernel}  result = act(gate)·up; activation: 0 SiLU, 1 GELU, 2 ReLU
///   Router            {experts, expertsPerToken, hidden};  ExpertDispatch, ExpertCombine {experts, expertsPerToken}
///   CrossEntropy      {classes, LossKernel}
///   Concat            {axis}: joins its inputs, or its input and its parameter (a class token)
///   TensorCopy, TensorReduce, TensorGather, SequenceGather, SequenceScatter, AllToAll
///                     {ranks}; gathered or split extent: the last (TensorGather), the last but one (SequenceGather, SequenceScatter)
///   LogitsMax, LogitsSum  {classes of this rank, ranks}
/// Backward of an op needs exactly the values in `saves` (its own inputs or outputs, by index into the
/// layer's values); a value stays in memory until the last op that saves it has run backward. A linear layer whose input
/// was gathered from pieces saves nothing of it: the gather saves its piece, and backwardCollectives bring the whole back.
///
/// Collectives and kernels of one op: forward runs the kernels, then forwardCollectives in order. Backward runs
/// backwardCollectives in order, then the kernels; the first `inputGradientKernels` of these do not wait for them.
/// A collective and the product beside it may be cut into as many pieces along the tokens (tensor_overlap.h): forwardPieces and backwardPieces of
/// both are then above 1, and say how many. The product's are its last forward kernels, and the last of its inputGradientKernels. A gather sends
/// pieces round the ring, and kernel i of the product after it needs the first i of them; a scatter reduces piece i once kernel i of the product
/// before it is done.
struct Op {
    OpKind kind = OpKind::Linear;
    std::string name;                   ///< local to the layer: "attn.c_attn"
    std::vector<int> inputs, outputs;   ///< values
    std::vector<int> parameters;        ///< indices into the layer's parameters, in the order in which backward completes their gradients
    std::vector<int> saves;             ///< values kept for backward
    std::vector<KernelWork> forward;    ///< kernels in launch order
    std::vector<KernelWork> backward;   ///< kernels in launch order; empty where the gradient is handed on as it is (a view,
                                        ///< an add) or where nothing flows back
    Bytes forwardWorkspace = 0, backwardWorkspace = 0;  ///< memory beside the listed values while the kernels run
    bool gradientInPlace = false;       ///< backward needs no new tensor for its input gradient (views, in-place adds)
    bool gradientOverSaved = false;     ///< the gradients of saved inputs are written over them
    /// Backward kernels after which the input's gradient is complete, so that a collective on it may run beside the others;
    /// 0: all of them.
    int inputGradientKernels = 0;
    std::vector<OpCollective> forwardCollectives, backwardCollectives;
    RingSteps ring;
    bool readByHost = false;            ///< the host waits for its result in forward before it issues anything further
    GraphScope graphScope = GraphScope::None;
    int forwardPieces = 1, backwardPieces = 1;
    std::array<std::int64_t, 6> attributes{};  ///< by kind, see above
};

/// True if the output is the input's memory: a view, or an all-reduce in place.
bool sharesMemory(const Op& op);

/// Consecutive ops that selective recompute can run again in backward. An ordinary checkpoint keeps what the ops read from outside and runs them again
/// before the backward of its last one (`before` is `last`). Where `before` is a later op, even what the ops hand on is let go once that one has run
/// forward, and made again before its backward (Megatron-Core's CheckpointWithoutOutput).
struct RecomputeSegment {
    RecomputeModule module = RecomputeModule::CoreAttention;
    int first = 0, last = 0, before = 0;

    bool discardsOutput() const { return before > last; }
};

struct LayerType {
    std::string name;                   ///< "embedding", "block", "head", "stage2.block", …
    std::vector<Value> values;          ///< values[0] is the input
    std::vector<Parameter> parameters;  ///< registration order
    std::vector<StateTensor> buffers;
    std::vector<Op> ops;                ///< execution order
    std::vector<RecomputeSegment> segments;  ///< in order of their first ops; one may hold others
    int output = 0;                     ///< the value handed to the next layer
    bool isBlock = false;               ///< a unit that recompute checkpoints and auto-wrap shards
    bool localNames = true;             ///< parameter names stand below the layer's name ("h.3." + "ln_1.weight"); else they are full
};

struct Layer {
    int type = 0;
    std::string name;  ///< "embedding", "h.3", "head"; prefix of its parameters where the type's names are local
};

/// Parameter `parameter` of `layer` is the same tensor as `ownerParameter` of `ownerLayer` (an untied copy does not exist:
/// it counts once, and its gradient is complete when the last of its uses has run backward).
struct TiedParameter {
    int layer = 0, parameter = 0;
    int ownerLayer = 0, ownerParameter = 0;
};

struct Workload {
    std::string name;
    std::vector<LayerType> types;
    std::vector<Layer> layers;  ///< in execution order, which is also registration order
    std::vector<TiedParameter> ties;
    std::int64_t samples = 0;          ///< in the micro-batch
    std::int64_t tokensPerSample = 0;  ///< of the whole sequence, also where it is split; 0 for image models and the MLP
    Bytes inputBytes = 0;              ///< the micro-batch (this rank's part of it) as it is copied to the device

    const LayerType& typeOf(std::size_t layer) const { return types[static_cast<std::size_t>(layers[layer].type)]; }
    bool isTied(int layer, int parameter) const;  ///< true if it is a use of another layer's tensor
};

/// Parameters, tied ones once.
std::int64_t parameterCount(const Workload& workload);
/// Elements of non-trained state (batch-norm statistics).
std::int64_t bufferElementCount(const Workload& workload);

/// Sum over the forward (backward) kernels, tied or not. Memory kernels count no FLOPs, so these are the FLOPs of matmuls,
/// convolutions and attention; causal attention counts the full score matrix.
double forwardFlops(const Workload& workload);
double backwardFlops(const Workload& workload);

/// Parameters that every rank of the tensor axis holds whole but has only part of the gradient of (tied ones once): what
/// must be summed over that axis before the gradients are used.
std::int64_t partialGradientElements(const Workload& workload);

/// Bytes that the ops of a layer keep for their backward: every saved value once, and values that share memory once.
Bytes savedBytes(const LayerType& type);

/// Name of parameter `p` of layer `l`: "h.3.attn.c_attn.weight".
std::string parameterName(const Workload& workload, std::size_t layer, int parameter);

}  // namespace ringside
