// CHECK: an invariant of our own. Input can never reach a failing CHECK; if one fails, the program has a bug.
#pragma once

namespace ringside {
/// Prints the place and exits with code 70 (internal error).
[[noreturn]] void checkFailed(const char* condition, const char* file, int line);
}  // namespace ringside

#define CHECK(condition) \
    (static_cast<bool>(condition) ? static_cast<void>(0) : ringside::checkFailed(#condition, __FILE__, __LINE__))
