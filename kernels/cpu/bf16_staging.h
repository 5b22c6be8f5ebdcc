// bf16 operands as fp32 copies in scratch memory, for kernels whose arithmetic is fp32.
#pragma once

#include <cstdint>

#include "kernels/cpu/kernel_thread.h"

namespace ringside::cpu {

inline const float* stagedInput(KernelThread& thread, int slot, const void* bf16, std::int64_t n) {
    float* staged = thread.scratch().get<float>(slot, n);
    const auto* source = static_cast<const std::uint16_t*>(bf16);
    thread.team.parallelFor(n, 16384, [&](const TeamShare& s) { thread.loops.fromBf16(source + s.begin, staged + s.begin, s.end - s.begin); });
    return staged;
}

inline void storeStaged(KernelThread& thread, const float* staged, void* bf16, std::int64_t n) {
    auto* target = static_cast<std::uint16_t*>(bf16);
    thread.team.parallelFor(n, 16384, [&](const TeamShare& s) { thread.loops.toBf16(staged + s.begin, target + s.begin, s.end - s.begin); });
}

}  // namespace ringside::cpu
