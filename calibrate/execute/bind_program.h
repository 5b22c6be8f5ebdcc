// A rank's program made ready to run: every task with the device kernels, the collective or the copy behind it, operands named by
// buffers. Done once; each step then only fills in addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/execute/bound_call.h"
#include "model/base/result.h"
#include "model/training/training_config.h"
#include "sim/schedule/schedule.h"

namespace ringside {

struct Hyperparameters {
    double learningRate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0.01, momentum = 0.9;
    double outerLearningRate = 0.7, outerMomentum = 0.9;  ///< DiLoCo's outer step
    double elasticity = 0.9;                              ///< EASGD: a worker's pull is so much over the number of workers
};

/// A collective's operands. Counts are of `dtype`.
struct BoundCollective {
    CollectiveOp op = CollectiveOp::AllReduce;
    DType dtype = DType::Fp32;
    std::uint32_t axis = 0;
    std::int64_t elements = 0;  ///< all-gather, reduce-scatter, all-to-all, gather, scatter: of one rank; else of the whole
    Operand in, out;            ///< all-reduce, broadcast, reduce: out, in place
    std::int32_t root = 0;
    std::int32_t sender = -1;
    bool average = false;
};

/// A tensor that travels in a message.
struct BoundPiece {
    Operand at;
    std::int64_t elements = 0;
};

/// A collective's calls come before it (tensors put in one line) and after it.
struct BoundTask {
    std::uint32_t firstCall = 0, calls = 0, callsBefore = 0;
    std::uint32_t firstCollective = 0, collectives = 0;
    std::uint32_t firstPiece = 0, pieces = 0;  ///< of a push or pull, one after another
    Operand input;              ///< where the micro-batch goes
};

struct BoundProgram {
    std::vector<BoundTask> tasks;  ///< as RankProgram::tasks
    std::vector<BoundCall> calls;
    std::vector<BoundCollective> collectives;
    std::vector<BoundPiece> pieces;
    bool labelsOfAll = false;      ///< this rank has the loss of all ranks' samples: their labels go to kLabelScratch
    ScratchSizes scratch{};
    std::vector<Operand> losses;   ///< one per micro-step: the loss, valid when its loss task is done
    std::vector<std::uint32_t> lossTasks;
};

/// Fails (missing capability) on what cannot be run for real, naming it.
Result<BoundProgram> bindProgram(const Schedule& schedule, std::size_t rankClass, std::int64_t rank, const TrainingConfig& training, const Hyperparameters& hyper);

}  // namespace ringside
