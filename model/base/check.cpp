#include "model/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ringside {

void checkFailed(const char* condition, const char* file, int line) {
    std::fprintf(stderr,
                 "ringside: internal error: %s does not hold at %s:%d\n"
                 "This is a bug in Ringside; please report it with the command you ran.\n",
                 condition, file, line);
    std::fflush(nullptr);
    std::_Exit(70);
}

}  // namespace ringside
