#include "cli/output/wrap.h"

#include <algorithm>

namespace ringside {

std::size_t columnsOf(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string wrapped(const std::string& words, std::size_t indent) {
    std::string text;
    std::size_t width = indent, begin = 0;
    while (begin < words.size()) {
        const std::size_t end = std::min(words.find(' ', begin), words.size());
        const std::string word = words.substr(begin, end - begin);
        if (width > indent && width + 1 + columnsOf(word) > kColumns) {
            text.append("\n").append(indent, ' ');
            width = indent;
        } else if (!text.empty()) {
            text += " ";
            ++width;
        }
        text += word;
        width += columnsOf(word);
        begin = end + 1;
    }
    return text;
}

}  // namespace ringside
