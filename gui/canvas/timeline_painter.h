// TimelinePainter: fills the rectangles that gui/timeline computes and writes their names. It decides nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <QFont>
#include <QHash>
#include <QImage>
#include <QSize>
#include <QStaticText>

#include "gui/core/document.h"
#include "gui/core/theme.h"
#include "gui/core/view_state.h"
#include "gui/timeline/track_layout.h"
#include "gui/timeline/visible_slices.h"

class QPainter;

namespace ringside::gui {

/// Widths and heights that painting and clicking share, in logical pixels.
struct TimelineMetrics {
    int header = 210;   ///< names of tracks, at the left
    int ruler = 26;
    int steps = 0, phases = 0;  ///< bands below the ruler; 0 where there are none
    int top() const { return ruler + steps + phases; }
};

/// One picture. Everything outlives the call.
struct TimelineScene {
    const Document& document;
    const ViewState& view;
    const TrackLayout& layout;
    const ThemeColors& colors;
    TimelineMetrics metrics;
    QSize size;                 ///< of the whole widget, logical pixels
    double scroll = 0;          ///< of the part below the pinned rows
    std::optional<double> cursor = {};       ///< x within the body
    std::optional<std::uint32_t> hovered = {};
    std::optional<TimeRange> measuring = {}; ///< while a range is dragged
    std::optional<double> landing = {};      ///< y where a dragged row would be put
    bool flows = true;

    int bodyWidth() const { return std::max(1, size.width() - metrics.header); }
    TimeAxis axis() const { return {view.window(), static_cast<double>(bodyWidth())}; }
    /// Where a row of the layout stands in the widget.
    double yOf(const LayoutRow& row) const;
    double bodyTop() const { return metrics.top() + layout.pinnedHeight; }
};

class TimelinePainter {
public:
    explicit TimelinePainter(const QFont& font);

    /// Paints the scene at the painter's origin. `vector`: as shapes for a file, else through an image of `ratio` pixels per unit.
    void paint(QPainter& painter, const TimelineScene& scene, double ratio, bool vector = false);
    /// What the colours were made from has changed.
    void forgetColors() { colorsOf_ = nullptr; }
    /// Rectangles in the last picture.
    std::size_t rectangles() const { return rectangles_; }

private:
    struct Label {
        float x0, x1;
        double y;
        std::uint32_t name;
        SliceCategory category;
        bool dim;
    };

    void prepareColors(const TimelineScene& scene);
    QRgb colorOf(const SliceRect& rect) const;
    void fill(double x0, double x1, double y, double height, QRgb color);
    void paintTrack(const TimelineScene& scene, const LayoutRow& row, double y, double clipTop);
    void paintDensity(const TimelineScene& scene, const LayoutRow& row, double y);
    void paintCounter(const TimelineScene& scene, const LayoutRow& row, double y);
    void paintRows(const TimelineScene& scene);
    void paintLabels(QPainter& painter, const TimelineScene& scene);
    const QStaticText& textFor(const Trace& trace, std::uint32_t name, int width);

    QFont font_;
    double charWidth_;
    const ThemeColors* colorsOf_ = nullptr;
    std::array<std::array<std::array<QRgb, 32>, kShades>, kSliceCategories> palette_{};
    std::array<QRgb, kSliceCategories> dimmed_{};
    QImage image_;
    QRgb* pixels_ = nullptr;  ///< of image_, while rows are painted
    qsizetype stride_ = 0;
    QSize imageSize_;
    QPainter* vector_ = nullptr;
    double ratio_ = 1;
    std::vector<SliceRect> rects_;
    std::vector<std::int64_t> columns_;
    std::vector<Label> labels_;
    QHash<quint64, QStaticText> texts_;
    const Trace* textsOf_ = nullptr;
    std::size_t rectangles_ = 0;
};

/// The text for a value of a counter: bytes where it counts bytes.
QString counterValue(const CounterSeries& counter, Bytes value);

}  // namespace ringside::gui
