#include "kernels/cpu/openmp_threads.h"

#include <dlfcn.h>

namespace ringside {

void setOpenMpThreads(int threads) {
    // oneDNN brings its OpenMP runtime along. Asking for the symbol at run time keeps a second runtime (Clang's) out of the build.
    using SetThreads = void (*)(int);
    static const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (set != nullptr) set(threads);
}

}  // namespace ringside
