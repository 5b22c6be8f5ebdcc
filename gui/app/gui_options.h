// The command line of ringside-gui.
#pragma once

#include <optional>

#include <QSize>
#include <QString>
#include <QStringList>

#include "gui/timeline/time_range.h"
#include "model/base/result.h"

namespace ringside::gui {

struct GuiOptions {
    QStringList files;
    bool together = false;  ///< they are the ranks of one run, whatever they say
    QString screenshot;   ///< paint into this file (.png, .svg) and exit
    QSize size = {1440, 900};
    bool sizeGiven = false;
    std::optional<TimeRange> range;
    QString panel;        ///< id of the panel in front, or of a study to run
    QString compare;      ///< a second file, put below the first
    QString theme;        ///< empty: as kept from last time
    bool help = false, version = false;
};

/// `arguments` without the program's name. Usage errors say which flag and what it takes.
Result<GuiOptions> parseGuiOptions(const QStringList& arguments);

/// "12ms", "1.5 s", "300us", "7ns"; a number alone is seconds.
Result<Time> parseTime(const QString& text, const std::string& place);

QString guiHelpText();

}  // namespace ringside::gui
