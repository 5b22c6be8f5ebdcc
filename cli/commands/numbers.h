// Numbers on the command line, checked.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "model/base/result.h"

namespace ringside {

/// Fails (usage) naming the flag where the text is no whole number in the range.
inline Result<std::int64_t> wholeNumber(const std::string& flag, const std::string& text, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
        return failure(ErrorCode::Usage, flag, fmt::format("expected a whole number from {} to {}, found '{}'", least, most, text));
    return value;
}

}  // namespace ringside
