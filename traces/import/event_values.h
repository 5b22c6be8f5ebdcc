// Values of trace events: whole numbers, times and ranks as the writers of this world put them (as numbers, strings, lists in strings).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"
#include "traces/import/json_scan.h"

namespace ringside {

/// A whole number, also in quotes; a fraction is cut off. Empty if it is none.
std::optional<std::int64_t> wholeNumber(const JsonToken& token);
/// Any finite number, also in quotes.
std::optional<double> realNumber(const JsonToken& token);

/// Microseconds as written, exactly: whole ones, and picoseconds below. Absolute times (1.7e15 µs) have no room for their
/// nanoseconds in a double, so they are never made one.
struct ExactMicroseconds {
    std::int64_t whole = 0;
    std::int64_t picoseconds = 0;  ///< 0 … 999,999

    /// Since `base` whole microseconds. Saturates at ±Time::max().
    Time since(std::int64_t base) const;
};
/// Digits below a picosecond are rounded off. Empty if it is no number. An exponent goes through a double.
std::optional<ExactMicroseconds> exactMicroseconds(const JsonToken& token);

/// "[0, 1, 2]" as a list or as a string that holds one; "[0, 1, ..., 7]" gives nothing, as the middle is missing.
std::vector<std::int64_t> rankList(const JsonToken& token);

/// The token's text, unescaped if it is a string.
std::string textOf(const JsonToken& token);

/// Calls visit(key, token) for each member. Stops at what is broken. REQUIRES: `object` is the text of an object, and bytes
/// up to JsonScan::kPadding behind it can be read.
template <class Visit>
void forEachMember(std::string_view object, Visit visit) {
    JsonScan scan(object.data(), object.data() + object.size());
    if (!scan.openObject()) return;
    do {
        const JsonToken key = scan.key();
        if (!scan.fine()) return;
        const JsonToken value = scan.value();
        if (!scan.fine()) return;
        visit(key.text, value);
    } while (scan.nextMember());
}

}  // namespace ringside
