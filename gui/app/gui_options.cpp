#include "gui/app/gui_options.h"

#include <cmath>

#include <QRegularExpression>

#include <fmt/format.h>

#include "gui/core/theme.h"

namespace ringside::gui {
namespace {

tl::unexpected<Error> usage(const std::string& place, const std::string& message) { return failure(ErrorCode::Usage, place, message); }

Result<QSize> parseSize(const QString& text) {
    static const QRegularExpression pattern("^(\\d{2,5})[xX×](\\d{2,5})$");
    const QRegularExpressionMatch match = pattern.match(text);
    if (!match.hasMatch()) return usage("--size", fmt::format("'{}' is no size; write width x height in pixels, like 1600x900", text.toStdString()));
    const QSize size(match.captured(1).toInt(), match.captured(2).toInt());
    if (size.width() < 320 || size.height() < 240 || size.width() > 16384 || size.height() > 16384)
        return usage("--size", fmt::format("{}x{} is out of range; 320x240 to 16384x16384", size.width(), size.height()));
    return size;
}

Result<TimeRange> parseRange(const QString& text) {
    const QStringList parts = text.split(':');
    if (parts.size() != 2) return usage("--range", fmt::format("'{}' is no range; write START:END with units, like 10ms:25ms", text.toStdString()));
    TRY(const Time begin, parseTime(parts[0], "--range"));
    TRY(const Time end, parseTime(parts[1], "--range"));
    if (end <= begin) return usage("--range", fmt::format("it ends ({}) before it starts ({})", formatTime(end), formatTime(begin)));
    return TimeRange{begin, end};
}

}  // namespace

Result<Time> parseTime(const QString& text, const std::string& place) {
    static const QRegularExpression pattern("^\\s*([-+]?[0-9]*\\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\\s*(s|ms|us|µs|μs|ns|ps)?\\s*$");
    const QRegularExpressionMatch match = pattern.match(text);
    if (!match.hasMatch()) return usage(place, fmt::format("'{}' is no time; write a number with s, ms, us, ns or ps", text.toStdString()));
    const QString unit = match.captured(2);
    const double factor = unit == "ms" ? 1e-3 : unit == "us" || unit == "µs" || unit == "μs" ? 1e-6 : unit == "ns" ? 1e-9 : unit == "ps" ? 1e-12 : 1.0;
    const double seconds = match.captured(1).toDouble() * factor;
    if (!std::isfinite(seconds)) return usage(place, fmt::format("'{}' is no time that can be shown", text.toStdString()));
    return Time::fromSeconds(seconds);
}

Result<GuiOptions> parseGuiOptions(const QStringList& arguments) {
    GuiOptions options;
    bool onlyFiles = false;
    for (qsizetype i = 0; i < arguments.size(); ++i) {
        QString name = arguments[i];
        if (onlyFiles || !name.startsWith('-') || name == "-") {
            options.files << name;
            continue;
        }
        if (name == "--") {
            onlyFiles = true;
            continue;
        }
        if (name == "--help" || name == "-h") {
            options.help = true;
            continue;
        }
        if (name == "--ranks") {
            options.together = true;
            continue;
        }
        if (name == "--version") {
            options.version = true;
            continue;
        }
        std::optional<QString> value;
        if (const qsizetype equals = name.indexOf('='); equals > 0) {
            value = name.mid(equals + 1);
            name = name.left(equals);
        }
        static const QStringList known = {"--screenshot", "--size", "--range", "--panel", "--compare", "--theme"};
        if (!known.contains(name)) return usage(name.toStdString(), "no such flag; `ringside-gui --help` lists them");
        if (!value) {
            if (i + 1 == arguments.size()) return usage(name.toStdString(), "needs a value");
            value = arguments[++i];
        }
        if (name == "--screenshot") {
            if (!value->endsWith(".png", Qt::CaseInsensitive) && !value->endsWith(".svg", Qt::CaseInsensitive))
                return usage("--screenshot", fmt::format("'{}' is neither .png nor .svg", value->toStdString()));
            options.screenshot = *value;
        } else if (name == "--size") {
            TRY(options.size, parseSize(*value));
            options.sizeGiven = true;
        } else if (name == "--range") {
            TRY(options.range, parseRange(*value));
        } else if (name == "--panel") {
            options.panel = *value;
        } else if (name == "--compare") {
            options.compare = *value;
        } else {
            QStringList ids;
            for (const ThemeColors& theme : allThemes()) ids << theme.id;
            if (!ids.contains(*value)) return usage("--theme", fmt::format("'{}' is no theme; there are {}", value->toStdString(), ids.join(", ").toStdString()));
            options.theme = *value;
        }
    }
    if (!options.compare.isEmpty() && options.files.isEmpty()) return usage("--compare", "needs a file to compare with: ringside-gui FILE --compare OTHER");
    return options;
}

QString guiHelpText() {
    return R"(ringside-gui: look at a training step

Usage: ringside-gui [FILE…] [options]

FILE is a scenario (it is predicted), a trace of PyTorch's profiler, or any Chrome trace; compressed by gzip or not.
Files that say that they are different ranks of one run are shown together, others in a tab each.

  --ranks                the files are the ranks of one run, whatever they say
  --compare OTHER        put OTHER below FILE, steps aligned, with a table of differences
  --range START:END      select this range, like 10ms:25ms
  --panel NAME           bring this panel to the front, or run this study: scaling, sweep (a wrong name lists all)
  --theme NAME           light, dark, colour-blind, colour-blind-dark
  --size WxH             size of the window in pixels
  --screenshot OUT.png   paint the window into a file (.png; .svg has the timeline alone) and exit; needs no display
  --version              print the version and the licence
  -h, --help             print this

Examples:
  ringside-gui docs/examples/gpt2-xl-ddp-16-a100.json
  ringside-gui rank*.json.gz
  ringside-gui trace.json.gz --range 10ms:25ms --panel range --screenshot step.png

In the window, ? lists every key. Exit codes are those of ringside: 2 usage, 3 bad input, 4 no display.
)";
}

}  // namespace ringside::gui
