// Files that are written whole or not at all: beside the target, then renamed over it.
#pragma once

#include <string>
#include <string_view>

#include "model/base/result.h"

namespace ringside {

/// Replaces `path` by `text`. On failure the old file stays as it was and nothing is left beside it; the error (code
/// RuntimeFailure) names the path and the system's reason.
Result<void> atomicWriteFile(const std::string& path, std::string_view text);

}  // namespace ringside
