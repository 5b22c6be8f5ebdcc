#include "traces/import/event_values.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace ringside {

std::optional<std::int64_t> wholeNumber(const JsonToken& token) {
    if (token.kind != JsonToken::Kind::Scalar && token.kind != JsonToken::Kind::String) return std::nullopt;
    std::int64_t value = 0;
    const char* const end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(token.text.data(), end, value);
    if (error == std::errc() && stop == end) return value;
    const auto real = realNumber(token);
    if (!real || std::fabs(*real) > 9.2e18) return std::nullopt;
    return static_cast<std::int64_t>(*real);
}

std::optional<double> realNumber(const JsonToken& token) {
    if (token.kind != JsonToken::Kind::Scalar && token.kind != JsonToken::Kind::String) return std::nullopt;
    double value = 0;
    const char* const end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(token.text.data(), end, value);
    if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
    return value;
}

Time ExactMicroseconds::since(std::int64_t base) const {
    std::int64_t us = 0, ps = 0;
    if (__builtin_sub_overflow(whole, base, &us)) us = whole > base ? Time::max().picoseconds() / 1000000 : -(Time::max().picoseconds() / 1000000);
    if (__builtin_mul_overflow(us, std::int64_t{1000000}, &ps) || std::llabs(ps) > Time::max().picoseconds())
        return us > 0 ? Time::max() : Time::fromPicoseconds(-Time::max().picoseconds());
    return Time::fromPicoseconds(ps + picoseconds);
}

std::optional<ExactMicroseconds> exactMicroseconds(const JsonToken& token) {
    if (token.kind != JsonToken::Kind::Scalar && token.kind != JsonToken::Kind::String) return std::nullopt;
    const char* p = token.text.data();
    const char* const end = p + token.text.size();
    const bool negative = p < end && *p == '-';
    if (negative) ++p;
    std::int64_t whole = 0, picoseconds = 0;
    const char* const digits = p;
    while (p < end && *p >= '0' && *p <= '9' && p - digits < 18) whole = whole * 10 + (*p++ - '0');
    const bool any = p > digits;
    bool plain = any;
    if (p < end && *p == '.') {
        const char* const fraction = ++p;
        std::int64_t unit = 100000;
        while (p < end && *p >= '0' && *p <= '9') {
            const std::int64_t digit = *p - '0';
            if (unit > 0) picoseconds += digit * unit;
            else if (p - fraction == 6 && digit >= 5) ++picoseconds;
            unit /= 10;
            ++p;
        }
    }
    plain = plain && p == end;
    if (!plain) {
        const auto real = realNumber(token);
        if (!real || std::fabs(*real) > 9e18) return std::nullopt;
        const double below = std::floor(*real);
        return ExactMicroseconds{static_cast<std::int64_t>(below), std::min<std::int64_t>(std::llround((*real - below) * 1e6), 999999)};
    }
    if (negative) {
        whole = -whole;
        picoseconds = -picoseconds;
    }
    if (picoseconds >= 1000000 || picoseconds < 0) {
        const std::int64_t carry = picoseconds < 0 ? -1 : 1;
        whole += carry;
        picoseconds -= carry * 1000000;
    }
    return ExactMicroseconds{whole, picoseconds};
}

std::vector<std::int64_t> rankList(const JsonToken& token) {
    std::string_view text = token.text;
    if ((token.kind != JsonToken::Kind::String && token.kind != JsonToken::Kind::Array) || text.find("...") != std::string_view::npos) return {};
    std::vector<std::int64_t> ranks;
    for (std::size_t i = 0; i < text.size();) {
        std::int64_t value = 0;
        const auto [stop, error] = std::from_chars(text.data() + i, text.data() + text.size(), value);
        if (error == std::errc()) {
            ranks.push_back(value);
            i = static_cast<std::size_t>(stop - text.data());
        } else {
            ++i;
        }
    }
    return ranks;
}

std::string textOf(const JsonToken& token) {
    if (token.kind == JsonToken::Kind::String && token.escaped) return unescape(token.text);
    return std::string(token.text);
}

}  // namespace ringside
