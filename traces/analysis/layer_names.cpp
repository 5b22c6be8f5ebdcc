#include "traces/analysis/layer_names.h"

namespace ringside {

std::string withoutNumbers(std::string_view name) {
    const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0; };
    std::string out;
    for (std::size_t i = 0; i < name.size();) {
        if (!isDigit(name[i]) || (i > 0 && (isLetter(name[i - 1]) || isDigit(name[i - 1])))) {
            out += name[i++];
            continue;
        }
        std::size_t end = i;
        while (end < name.size() && isDigit(name[end])) ++end;
        if (end < name.size() && isLetter(name[end])) out += name.substr(i, end - i);
        else out += '#';
        i = end;
    }
    return out;
}

}  // namespace ringside
