// The loops for any processor. Only plain arithmetic may be compiled here: an inline function of a library
// that the linker takes from this file would run on every processor.
#include "kernels/cpu/vector_table.h"

namespace ringside {

const VectorLoops* vectorLoopsBaseline() {
    static const VectorLoops loops = makeVectorLoops("baseline");
    return &loops;
}

}  // namespace ringside
