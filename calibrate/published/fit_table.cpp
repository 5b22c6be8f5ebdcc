#include "calibrate/published/fit_table.h"

#include <array>

namespace ringside {
namespace {

using enum FitScope;
using enum FitRows;

constexpr std::array kTable{
    FitParameter{"gemm_efficiency.bf16", Device, Kernels, 0.3, 1.1, "best-shape share of the dense 16-bit peak", "gemm_efficiency.fp16"},
    FitParameter{"gemm_efficiency.tf32", Device, Kernels, 0.3, 1.1, "the same of tf32"},
    FitParameter{"gemm_efficiency.fp8", Generation, Kernels, 0.3, 1.1, "the same of fp8"},
    FitParameter{"attention_forward_efficiency", Generation, Kernels, 0.1, 1.0, "share of the peak that fused attention reaches forward"},
    FitParameter{"attention_backward_efficiency", Generation, Kernels, 0.1, 1.0, "and backward"},
    FitParameter{"sustained_clock", Generation, Training, 0.2, 1.0, "what the power limit leaves of the best-shape rate where arithmetic never rests"},
    FitParameter{"device_variation", All, Training, 0.002, 0.1, "how much devices of one kind differ in speed; a step waits for the slowest"},
    FitParameter{"memory_efficiency", Device, Training, 0.4, 1.0, "share of the memory bandwidth that streaming kernels reach"},
    FitParameter{"convolution_efficiency", All, Training, 0.2, 1.2, "of a convolution, relative to a matmul of its shape"},
    FitParameter{"transposed_share", All, Training, 0.1, 1, "part of a convolution's images that its kernel does not take as they lie"},
    FitParameter{"elements_per_clock", All, Training, 0.5, 20, "elements that one multiprocessor does in kernels which go element by element"},
    FitParameter{"flash3_attention", Generation, Training, 0.8, 2.5, "attention written for Hopper, relative to FlashAttention-2"},
    FitParameter{"flash4_attention", Generation, Training, 0.8, 2.0, "attention written for Blackwell, relative to cuDNN's"},
    FitParameter{"gather_efficiency", All, Training, 0.3, 1.0, "of kernels that gather or scatter rows, relative to streaming ones"},
    FitParameter{"fp8_attention", All, Training, 0.8, 2.0, "attention in eight bits, relative to sixteen"},
    FitParameter{"kernel_fixed_us", All, Training, 0.5, 10, "start-up and drain of a kernel on the device"},
    FitParameter{"huggingface_launch", All, Training, 0.5, 10, "a launch by Hugging Face's modules, over launch_us"},
    FitParameter{"transformer_engine_launch", All, Training, 1, 20, "a launch by Transformer Engine's modules, over launch_us"},
    FitParameter{"flash1_attention", All, Training, 0.2, 1, "FlashAttention's first generation, relative to the second"},
    FitParameter{"collective_launch_us", All, Training, 2, 300, "host time to issue one collective"},
    FitParameter{"host_step_us", All, Training, 10, 50'000, "host time per step outside launches: loop, loader hand-over, logging"},
    FitParameter{"host_memory_gb_per_s", All, Training, 30, 1000, "memory bandwidth of a node's host, which offloaded optimizers use"},
    FitParameter{"interference", All, Training, 0.005, 0.6, "share of the memory bandwidth that a collective takes from kernels beside it"},
    FitParameter{"collective_network_efficiency", All, Training, 0.2, 1.5, "rate between nodes over the tuner's figure"},
    FitParameter{"context_bytes", Generation, Memory, 1e8, 4e9, "device memory of the driver's context and the libraries"},
    FitParameter{"nccl_bytes", All, Memory, 1e8, 6e9, "device memory of communicators"},
};

}  // namespace

std::string_view nameOf(FitScope scope) { return scope == All ? "all devices" : scope == Generation ? "a generation" : "a device"; }
std::string_view nameOf(FitRows rows) { return rows == Kernels ? "kernel tables" : rows == Training ? "training runs" : "memory peaks"; }
std::span<const FitParameter> fitParameters() { return kTable; }

}  // namespace ringside
