#include "model/base/heap.h"

#include <cstdlib>  // defines __GLIBC__ where there is one

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace ringside {

void keepFreedMemory() {
#if defined(__GLIBC__)
    constexpr int kKeep = 64 << 20;
    mallopt(M_TRIM_THRESHOLD, kKeep);
    mallopt(M_MMAP_THRESHOLD, kKeep);
#endif
}

}  // namespace ringside
