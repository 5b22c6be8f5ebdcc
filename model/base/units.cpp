#include "model/base/units.h"

#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace ringside {
namespace {

/// Three significant digits without an exponent.
std::string threeDigits(double x) {
    const double a = std::fabs(x);
    if (a >= 99.95) return fmt::format("{:.0f}", x);
    if (a >= 9.995) return fmt::format("{:.1f}", x);
    return fmt::format("{:.2f}", x);
}

}  // namespace

std::string formatSeconds(double s) {
    const double a = std::fabs(s);
    if (a == 0) return "0 s";
    if (a < 0.9995e-6) return threeDigits(s * 1e9) + " ns";
    if (a < 0.9995e-3) return threeDigits(s * 1e6) + " µs";
    if (a < 0.9995) return threeDigits(s * 1e3) + " ms";
    if (a < 600) return threeDigits(s) + " s";
    if (a < 36000) return threeDigits(s / 60) + " min";
    if (a < 864000) return threeDigits(s / 3600) + " h";
    return threeDigits(s / 86400) + " days";
}

std::string formatTime(Time t) { return formatSeconds(t.seconds()); }

std::string formatBytes(Bytes bytes) {
    const double b = static_cast<double>(bytes);
    const double a = std::fabs(b);
    if (a < 1024) return fmt::format("{} B", bytes);
    if (a < 1024.0 * 1024) return threeDigits(b / 1024) + " KiB";
    if (a < 1024.0 * 1024 * 1024) return threeDigits(b / kMiB) + " MiB";
    if (a < 1024.0 * 1024 * 1024 * 1024) return threeDigits(b / static_cast<double>(kGiB)) + " GiB";
    return threeDigits(b / static_cast<double>(kGiB) / 1024) + " TiB";
}

std::string formatCount(std::int64_t n) {
    std::string digits = std::to_string(n < 0 ? -n : n);
    for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<size_t>(i), 1, ',');
    if (n < 0) digits.insert(0, 1, '-');
    return digits;
}

std::string formatShortCount(double n) {
    const double a = std::fabs(n);
    if (a < 9995) return a == std::floor(a) ? fmt::format("{:.0f}", n) : threeDigits(n);
    if (a < 0.9995e6) return threeDigits(n / 1e3) + " k";
    if (a < 0.9995e9) return threeDigits(n / 1e6) + " M";
    if (a < 0.9995e12) return threeDigits(n / 1e9) + " B";
    return threeDigits(n / 1e12) + " T";
}

Bytes parseSize(const std::string& text) {
    double value = 0;
    const char* begin = text.data();
    const char* end = begin + text.size();
    const auto [rest, status] = std::from_chars(begin, end, value);
    if (status != std::errc() || value < 0) return -1;
    double factor = 1;
    if (rest != end) {
        if (end - rest > 1 && std::string(rest + 1, end) != "iB" && std::string(rest + 1, end) != "B") return -1;
        switch (std::toupper(static_cast<unsigned char>(*rest))) {
            case 'K': factor = static_cast<double>(kKiB); break;
            case 'M': factor = static_cast<double>(kMiB); break;
            case 'G': factor = static_cast<double>(kGiB); break;
            case 'T': factor = static_cast<double>(kGiB) * 1024; break;
            case 'B': factor = 1; break;
            default: return -1;
        }
    }
    const double bytes = value * factor;
    return bytes < 9.0e18 ? static_cast<Bytes>(std::llround(bytes)) : -1;
}

}  // namespace ringside
