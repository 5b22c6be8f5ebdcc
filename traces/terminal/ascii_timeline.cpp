#include "traces/terminal/ascii_timeline.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/analysis/interval.h"

namespace ringside {
namespace {

/// What a column is painted as. The order is that of the legend.
enum class Paint : std::uint8_t { Forward, Backward, Optimizer, Other, Communication, Copy, Host };
constexpr std::size_t kPaints = 7;
constexpr std::array<std::string_view, kPaints> kPaintNames{"forward", "backward", "optimizer", "other", "communication", "copy", "host"};
constexpr std::array<int, kPaints> kAnsi{32, 34, 35, 37, 33, 36, 90};

using Shares = std::array<Time, kPaints>;  ///< busy time of a column, by paint

bool startsWith(std::string_view text, std::string_view lowerPrefix) {
    if (text.size() < lowerPrefix.size()) return false;
    for (std::size_t i = 0; i < lowerPrefix.size(); ++i)
        if (std::tolower(static_cast<unsigned char>(text[i])) != lowerPrefix[i]) return false;
    return true;
}

Paint computePaint(std::string_view name) {
    if (startsWith(name, "forward") || startsWith(name, "fwd")) return Paint::Forward;
    // Recomputed activations are paid for in the backward pass.
    if (startsWith(name, "backward") || startsWith(name, "bwd") || startsWith(name, "recompute")) return Paint::Backward;
    if (startsWith(name, "optimizer")) return Paint::Optimizer;
    return Paint::Other;
}

/// False for what is not shown: waits and marks.
bool paintOf(const Trace& trace, std::size_t i, Paint& paint) {
    switch (trace.category[i]) {
        case SliceCategory::Compute: paint = computePaint(trace.names[trace.name[i]]); return true;
        case SliceCategory::Optimizer: paint = Paint::Optimizer; return true;
        case SliceCategory::Communication: paint = Paint::Communication; return true;
        case SliceCategory::Copy: paint = Paint::Copy; return true;
        case SliceCategory::Host: paint = Paint::Host; return true;
        case SliceCategory::Wait:
        case SliceCategory::Marker: return false;
    }
    return false;
}

/// Columns of equal length over [0, end).
struct Scale {
    Time end;
    int columns = 1;

    Time edge(int column) const {
        return Time::fromPicoseconds(static_cast<std::int64_t>(std::llround(static_cast<double>(end.picoseconds()) * column / columns)));
    }
    int columnOf(Time t) const {
        const double x = static_cast<double>(t.picoseconds()) / static_cast<double>(std::max<std::int64_t>(end.picoseconds(), 1)) * columns;
        return std::clamp(static_cast<int>(x), 0, columns - 1);
    }
};

void addInterval(std::vector<Shares>& columns, const Scale& scale, Paint paint, const Interval& interval) {
    // One column further on both sides, for edges that rounding moved.
    const int first = std::max(scale.columnOf(interval.begin) - 1, 0), last = std::min(scale.columnOf(interval.end) + 1, scale.columns - 1);
    for (int c = first; c <= last; ++c) {
        const Time begin = std::max(interval.begin, scale.edge(c)), end = std::min(interval.end, scale.edge(c + 1));
        if (begin < end) columns[static_cast<std::size_t>(c)][static_cast<std::size_t>(paint)] += end - begin;
    }
}

struct Row {
    std::string label;
    std::vector<Shares> columns;
};

class Drawing {
public:
    Drawing(const Trace& trace, const TimelineOptions& options) : trace_(trace), options_(options) {}

    std::string draw() {
        collectRows();
        if (rows_.empty() || scale_.end == Time{}) return fmt::format("rank {} has nothing to show\n", options_.rank);
        phases();
        for (const Row& row : rows_) line(row);
        ruler();
        legend();
        return std::move(out_);
    }

private:
    void collectRows() {
        std::vector<std::size_t> tracks;
        for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
            if (trace_.tracks[t].rank != options_.rank) continue;
            tracks.push_back(t);
            labelWidth_ = std::max(labelWidth_, std::min<std::size_t>(labelOf(t).size(), 16));
            for (std::size_t i = trace_.firstSlice(t); i < trace_.firstSlice(t + 1); ++i)
                scale_.end = std::max(scale_.end, trace_.start[i] + trace_.duration[i]);
        }
        std::stable_sort(tracks.begin(), tracks.end(), [&](std::size_t a, std::size_t b) { return trace_.tracks[a].kind < trace_.tracks[b].kind; });
        scale_.columns = std::max(options_.width, 40) - static_cast<int>(labelWidth_) - 3;
        for (const std::size_t t : tracks) addTrack(t);
        addExposed();
    }

    std::string labelOf(std::size_t t) const {
        const Track& track = trace_.tracks[t];
        return track.name.empty() ? std::string(nameOf(track.kind)) : track.name;
    }

    void addTrack(std::size_t t) {
        std::array<std::vector<Interval>, kPaints> busy;
        for (std::size_t i = trace_.firstSlice(t); i < trace_.firstSlice(t + 1); ++i) {
            Paint paint{};
            if (!paintOf(trace_, i, paint)) continue;
            const Interval interval{trace_.start[i], trace_.start[i] + trace_.duration[i]};
            busy[static_cast<std::size_t>(paint)].push_back(interval);
            std::vector<Interval>& all = paint == Paint::Communication ? communication_ : compute_;
            if (paint != Paint::Host && paint != Paint::Copy) all.push_back(interval);
        }
        Row row{labelOf(t), std::vector<Shares>(static_cast<std::size_t>(scale_.columns))};
        for (std::size_t p = 0; p < kPaints; ++p)
            for (const Interval& interval : unionOf(std::move(busy[p]))) addInterval(row.columns, scale_, static_cast<Paint>(p), interval);
        rows_.push_back(std::move(row));
    }

    void addExposed() {
        if (communication_.empty()) return;
        Row row{"exposed", std::vector<Shares>(static_cast<std::size_t>(scale_.columns))};
        for (const Interval& interval : difference(unionOf(communication_), unionOf(compute_)))
            addInterval(row.columns, scale_, Paint::Communication, interval);
        rows_.push_back(std::move(row));
    }

    // ---- painting ------------------------------------------------------------------------------------------------------

    void label(std::string_view text) { fmt::format_to(std::back_inserter(out_), "{:<{}} ", text.substr(0, labelWidth_), labelWidth_); }

    std::string_view bar() const { return options_.unicode ? "│" : "|"; }

    void trimLine() {
        while (!out_.empty() && out_.back() == ' ') out_.pop_back();
        out_ += '\n';
    }

    std::string_view glyph(double share) const {
        static constexpr std::array<std::string_view, 9> kBlocks{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
        static constexpr std::array<std::string_view, 9> kPlain{" ", ".", ".", "-", "-", "=", "=", "#", "#"};
        const int eighths = share <= 0 ? 0 : std::clamp(static_cast<int>(std::lround(share * 8)), 1, 8);
        return (options_.unicode ? kBlocks : kPlain)[static_cast<std::size_t>(eighths)];
    }

    static Paint mostOf(const Shares& shares) {
        return static_cast<Paint>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    }

    void line(const Row& row) {
        label(row.label);
        out_ += bar();
        int colour = 0;
        for (int c = 0; c < scale_.columns; ++c) {
            const Shares& shares = row.columns[static_cast<std::size_t>(c)];
            Time busy;
            for (const Time t : shares) busy += t;
            const Time length = scale_.edge(c + 1) - scale_.edge(c);
            const double share = length > Time{} ? static_cast<double>(busy.picoseconds()) / static_cast<double>(length.picoseconds()) : 0;
            if (share > 0) {
                setColour(colour, kAnsi[static_cast<std::size_t>(mostOf(shares))]);
                shown_[static_cast<std::size_t>(mostOf(shares))] = true;
            }
            out_ += glyph(share);
        }
        setColour(colour, 0);
        out_ += bar();
        out_ += '\n';
    }

    void setColour(int& current, int wanted) {
        if (!options_.colour || current == wanted) return;
        fmt::format_to(std::back_inserter(out_), "\x1b[{}m", wanted);
        current = wanted;
    }

    /// "├ forward ┤├── backward ──┤": runs of columns in which a phase has the most compute time; gaps belong to the phase
    /// around them.
    void phases() {
        std::vector<int> phase(static_cast<std::size_t>(scale_.columns), -1);
        for (int c = 0; c < scale_.columns; ++c) {
            Shares sum{};
            for (const Row& row : rows_)
                for (const Paint p : {Paint::Forward, Paint::Backward, Paint::Optimizer})
                    sum[static_cast<std::size_t>(p)] += row.columns[static_cast<std::size_t>(c)][static_cast<std::size_t>(p)];
            if (sum[static_cast<std::size_t>(mostOf(sum))] > Time{}) phase[static_cast<std::size_t>(c)] = static_cast<int>(mostOf(sum));
        }
        std::string text;
        for (int c = 0; c < scale_.columns;) {
            const int current = phase[static_cast<std::size_t>(c)];
            if (current < 0) {
                text += ' ';
                ++c;
                continue;
            }
            int last = c;
            for (int k = c; k < scale_.columns && (phase[static_cast<std::size_t>(k)] < 0 || phase[static_cast<std::size_t>(k)] == current); ++k)
                if (phase[static_cast<std::size_t>(k)] == current) last = k;
            text += span(kPaintNames[static_cast<std::size_t>(current)], last - c + 1);
            c = last + 1;
        }
        if (text.find_first_not_of(' ') == std::string::npos) return;
        label("");
        out_ += ' ';
        out_ += text;
        trimLine();
    }

    /// A bracket of `columns` columns with the name in it, or as much of it as fits.
    std::string span(std::string_view name, int columns) const {
        const std::string_view left = options_.unicode ? "├" : "<", right = options_.unicode ? "┤" : ">", middle = options_.unicode ? "─" : "-";
        if (columns == 1) return std::string(1, name[0]);
        const int inner = columns - 2;
        const std::string text = inner >= static_cast<int>(name.size()) + 2 ? fmt::format(" {} ", name) : std::string(name.substr(0, static_cast<std::size_t>(inner)));
        const int dashes = inner - static_cast<int>(text.size());
        std::string result(left);
        for (int i = 0; i < dashes / 2; ++i) result += middle;
        result += text;
        for (int i = dashes / 2; i < dashes; ++i) result += middle;
        return result += right;
    }

    void ruler() {
        // A round tick of 1, 2 or 5 × 10ⁿ ps that leaves about 12 columns for each label.
        const double wanted = static_cast<double>(scale_.end.picoseconds()) * 12 / scale_.columns;
        double tick = std::pow(10.0, std::floor(std::log10(std::max(wanted, 1.0))));
        for (const double factor : {2.0, 2.5, 2.0})
            if (tick < wanted) tick *= factor;
        std::string marks, texts;
        int column = 0;        // of the end of `marks`
        int textColumn = 0;    // of the end of `texts`, in characters on the screen
        for (int k = 0;; ++k) {
            const auto at = Time::fromPicoseconds(static_cast<std::int64_t>(std::llround(tick * k)));
            if (at >= scale_.end) break;
            const int c = scale_.columnOf(at);
            for (; column < c; ++column) marks += options_.unicode ? "─" : "-";
            marks += options_.unicode ? "┴" : "+";
            ++column;
            const std::string text = k == 0 ? "0" : tickText(at);
            const int length = k == 0 ? 1 : static_cast<int>(text.size()) - (text.find("µ") != std::string::npos ? 1 : 0);
            if (c + length > scale_.columns) continue;
            for (; textColumn < c; ++textColumn) texts += ' ';
            texts += text;
            textColumn += length;
        }
        for (; column < scale_.columns; ++column) marks += options_.unicode ? "─" : "-";
        label("");
        fmt::format_to(std::back_inserter(out_), "{}{}{}\n", options_.unicode ? "└" : "+", marks, options_.unicode ? "┘" : "+");
        label("");
        out_ += ' ';
        out_ += texts;
        trimLine();
    }

    /// "20 ms", "2.5 µs": round figures without trailing zeros; "us" where only ASCII is wanted.
    std::string tickText(Time t) const {
        const double ps = static_cast<double>(t.picoseconds());
        const std::array<std::pair<double, const char*>, 5> units{
            {{1e12, "s"}, {1e9, "ms"}, {1e6, options_.unicode ? "µs" : "us"}, {1e3, "ns"}, {1, "ps"}}};
        for (const auto& [size, unit] : units)
            if (ps >= size) return fmt::format("{:g} {}", ps / size, unit);
        return "0";
    }

    void legend() {
        label("");
        std::string step = formatTime(scale_.end), column = formatTime(scale_.edge(1));
        if (!options_.unicode) {
            for (std::string* text : {&step, &column}) {
                const auto at = text->find("µ");  // two bytes
                if (at == std::string::npos) continue;
                (*text)[at] = 'u';
                text->erase(at + 1, 1);
            }
        }
        fmt::format_to(std::back_inserter(out_), " step {}, one column {}; {} all busy, {} partly", step, column, glyph(1), glyph(0.4));
        if (options_.colour) {
            out_ += ';';
            for (std::size_t p = 0; p < kPaints; ++p)
                if (shown_[p]) fmt::format_to(std::back_inserter(out_), " \x1b[{}m{}\x1b[0m {}", kAnsi[p], glyph(1), kPaintNames[p]);
        }
        out_ += '\n';
    }

    const Trace& trace_;
    const TimelineOptions& options_;
    std::string out_;
    Scale scale_;
    std::size_t labelWidth_ = 7;  // "exposed"
    std::vector<Row> rows_;
    std::vector<Interval> compute_, communication_;
    std::array<bool, kPaints> shown_{};
};

}  // namespace

std::string asciiTimeline(const Trace& trace, const TimelineOptions& options) { return Drawing(trace, options).draw(); }

}  // namespace ringside
