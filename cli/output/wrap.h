// Text in lines: what every answer in words shares.
#pragma once

#include <cstddef>
#include <string>

namespace ringside {

constexpr std::size_t kColumns = 110;  ///< no line of an answer is longer

/// Columns of a UTF-8 text on a terminal: continuation bytes take none.
std::size_t columnsOf(const std::string& text);
/// Words broken into lines of at most kColumns, the later ones indented; the first begins at column `indent` already.
std::string wrapped(const std::string& words, std::size_t indent = 0);

}  // namespace ringside
