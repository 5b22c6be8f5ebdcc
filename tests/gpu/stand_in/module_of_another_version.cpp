// A module whose interface is one version ahead of the program's.
#include "kernels/cuda/module_abi.h"

extern "C" const RingsideCudaModule* ringsideCudaModule() {
    static const RingsideCudaModule table = [] {
        RingsideCudaModule made{};
        made.version = RINGSIDE_CUDA_ABI_VERSION + 1;
        made.size = sizeof made;
        return made;
    }();
    return &table;
}
