// Theme: every colour of the program, in four palettes. Widgets ask the theme, never for a colour of their own.
#pragma once

#include <array>
#include <vector>

#include <QColor>
#include <QObject>
#include <QPalette>
#include <QString>

#include "traces/trace.h"

class QApplication;

namespace ringside::gui {

inline constexpr int kSliceCategories = 7;
/// Slices of one category differ a little by name, so that neighbours can be told apart.
inline constexpr int kShades = 6;

struct ThemeColors {
    QString id, title;  ///< "dark", "Dark"
    bool dark = false;
    QColor window, base, raised, border, grid, text, muted, accent, warning, good, bad, selection;
    std::array<QColor, kSliceCategories> categories;
    std::vector<QColor> series;  ///< of charts and counters, in order; wraps around
    QColor criticalPath, searchHit, flow;

    const QColor& of(SliceCategory category) const { return categories[static_cast<std::size_t>(category)]; }
    /// `shade` < kShades; 0 is the category's colour itself.
    QColor shadeOf(SliceCategory category, int shade) const;
    const QColor& seriesColor(std::size_t i) const { return series[i % series.size()]; }
    /// Black or white, whichever reads better on `background`.
    static QColor textOn(const QColor& background);
};

/// "light", "dark", "colour-blind", "colour-blind-dark".
const std::vector<ThemeColors>& allThemes();

/// The theme in use. One per program, handed around by reference; widgets repaint on changed().
class Theme : public QObject {
    Q_OBJECT
public:
    explicit Theme(QObject* parent = nullptr);

    const ThemeColors& colors() const { return *colors_; }
    const QString& id() const { return colors_->id; }
    /// False if there is none of that name.
    bool set(const QString& id);
    /// Palette, style and style sheet of the whole application.
    void applyTo(QApplication& application) const;

signals:
    void changed();

private:
    const ThemeColors* colors_;
};

}  // namespace ringside::gui
