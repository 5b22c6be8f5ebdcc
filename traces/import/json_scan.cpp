#include "traces/import/json_scan.h"

namespace ringside {
namespace {

int hexDigit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// The four digits behind "\u", or −1.
int codeUnit(std::string_view text, std::size_t at) {
    if (at + 4 > text.size()) return -1;
    int value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const int digit = hexDigit(text[at + i]);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

void appendUtf8(std::string& out, std::uint32_t code) {
    const auto byte = [&](std::uint32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
    if (code < 0x80) byte(code);
    else if (code < 0x800) {
        byte(0xc0 | code >> 6);
        byte(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        byte(0xe0 | code >> 12);
        byte(0x80 | (code >> 6 & 0x3f));
        byte(0x80 | (code & 0x3f));
    } else {
        byte(0xf0 | code >> 18);
        byte(0x80 | (code >> 12 & 0x3f));
        byte(0x80 | (code >> 6 & 0x3f));
        byte(0x80 | (code & 0x3f));
    }
}

}  // namespace

std::string unescape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            out += text[i];
            continue;
        }
        switch (text[++i]) {
            case 'n': out += '\n'; break;
            case 't': out += '\t'; break;
            case 'r': out += '\r'; break;
            case 'b': out += '\b'; break;
            case 'f': out += '\f'; break;
            case '"': case '\\': case '/': out += text[i]; break;
            case 'u': {
                const int high = codeUnit(text, i + 1);
                if (high < 0) {
                    out += "\\u";
                    break;
                }
                i += 4;
                auto code = static_cast<std::uint32_t>(high);
                if (code >= 0xd800 && code < 0xe000) {
                    const int low = text.substr(i + 1, 2) == "\\u" ? codeUnit(text, i + 3) : -1;
                    if (code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (static_cast<std::uint32_t>(low) - 0xdc00);
                        i += 6;
                    } else {
                        code = 0xfffd;
                    }
                }
                appendUtf8(out, code);
                break;
            }
            default:  // no escape of JSON's: a Windows path, mostly
                out += '\\';
                out += text[i];
        }
    }
    return out;
}

}  // namespace ringside
