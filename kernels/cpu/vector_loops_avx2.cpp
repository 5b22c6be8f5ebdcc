// The loops with AVX2 and FMA. Only plain arithmetic may be compiled here: an inline function of a library
// that the linker takes from this file would run on every processor.
#include "kernels/cpu/vector_table.h"

namespace ringside {

const VectorLoops* vectorLoopsAvx2() {
#if defined(__AVX2__) && defined(__FMA__)
    static const VectorLoops loops = makeVectorLoops("AVX2");
    return &loops;
#else
    return nullptr;
#endif
}

}  // namespace ringside
