// The kernels of a model's ops for real: which device kernel stands behind each kernel of an op, and on which operands.
//
// Supported: what MLPs, GPT-2- and Llama-like transformers and ResNets are made of, in fp32. docs/models/executor.md has the table.
#pragma once

#include <vector>

#include "calibrate/execute/bound_call.h"
#include "model/base/result.h"
#include "model/workload/workload.h"

namespace ringside {

/// Where an op finds its tensors.
struct OpOperands {
    std::vector<Operand> inputs, outputs, parameters;      ///< as Op::inputs, outputs, parameters
    std::vector<Operand> values;                           ///< backward: by value of the layer; only saved ones are there
    std::vector<Operand> outputGradients;                  ///< backward: as Op::outputs; none where no gradient flows
    std::vector<Operand> inputGradients;                   ///< backward: as Op::inputs; none where no gradient flows
    std::vector<bool> addsToGradient;                      ///< backward: as Op::inputs: another consumer has written it already
    std::vector<Operand> parameterGradients;               ///< backward: as Op::parameters
    Operand labels;                                        ///< of the micro-batch (loss)
    Operand state;                                         ///< running statistics of the layer (batch norm): those of this op
    double lossScale = 1;                                  ///< of the loss' gradient: the rank's weight over the micro-steps
};

/// Appends what kernel `kernel` of the op's forward (backward) does; a kernel may need several calls, or none. Fails (missing
/// capability) on ops that cannot be run for real, naming them.
Result<void> bindForwardKernel(const LayerType& layer, const Op& op, std::size_t kernel, const OpOperands& operands, std::vector<BoundCall>& calls, ScratchSizes& scratch);
Result<void> bindBackwardKernel(const LayerType& layer, const Op& op, std::size_t kernel, const OpOperands& operands, std::vector<BoundCall>& calls, ScratchSizes& scratch);

}  // namespace ringside
