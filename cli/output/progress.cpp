#include "cli/output/progress.h"

#include <cstdio>

#include <unistd.h>

#include <fmt/format.h>

#include "model/base/units.h"

namespace ringside {
namespace {

std::string duration(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds + 0.5);
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
    return fmt::format("{} h {} min", formatCount(whole / 3600), whole % 3600 / 60);
}

/// "███░░ 42 %  1,234 of 2,900 rows  812/s  2 min 3 s left".
std::string progressLine(const std::string& what, std::size_t first, std::size_t done, std::size_t total, double seconds, int barWidth) {
    std::string text;
    const double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
    for (int i = 0; i < barWidth; ++i) text += i < static_cast<int>(share * barWidth + 0.5) ? "█" : "░";
    text += fmt::format("{}{:.0f} %  {} of {} {}", barWidth > 0 ? " " : "", share * 100, formatCount(static_cast<std::int64_t>(done)),
                        formatCount(static_cast<std::int64_t>(total)), what);
    if (done > first && seconds > 0) {
        const double rate = static_cast<double>(done - first) / seconds;
        text += fmt::format("  {}/s  {} left", formatShortCount(rate), duration(static_cast<double>(total - done) / rate));
    }
    return text;
}

/// "███░░ 42 %  all_reduce of 2 ranks over loopback  12 s left".
std::string shareLine(double share, const std::string& doing, double seconds, int barWidth) {
    std::string text;
    for (int i = 0; i < barWidth; ++i) text += i < static_cast<int>(share * barWidth + 0.5) ? "█" : "░";
    text += fmt::format("{}{:.0f} %  {}", barWidth > 0 ? " " : "", share * 100, doing);
    if (share > 0.02) text += fmt::format("  {} left", duration(seconds * (1 - share) / share));
    return text;
}

}  // namespace

Progress::Progress(std::string what, std::size_t done, std::size_t total, bool quiet)
    : what_(std::move(what)), first_(done), total_(total), quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
    if (drawn_) std::fputs("\r\033[K", stderr);
}

bool Progress::isDue() {
    const Clock::time_point now = Clock::now();
    if (quiet_ || now - said_ < (terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10000))) return false;
    said_ = now;
    return true;
}

void Progress::update(std::size_t done) {
    if (isDue()) say(progressLine(what_, first_, done, total_, std::chrono::duration<double>(said_ - began_).count(), terminal_ ? 30 : 0));
}

void Progress::updateShare(double share, const std::string& doing) {
    if (isDue()) say(shareLine(share, doing, std::chrono::duration<double>(said_ - began_).count(), terminal_ ? 30 : 0));
}

void Progress::say(const std::string& line) {
    std::fprintf(stderr, terminal_ ? "\r%s\033[K" : "%s\n", line.c_str());
    std::fflush(stderr);
    drawn_ = terminal_;
}

}  // namespace ringside
