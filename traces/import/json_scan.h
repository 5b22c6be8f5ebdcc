// JsonScan: the small, tolerant JSON scanner of the trace readers. It steps over values without building them, takes any
// byte in a string (control characters, broken UTF-8) and tells "the text is broken here" from "the text goes on elsewhere".
//
// Why not a library: docs/decisions/21-traces-are-scanned-by-hand.md.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ringside {

/// A value as it stands in the text: of a string what is between the quotes, escapes included.
struct JsonToken {
    enum class Kind : std::uint8_t { None, String, Scalar, Object, Array };
    Kind kind = Kind::None;
    bool escaped = false;  ///< a string with a backslash in it: unescape() it before comparing
    std::string_view text;
};

/// The text of a string token. Broken escapes stay as they are; lone surrogates become U+FFFD.
std::string unescape(std::string_view text);

/// Walks over [position(), end). REQUIRES: kPadding bytes after `end` may be read (their value does not matter).
class JsonScan {
public:
    static constexpr std::size_t kPadding = 64;
    enum class State : std::uint8_t { Fine, Broken, Incomplete };  ///< Incomplete: the end came first

    JsonScan(const char* begin, const char* end) : at_(begin), end_(end) {}

    const char* position() const { return at_; }
    State state() const { return state_; }
    bool fine() const { return state_ == State::Fine; }

    /// The next byte that is no white space, without taking it; 0 with Incomplete at the end.
    char peek() {
        while (at_ < end_ && static_cast<unsigned char>(*at_) <= ' ') ++at_;
        if (at_ < end_) return *at_;
        state_ = State::Incomplete;
        return 0;
    }
    /// Takes `wanted` or is Broken.
    bool take(char wanted) {
        if (peek() == wanted && fine()) {
            ++at_;
            return true;
        }
        if (fine()) state_ = State::Broken;
        return false;
    }
    /// Begins an object; false when it is empty or broken.
    bool openObject() { return take('{') && !closes('}'); }
    bool openArray() { return take('[') && !closes(']'); }
    /// After a member: true if another follows. A comma before the bracket is forgiven.
    bool nextMember() { return next('}'); }
    bool nextElement() { return next(']'); }

    /// A member's name and its colon.
    JsonToken key() {
        JsonToken token;
        if (peek() != '"') {
            if (fine()) state_ = State::Broken;
            return token;
        }
        token = string();
        if (fine()) take(':');
        return token;
    }

    /// Any value, stepped over.
    JsonToken value() {
        const char c = peek();
        if (!fine()) return {};
        if (c == '"') return string();
        if (c == '{' || c == '[') return nested(c == '{');
        return scalar();
    }

private:
    bool closes(char bracket) {
        if (peek() != bracket || !fine()) return !fine();
        ++at_;
        return true;
    }
    bool next(char bracket) {
        const char c = peek();
        if (!fine()) return false;
        if (c == ',') {
            ++at_;
            if (peek() != bracket || !fine()) return fine();
            ++at_;
            return false;
        }
        if (c == bracket) ++at_;
        else state_ = State::Broken;
        return false;
    }

    JsonToken string() {
        const char* const begin = ++at_;
        bool escaped = false;
        const char* p = begin;
        while (true) {
            p = findQuoteOrBackslash(p);
            if (p >= end_) {
                state_ = State::Incomplete;
                at_ = end_;
                return {};
            }
            if (*p == '"') break;
            escaped = true;
            p += 2;
        }
        at_ = p + 1;
        return {JsonToken::Kind::String, escaped, {begin, static_cast<std::size_t>(p - begin)}};
    }

    JsonToken scalar() {
        const char* const begin = at_;
        while (at_ < end_ && isScalar(*at_)) ++at_;
        if (at_ == end_) {
            state_ = State::Incomplete;
            return {};
        }
        if (at_ == begin) {
            state_ = State::Broken;
            return {};
        }
        return {JsonToken::Kind::Scalar, false, {begin, static_cast<std::size_t>(at_ - begin)}};
    }

    /// Brackets must close in order: one that is missing is found at the next of the other kind, not at the end of the file.
    JsonToken nested(bool object) {
        const char* const begin = at_;
        std::uint64_t kinds = object ? 1 : 0;  // of the open brackets, the innermost in the lowest bit
        int depth = 1;
        const char* p = at_ + 1;
        while (true) {
            p = findQuoteOrBracket(p);
            if (p >= end_) {
                state_ = State::Incomplete;
                at_ = end_;
                return {};
            }
            switch (*p) {
                case '"':
                    at_ = p;
                    string();
                    if (!fine()) return {};
                    p = at_;
                    continue;
                case '{':
                case '[':
                    kinds = kinds << 1 | (*p == '{' ? 1U : 0U);
                    ++depth;
                    break;
                default:
                    if (depth <= 64 && (kinds & 1) != (*p == '}' ? 1U : 0U)) {
                        at_ = p;
                        state_ = State::Broken;
                        return {};
                    }
                    kinds >>= 1;
                    if (--depth == 0) {
                        at_ = p + 1;
                        return {object ? JsonToken::Kind::Object : JsonToken::Kind::Array, false, {begin, static_cast<std::size_t>(at_ - begin)}};
                    }
            }
            ++p;
        }
    }

    static bool isScalar(char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

#if defined(__SSE2__)
    const char* findQuoteOrBackslash(const char* p) const {
        const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
        for (; p < end_; p += 16) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
            const int hits = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
            if (hits != 0) return p + std::countr_zero(static_cast<unsigned>(hits));
        }
        return end_;
    }
    const char* findQuoteOrBracket(const char* p) const {
        // '[' and '{', ']' and '}' differ in one bit only.
        const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);
        for (; p < end_; p += 16) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), folded = _mm_or_si128(bytes, bit);
            const __m128i brackets = _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close));
            const int hits = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), brackets));
            if (hits != 0) return p + std::countr_zero(static_cast<unsigned>(hits));
        }
        return end_;
    }
#else
    const char* findQuoteOrBackslash(const char* p) const {
        while (p < end_ && *p != '"' && *p != '\\') ++p;
        return p;
    }
    const char* findQuoteOrBracket(const char* p) const {
        while (p < end_ && *p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}') ++p;
        return p;
    }
#endif

    const char* at_;
    const char* end_;
    State state_ = State::Fine;
};

}  // namespace ringside
