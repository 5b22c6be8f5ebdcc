// A file as PyTorch's profiler writes it, of any size, and the memory that reading it takes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ringside {

/// Operators with shapes, runtime calls, kernels with their launch figures and flows, in the proportions of a real training trace.
inline std::string writeProfilerFile(std::size_t megabytes) {
    const std::string path = std::filesystem::temp_directory_path() / fmt::format("ringside_bench_{}_{}.json", megabytes, getpid());
    std::ofstream file(path, std::ios::binary);
    file << "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100-SXM4-80GB\", \"totalGlobalMem\": 84990623744}],\n"
            "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 8},\n  \"baseTimeNanoseconds\": 1700000000000000000,\n  \"traceEvents\": [\n";
    std::string out;
    std::size_t written = 0;
    const char* const ops[] = {"aten::mm", "aten::add_", "aten::native_layer_norm", "aten::_scaled_dot_product_flash_attention", "autograd::engine::evaluate_function: MmBackward0"};
    const char* const kernels[] = {"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
                                   "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>)",
                                   "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)"};
    for (std::int64_t i = 0; written < megabytes * 1000000; ++i) {
        out.clear();
        const double ts = 3938643171923.091 + static_cast<double>(i) * 21.375;
        const auto event = [&](const std::string& text) { out += (written == 0 && out.empty() ? "  " : ",\n  ") + text; };
        event(fmt::format("{{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{}\", \"pid\": 4711, \"tid\": {},\n    \"ts\": {:.3f}, \"dur\": 18.250,\n    \"args\": {{\n      \"External id\": {},\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", "
                          "\"\"], \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\"], \"Input Strides\": [[1024, 1], [1, 1024], []], \"Input Dims\": [[16384, 1024], [1024, 4096], []], \"Ev Idx\": {}\n    }}\n  }}",
                          ops[i % 5], 4711 + i / 500 % 2, ts, i, i));
        event(fmt::format("{{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 4711, \"tid\": {},\n    \"ts\": {:.3f}, \"dur\": 6.125,\n    \"args\": {{\n      \"External id\": {}, \"cbid\": 211, \"correlation\": {}\n    }}\n  }}",
                          4711 + i / 500 % 2, ts + 4, i, i + 1));
        event(fmt::format("{{\n    \"ph\": \"s\", \"id\": {}, \"pid\": 4711, \"tid\": {}, \"ts\": {:.3f},\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }}", i + 1, 4711 + i / 500 % 2, ts + 4));
        event(fmt::format("{{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{}\", \"pid\": 0, \"tid\": 7,\n    \"ts\": {:.3f}, \"dur\": 20.500,\n    \"args\": {{\n      \"External id\": {},\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": {},\n"
                          "      \"registers per thread\": 32,\n      \"shared memory\": 0,\n      \"blocks per SM\": 4.740741,\n      \"warps per SM\": 18.962963,\n      \"grid\": [512, 1, 1],\n      \"block\": [128, 1, 1],\n      \"est. achieved occupancy %\": 30\n    }}\n  }}",
                          kernels[i % 3], ts + 40, i, i + 1));
        event(fmt::format("{{\n    \"ph\": \"f\", \"id\": {}, \"pid\": 0, \"tid\": 7, \"ts\": {:.3f},\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }}", i + 1, ts + 40));
        file << out;
        written += out.size();
    }
    file << "\n  ],\n  \"traceName\": \"bench\"\n}\n";
    return path;
}

/// The most memory that a process of its own needs for `work`, in bytes: what ran before in this one does not count.
template <class Work>
double peakOf(Work work) {
    int pipe[2];
    if (::pipe(pipe) != 0) return 0;
    const pid_t child = fork();
    if (child == 0) {
        work();
        // VmHWM is the most that was resident since fork; RSS that came with the fork is small, as the bench holds nothing yet.
        std::ifstream status("/proc/self/status");
        std::string line;
        long kilobytes = 0;
        while (std::getline(status, line))
            if (line.starts_with("VmHWM:")) kilobytes = std::strtol(line.c_str() + 6, nullptr, 10);
        [[maybe_unused]] const ssize_t n = write(pipe[1], &kilobytes, sizeof kilobytes);
        _exit(0);
    }
    close(pipe[1]);
    long kilobytes = 0;
    [[maybe_unused]] const ssize_t n = read(pipe[0], &kilobytes, sizeof kilobytes);
    close(pipe[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    return static_cast<double>(kilobytes) * 1024;
}

}  // namespace ringside
