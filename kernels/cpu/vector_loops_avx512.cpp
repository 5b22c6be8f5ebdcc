// The loops with AVX-512. Only plain arithmetic may be compiled here: an inline function of a library
// that the linker takes from this file would run on every processor.
#include "kernels/cpu/vector_table.h"

namespace ringside {

const VectorLoops* vectorLoopsAvx512() {
#if defined(__AVX512F__) && defined(__AVX512BW__)
    static const VectorLoops loops = makeVectorLoops("AVX-512");
    return &loops;
#else
    return nullptr;
#endif
}

}  // namespace ringside
