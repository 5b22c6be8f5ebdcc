// KernelCall: one kernel and its operands as plain data, so that every device (and a module behind a C interface) takes the same.
//
// Tensors are dense, row-major, of `dtype` unless a row says otherwise. `in` are read, `out` are written (and read too where
// it says "+="). A null pointer leaves an optional operand out ("[bias]"). Dims and scalars stand in the order given here.
// Statistics, log-sums and losses are fp32 whatever `dtype` says.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/base/dtype.h"

namespace ringside {

enum class KernelOp : std::uint32_t {
    // What                      in                                out                     dims                              scalars
    Matmul,                   // A, B, [bias n]                    C                       batch, m, n, k, transA, transB    alpha, beta      C = alpha·op(A)·op(B) + bias + beta·C
    ColumnSum,                // x[rows, n]                        y[n]                    rows, n                           beta             y = Σ rows + beta·y (a bias' gradient)
    AddBias,                  // x[rows, c, inner], bias[c]        y                       rows, c, inner
    ChannelSum,               // x[rows, c, inner]                 y[c]                    rows, c, inner                    beta
    Convolution,              // x[n,ci,h,w], w[co,ci,kh,kw]       y[n,co,oh,ow]           n, ci, h, w, co, kh, kw, stride, padding
    ConvolutionInputGradient, // dy, w                             dx                      likewise
    ConvolutionWeightGradient,// x, dy                             dw                      likewise                          beta
    LayerNorm,                // x, weight, [bias]                 y, statistics[rows,2]   rows, features                    epsilon          statistics: mean, 1/σ (fp32)
    LayerNormInputGradient,   // dy, x, weight, statistics         dx                      rows, features
    LayerNormWeightGradient,  // dy, x, statistics                 dweight, [dbias]        rows, features                    beta
    RmsNorm,                  // x, weight                         y, statistics[rows,1]   rows, features                    epsilon          statistics: 1/rms (fp32)
    RmsNormInputGradient,     // dy, x, weight, statistics         dx                      rows, features
    RmsNormWeightGradient,    // dy, x, statistics                 dweight                 rows, features                    beta
    BatchNorm,                // x[n,c,hw], weight, bias           y, statistics[c,2], [runningMean], [runningVariance]     n, c, hw         epsilon, momentum
    BatchNormGradient,        // dy, x, weight, statistics         dx, dweight, dbias      n, c, hw
    Softmax,                  // x[rows, n]                        y                       rows, n
    SoftmaxGradient,          // dy, y                             dx                      rows, n
    Activation,               // x                                 y                       elements, kind (ActivationKind)
    ActivationGradient,       // dy, saved                         dx                      elements, kind                                     saved: y for ReLU and tanh, x for the others
    Add,                      // a, b                              y                       elements
    Multiply,                 // a, b                              y                       elements
    Axpy,                     // x                                 y                       elements                          alpha            y += alpha·x
    Scale,                    // x                                 y                       elements                          alpha            y = alpha·x; x may be y
    Fill,                     //                                   y                       elements                          value
    Copy,                     // x                                 y                       elements                                           bytes as they are, of dtype
    Cast,                     // x (dims[1]: its DType)            y (dtype)               elements, from
    CopyStrided,              // x                                 y                       rows, columns, x stride, y stride                  a rectangle, strides in elements
    Transpose,                // x[b, m, n, inner]                 y[b, n, m, inner]       b, m, n, inner
    Mask,                     // x[batch, q, k]                    y                       batch, q, k                                        causal: later keys become −∞
    RepeatHeads,              // x[b, s, kv·d]                     y[b, heads, s, d]       b, s, kv, heads, d, x stride                       stride: elements between tokens of x
    SumRepeatedHeads,         // y[b, heads, s, d]                 x[b, s, kv·d]           b, s, kv, heads, d, x stride
    Dropout,                  // x                                 y, mask (Bool)          elements, seed                    p
    DropoutGradient,          // dy, mask                          dx                      elements                          p
    Embedding,                // tokens (Int64), table             y[tokens, f]            tokens, features, rows
    EmbeddingGradient,        // tokens, dy                        dtable += …             tokens, features, rows
    AddRows,                  // x[n, s, f], table[s, f]           y                       n, s, f                                            adds row i of the table to token i
    SumOverSamples,           // x[n, s, f]                        y[s, f]                 n, s, f
    Rotary,                   // x[tokens, heads, d]               y                       b, s, heads, d, x stride, y stride, inverse   base   strides between tokens; halves are rotated (NeoX)
    Attention,                // q, k, v                           out, logSumExp[b,h,s]   b, s, heads, kvHeads, d, causal, q stride, kv stride, out stride     scale
    AttentionGradient,        // dout, q, k, v, out, logSumExp     dq, dk, dv              b, s, heads, kvHeads, d, causal, q stride, kv stride, out stride, dq stride, dkv stride    scale
    MaxPool,                  // x[n,c,h,w]                        y, indices (Int64)      n, c, h, w, kernel, stride, padding
    MaxPoolGradient,          // dy, indices                       dx                      likewise
    AveragePool,              // x[n,c,h,w]                        y[n,c,o,o]              n, c, h, w, o                                      adaptive
    AveragePoolGradient,      // dy                                dx                      likewise
    LogSoftmax,               // x[rows, n]                        y                       rows, n
    LogSoftmaxGradient,       // dy, y                             dx                      rows, n
    NllLoss,                  // logp[rows, n], labels (Int64)     loss[1] (fp32)          rows, n                                            mean over rows
    NllLossGradient,          // labels                            dlogp                   rows, n                           scale            −scale / rows at the label, else 0
    SquaredError,             // x, target                         loss[1]                 elements                                           Σ (x − target)²
    SumOfSquares,             // x                                 sum[1] (fp32) +=        elements
    // Optimizers: elementwise passes as torch.optim runs them, and fused.
    Lerp,                     // x                                 y                       elements                          weight           y += weight·(x − y)
    MultiplyAccumulate,       // a, b                              y                       elements                          alpha            y += alpha·a·b
    SquareRoot,               // x                                 y                       elements
    AddScalar,                // x                                 y                       elements                          value
    DivideAccumulate,         // a, b                              y                       elements                          alpha            y += alpha·a / b
    AdamFused,                // gradient                          p, m, v                 elements, step                    lr, beta1, beta2, epsilon, decay
    SgdFused,                 // gradient                          p, [momentum buffer]    elements, step                    lr, momentum
    Count,
};
std::string_view nameOf(KernelOp op);  ///< "matmul", "layer norm input gradient", …

enum class ActivationKind : std::int64_t { Relu, Gelu, GeluTanh, Silu, Tanh };

struct KernelCall {
    KernelOp op = KernelOp::Copy;
    DType dtype = DType::Fp32;
    std::array<const void*, 6> in{};
    std::array<void*, 4> out{};
    std::array<std::int64_t, 12> dims{};
    std::array<double, 6> scalars{};
};

}  // namespace ringside
