#include "gui/core/theme.h"

#include <cmath>

#include <QApplication>
#include <QStyleFactory>

namespace ringside::gui {
namespace {

// The order of SliceCategory: compute, optimizer, communication, copy, host, wait, marker.
constexpr std::array<const char*, kSliceCategories> kCategoriesLight = {"#4c86d6", "#8a63c9", "#e08a2c", "#2fa39a", "#8c98a8", "#c3c9d2", "#5b8c5a"};
constexpr std::array<const char*, kSliceCategories> kCategoriesDark = {"#5b9bf0", "#a883e6", "#f0a04b", "#3dbdb2", "#7f8b9c", "#4d5766", "#77b075"};
// Okabe and Ito's palette, told apart with any colour vision; wait stays grey.
constexpr std::array<const char*, kSliceCategories> kCategoriesSafe = {"#0072b2", "#cc79a7", "#e69f00", "#009e73", "#5a6470", "#c3c9d2", "#56b4e9"};
constexpr std::array<const char*, kSliceCategories> kCategoriesSafeDark = {"#3f9fdc", "#d88fb7", "#f0b429", "#1fb98d", "#6b7685", "#4d5766", "#7cc8f2"};

const std::vector<const char*> kSeriesLight = {"#4c86d6", "#e08a2c", "#8a63c9", "#3f9d58", "#d4576b", "#2fa39a", "#b0892f", "#77818e"};
const std::vector<const char*> kSeriesDark = {"#5b9bf0", "#f0a04b", "#a883e6", "#63c07c", "#ee7d8d", "#3dbdb2", "#d1ab4f", "#98a3b1"};
const std::vector<const char*> kSeriesSafe = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#5a6470"};
const std::vector<const char*> kSeriesSafeDark = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#c4ccd6"};

template <class Names>
std::vector<QColor> colorsOf(const Names& names) {
    return {names.begin(), names.end()};
}

ThemeColors make(const char* id, const char* title, bool dark, const std::array<const char*, kSliceCategories>& categories, const std::vector<const char*>& series, bool safe = false) {
    ThemeColors c;
    c.id = id;
    c.title = title;
    c.dark = dark;
    if (dark) {
        c.window = "#1e232b", c.base = "#171b21", c.raised = "#262c36", c.border = "#39414e", c.grid = "#2a313b", c.text = "#dfe5ee", c.muted = "#94a0b2";
        c.accent = "#6aa9ff", c.warning = "#f2c14e", c.good = "#5cc48d", c.bad = "#f2777a", c.selection = "#6aa9ff";
    } else {
        c.window = "#f4f6f9", c.base = "#ffffff", c.raised = "#e9edf2", c.border = "#cdd4de", c.grid = "#e6eaf0", c.text = "#1d2530", c.muted = "#5f6b7c";
        c.accent = "#1f6fd6", c.warning = "#a86a00", c.good = "#1e8a56", c.bad = "#c8323c", c.selection = "#1f6fd6";
    }
    if (safe) {  // less and more are blue and orange
        c.good = dark ? "#56b4e9" : "#0072b2";
        c.bad = dark ? "#f0803c" : "#d55e00";
    }
    for (std::size_t i = 0; i < categories.size(); ++i) c.categories[i] = QColor(categories[i]);
    c.series = colorsOf(series);
    c.criticalPath = dark ? "#ff6b6b" : "#d0021b";
    c.searchHit = dark ? "#ffe066" : "#b58900";
    c.flow = dark ? "#cfd8e6" : "#3a4656";
    return c;
}

QString styleSheet(const ThemeColors& c) {
    return QString(R"(
QToolTip { color: %1; background: %2; border: 1px solid %3; padding: 4px 6px; }
QMainWindow::separator { background: %3; width: 1px; height: 1px; }
QMainWindow::separator:hover { background: %5; }
QDockWidget { font-weight: 600; }
QDockWidget::title { background: %4; padding: 5px 8px; border-bottom: 1px solid %3; }
QTabBar::tab { background: transparent; color: %6; padding: 5px 12px; border: none; border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: %1; border-bottom: 2px solid %5; }
QTabBar::tab:hover { color: %1; }
QTabWidget::pane { border: none; border-top: 1px solid %3; }
QHeaderView::section { background: %4; color: %6; padding: 4px 8px; border: none; border-bottom: 1px solid %3; border-right: 1px solid %3; }
QTableView, QTreeView, QListView { border: none; background: %2; alternate-background-color: %7; gridline-color: %8; }
QToolBar { border: none; border-bottom: 1px solid %3; padding: 2px 6px; spacing: 4px; background: %7; }
QStatusBar { border-top: 1px solid %3; color: %6; }
QStatusBar::item { border: none; }
QMenuBar { background: %7; }
QLineEdit, QComboBox, QSpinBox, QDoubleSpinBox { padding: 3px 6px; }
)")
        .arg(c.text.name(), c.base.name(), c.border.name(), c.raised.name(), c.accent.name(), c.muted.name(), c.window.name(), c.grid.name());
}

}  // namespace

QColor ThemeColors::shadeOf(SliceCategory category, int shade) const {
    // Neighbouring shades are far apart: 0, +8 %, −8 %, +16 %, …
    static constexpr std::array<int, kShades> kSteps = {0, 8, -8, 15, -14, 4};
    const QColor& color = of(category);
    const int step = kSteps[static_cast<std::size_t>(shade)];
    return step >= 0 ? color.lighter(100 + step) : color.darker(100 - step);
}

QColor ThemeColors::textOn(const QColor& background) {
    // White where it has a contrast of three (WCAG: 1.05 / (luminance + 0.05)); else nearly black.
    const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
    const double luminance = 0.2126 * linear(background.redF()) + 0.7152 * linear(background.greenF()) + 0.0722 * linear(background.blueF());
    return luminance > 0.3 ? QColor("#10151c") : QColor("#ffffff");
}

const std::vector<ThemeColors>& allThemes() {
    static const std::vector<ThemeColors> themes = {
        make("light", "Light", false, kCategoriesLight, kSeriesLight),
        make("dark", "Dark", true, kCategoriesDark, kSeriesDark),
        make("colour-blind", "Colour-blind safe", false, kCategoriesSafe, kSeriesSafe, true),
        make("colour-blind-dark", "Colour-blind safe, dark", true, kCategoriesSafeDark, kSeriesSafeDark, true),
    };
    return themes;
}

Theme::Theme(QObject* parent) : QObject(parent), colors_(&allThemes().front()) {}

bool Theme::set(const QString& id) {
    for (const ThemeColors& candidate : allThemes()) {
        if (candidate.id != id) continue;
        colors_ = &candidate;
        emit changed();
        return true;
    }
    return false;
}

void Theme::applyTo(QApplication& application) const {
    const ThemeColors& c = *colors_;
    QPalette palette;
    palette.setColor(QPalette::Window, c.window);
    palette.setColor(QPalette::WindowText, c.text);
    palette.setColor(QPalette::Base, c.base);
    palette.setColor(QPalette::AlternateBase, c.window);
    palette.setColor(QPalette::Text, c.text);
    palette.setColor(QPalette::PlaceholderText, c.muted);
    palette.setColor(QPalette::Button, c.raised);
    palette.setColor(QPalette::ButtonText, c.text);
    palette.setColor(QPalette::ToolTipBase, c.base);
    palette.setColor(QPalette::ToolTipText, c.text);
    palette.setColor(QPalette::Highlight, c.accent);
    palette.setColor(QPalette::HighlightedText, ThemeColors::textOn(c.accent));
    palette.setColor(QPalette::Link, c.accent);
    palette.setColor(QPalette::Light, c.raised.lighter(108));
    palette.setColor(QPalette::Midlight, c.raised);
    palette.setColor(QPalette::Mid, c.border);
    palette.setColor(QPalette::Dark, c.border.darker(110));
    palette.setColor(QPalette::Shadow, c.border.darker(140));
    for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) palette.setColor(QPalette::Disabled, role, c.muted.darker(c.dark ? 130 : 90));
    application.setStyle(QStyleFactory::create("Fusion"));
    application.setPalette(palette);
    application.setStyleSheet(styleSheet(c));
}

}  // namespace ringside::gui
