// Units: simulated time as integer picoseconds, byte counts, and how both are written for people.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>

namespace ringside {

/// A count of bytes. Signed, so that differences are safe.
using Bytes = std::int64_t;

constexpr Bytes kKiB = 1024;
constexpr Bytes kMiB = 1024 * kKiB;
constexpr Bytes kGiB = 1024 * kMiB;

/// A point in, or a length of, simulated time: integer picoseconds in 64 bits, so about ±106 days.
/// Integer time makes a run a pure function of its input on every machine.
class Time {
public:
    constexpr Time() = default;

    static constexpr Time fromPicoseconds(std::int64_t ps) { return Time(ps); }
    static constexpr Time fromNanoseconds(std::int64_t ns) { return Time(ns * 1000); }
    /// Rounds to the nearest picosecond; saturates at max() (about 106 days), so that an absurd cost stays an absurd
    /// time instead of becoming a negative one. REQUIRES: seconds is not NaN.
    static Time fromSeconds(double seconds) {
        const double ps = seconds * 1e12;
        if (ps >= 4.0e18) return max();
        if (ps <= -4.0e18) return Time(-max().ps_);
        return Time(std::llround(ps));
    }
    static Time fromMicroseconds(double us) { return fromSeconds(us * 1e-6); }
    /// Far enough to be never, small enough that adding two of them does not overflow.
    static constexpr Time max() { return Time(std::numeric_limits<std::int64_t>::max() / 2); }

    constexpr std::int64_t picoseconds() const { return ps_; }
    constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }
    constexpr double microseconds() const { return static_cast<double>(ps_) * 1e-6; }

    constexpr Time operator+(Time other) const { return Time(ps_ + other.ps_); }
    constexpr Time operator-(Time other) const { return Time(ps_ - other.ps_); }
    constexpr Time operator*(std::int64_t n) const { return Time(ps_ * n); }
    constexpr Time& operator+=(Time other) { ps_ += other.ps_; return *this; }
    constexpr Time& operator-=(Time other) { ps_ -= other.ps_; return *this; }
    constexpr auto operator<=>(const Time&) const = default;

private:
    constexpr explicit Time(std::int64_t ps) : ps_(ps) {}
    std::int64_t ps_ = 0;
};

/// "412 ns", "36.2 µs", "1.27 ms", "3.41 s": three significant digits.
std::string formatTime(Time t);
std::string formatSeconds(double seconds);
/// "512 B", "4.00 KiB", "23.4 GiB".
std::string formatBytes(Bytes bytes);
/// "1,234,567".
std::string formatCount(std::int64_t n);
/// "1.56 B", "124 M", "8.03 B": short scale, three significant digits.
std::string formatShortCount(double n);

/// Parses "25M", "1G", "64K", "4096" (powers of 1024, as nccl-tests reads sizes). Negative on failure.
Bytes parseSize(const std::string& text);

}  // namespace ringside
