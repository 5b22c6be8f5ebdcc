#include "kernels/cpu/vector_loops.h"

namespace ringside {

const VectorLoops& vectorLoops() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        vectorLoopsAvx512() != nullptr)
        return *vectorLoopsAvx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && vectorLoopsAvx2() != nullptr) return *vectorLoopsAvx2();
#endif
    return *vectorLoopsBaseline();
}

}  // namespace ringside
