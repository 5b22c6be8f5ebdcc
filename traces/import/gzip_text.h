// Whole files as text, gzip-compressed or not.
#pragma once

#include <string>

#include "model/base/result.h"

namespace ringside {

/// Told by content, not by name. Fails (bad input) where the file cannot be opened or its compressed data is broken.
Result<std::string> readMaybeGzip(const std::string& path);

}  // namespace ringside
