#include "kernels/kernel_signature.h"

#include <array>
#include <string>

#include <fmt/format.h>

namespace ringside {

namespace {

constexpr std::string_view kConvolution = "n ci+ h+ w+ co+ kh+ kw+ stride+ padding";
constexpr std::string_view kPool = "n c h+ w+ kernel+ stride+ padding";

// In the order of KernelOp.
constexpr std::array<KernelSignature, static_cast<std::size_t>(KernelOp::Count)> kSignatures = {{
    {"matmul", "A B [bias]", "C", "batch m n k transA? transB?"},
    {"column sum", "x", "y", "rows n"},
    {"add bias", "x bias", "y", "rows c inner"},
    {"channel sum", "x", "y", "rows c inner"},
    {"convolution", "x w", "y", kConvolution},
    {"convolution input gradient", "dy w", "dx", kConvolution},
    {"convolution weight gradient", "x dy", "dw", kConvolution},
    {"layer norm", "x weight [bias]", "y statistics", "rows features+"},
    {"layer norm input gradient", "dy x weight statistics", "dx", "rows features+"},
    {"layer norm weight gradient", "dy x statistics", "dweight [dbias]", "rows features+"},
    {"RMS norm", "x weight", "y statistics", "rows features+"},
    {"RMS norm input gradient", "dy x weight statistics", "dx", "rows features+"},
    {"RMS norm weight gradient", "dy x statistics", "dweight", "rows features+"},
    {"batch norm", "x weight bias", "y statistics [runningMean] [runningVariance]", "n c hw"},
    {"batch norm gradient", "dy x weight statistics", "dx dweight dbias", "n c hw"},
    {"softmax", "x", "y", "rows n"},
    {"softmax gradient", "dy y", "dx", "rows n"},
    {"activation", "x", "y", "elements kind?"},
    {"activation gradient", "dy saved", "dx", "elements kind?"},
    {"add", "a b", "y", "elements"},
    {"multiply", "a b", "y", "elements"},
    {"axpy", "x", "y", "elements"},
    {"scale", "x", "y", "elements"},
    {"fill", "", "y", "elements"},
    {"copy", "x", "y", "elements"},
    {"cast", "x", "y", "elements from?"},
    {"copy strided", "x", "y", "rows columns xStride yStride"},
    {"transpose", "x", "y", "b m n inner"},
    {"mask", "x", "y", "batch q k"},
    {"repeat heads", "x", "y", "b s kv+ heads+ d xStride"},
    {"sum repeated heads", "y", "x", "b s kv+ heads+ d xStride"},
    {"dropout", "x", "y mask", "elements seed?"},
    {"dropout gradient", "dy mask", "dx", "elements"},
    {"embedding", "tokens table", "y", "tokens features rows"},
    {"embedding gradient", "tokens dy", "dtable", "tokens features rows"},
    {"add rows", "x table", "y", "n s f"},
    {"sum over samples", "x", "y", "n s f"},
    {"rotary", "x", "y", "b s heads d xStride yStride inverse?"},
    {"attention", "q k v", "out logSumExp", "b s heads+ kvHeads+ d+ causal? qStride kvStride outStride"},
    {"attention gradient", "dout q k v out logSumExp", "dq dk dv", "b s heads+ kvHeads+ d+ causal? qStride kvStride outStride dqStride dkvStride"},
    {"max pool", "x", "y indices", kPool},
    {"max pool gradient", "dy indices", "dx", kPool},
    {"average pool", "x", "y", "n c h+ w+ o+"},
    {"average pool gradient", "dy", "dx", "n c h+ w+ o+"},
    {"log softmax", "x", "y", "rows n"},
    {"log softmax gradient", "dy y", "dx", "rows n"},
    {"nll loss", "logp labels", "loss", "rows n"},
    {"nll loss gradient", "labels", "dlogp", "rows n"},
    {"squared error", "x target", "loss", "elements"},
    {"sum of squares", "x", "sum", "elements"},
    {"lerp", "x", "y", "elements"},
    {"multiply accumulate", "a b", "y", "elements"},
    {"square root", "x", "y", "elements"},
    {"add scalar", "x", "y", "elements"},
    {"divide accumulate", "a b", "y", "elements"},
    {"Adam", "gradient", "p m v", "elements step+"},
    {"SGD", "gradient", "p [momentumBuffer]", "elements step+"},
}};

/// Cuts the first word off the list; empty at its end.
std::string_view nextWord(std::string_view& list) {
    const std::size_t end = list.find(' ');
    const std::string_view word = list.substr(0, end);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
    return word;
}

template <class Pointers>
Result<void> checkPresent(std::string_view op, std::string_view list, const Pointers& operands) {
    for (std::size_t i = 0; !list.empty(); ++i) {
        const std::string_view word = nextWord(list);
        if (word.front() != '[' && operands[i] == nullptr) return badInput(std::string(op), fmt::format("operand {} is missing", word));
    }
    return {};
}

}  // namespace

const KernelSignature& signatureOf(KernelOp op) { return kSignatures.at(static_cast<std::size_t>(op)); }

Result<void> checkOperands(const KernelCall& call) {
    if (call.op >= KernelOp::Count) return badInput("kernel", fmt::format("op {} is unknown; there are {}", static_cast<unsigned>(call.op), kSignatures.size()));
    const KernelSignature& signature = signatureOf(call.op);
    bool empty = false;
    std::string_view dims = signature.dims;
    for (std::size_t i = 0; !dims.empty(); ++i) {
        std::string_view word = nextWord(dims);
        if (word.back() == '?') continue;
        const std::int64_t least = word.back() == '+' ? 1 : 0;
        if (least == 1) word.remove_suffix(1);
        if (call.dims[i] < least) return badInput(std::string(signature.name), fmt::format("{} is {}; expected at least {}", word, call.dims[i], least));
        empty = empty || call.dims[i] == 0;
    }
    if (empty) return {};
    TRY_VOID(checkPresent(signature.name, signature.in, call.in));
    return checkPresent(signature.name, signature.out, call.out);
}

}  // namespace ringside
