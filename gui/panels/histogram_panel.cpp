#include "gui/panels/histogram_panel.h"

#include <algorithm>
#include <utility>

#include <QCheckBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

#include "traces/analysis/layer_names.h"

namespace ringside::gui {

/// Bars, percentiles as lines, both axes with units.
class HistogramView : public QWidget {
public:
    explicit HistogramView(Theme& theme) : theme_(theme) { setMinimumHeight(90); }
    void set(Histogram histogram, SliceCategory category) {
        histogram_ = std::move(histogram);
        category_ = category;
        update();
    }
    const Histogram& histogram() const { return histogram_; }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        const ThemeColors& colors = theme_.colors();
        painter.fillRect(rect(), colors.base);
        if (histogram_.counts.empty()) return;
        const QRectF area = QRectF(rect()).adjusted(60, 22, -44, -26);
        if (histogram_.least == histogram_.most) {
            const QString all = QString("all of them take %1").arg(QString::fromStdString(formatTime(histogram_.least)));
            painter.setPen(colors.muted);
            painter.drawText(QRectF(area.left(), area.bottom() + 4, area.width(), 18), Qt::AlignCenter, all);
            painter.fillRect(QRectF(area.center().x() - 20, area.top(), 40, area.height()), colors.of(category_));
            return;
        }
        const std::int64_t most = *std::max_element(histogram_.counts.begin(), histogram_.counts.end());
        const double wide = area.width() / static_cast<double>(histogram_.counts.size());
        for (std::size_t i = 0; i < histogram_.counts.size(); ++i) {
            const double high = area.height() * static_cast<double>(histogram_.counts[i]) / static_cast<double>(std::max<std::int64_t>(1, most));
            painter.fillRect(QRectF(area.left() + static_cast<double>(i) * wide, area.bottom() - high, std::max(1.0, wide - 1), high), colors.of(category_));
        }
        painter.setPen(colors.border);
        painter.drawLine(area.bottomLeft(), area.bottomRight());
        painter.setPen(colors.muted);
        painter.drawText(QRectF(0, area.top() - 8, 54, 16), Qt::AlignRight | Qt::AlignVCenter, QString::fromStdString(formatCount(most)));
        painter.drawText(QRectF(0, area.bottom() - 8, 54, 16), Qt::AlignRight | Qt::AlignVCenter, "0");
        const std::size_t bins = histogram_.counts.size();
        double reached = -1e9;
        QString before;  // durations that hardly differ would all read the same
        for (std::size_t i = 0; i <= bins; i += std::max<std::size_t>(1, bins / 8)) {
            const double x = area.left() + static_cast<double>(i) * wide;
            if (x - reached < 90) continue;
            const QString edge = QString::fromStdString(formatTime(histogram_.edge(i)));
            if (edge == before) continue;
            reached = x;
            before = edge;
            painter.drawText(QRectF(x - 50, area.bottom() + 4, 100, 18), Qt::AlignCenter, edge);
        }
        // Percentiles stand in the bin that holds them.
        int line = 0;
        for (const auto& [name, at] : {std::pair<const char*, Time>{"P50", histogram_.p50}, {"P90", histogram_.p90}, {"P99", histogram_.p99}}) {
            std::size_t bin = 0;
            while (bin + 1 < bins && histogram_.edge(bin + 1) <= at) ++bin;
            const double low = histogram_.edge(bin).seconds(), high = histogram_.edge(bin + 1).seconds();
            const double x = area.left() + (static_cast<double>(bin) + (high > low ? std::clamp((at.seconds() - low) / (high - low), 0.0, 1.0) : 0.5)) * wide;
            painter.setPen(QPen(colors.text, 1, Qt::DashLine));
            painter.drawLine(QPointF(x, area.top() - 4), QPointF(x, area.bottom()));
            painter.drawText(QPointF(std::min(x + 3, area.right() - 90), 12 + 14 * line), QString("%1 %2").arg(name, QString::fromStdString(formatTime(at))));
            line = (line + 1) % 3;
        }
    }

private:
    Theme& theme_;
    Histogram histogram_;
    SliceCategory category_ = SliceCategory::Compute;
};

HistogramPanel::HistogramPanel(const GuiContext& context, QWidget* parent) : Panel(context, parent) {
    title_ = new QLabel;
    together_ = new QCheckBox("Layers together");
    together_->setChecked(true);
    together_->setToolTip("Slices whose names differ in numbers only count as one name");
    logarithmic_ = new QCheckBox("Logarithmic");
    logarithmic_->setToolTip("Bins of equal ratio instead of equal width");
    view_ = new HistogramView(context.theme);
    auto* top = new QHBoxLayout;
    top->setContentsMargins(12, 6, 12, 4);
    top->addWidget(title_, 1);
    top->addWidget(together_);
    top->addWidget(logarithmic_);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(top);
    layout->addWidget(view_, 1);
    connect(together_, &QCheckBox::toggled, this, &HistogramPanel::outdated);
    connect(logarithmic_, &QCheckBox::toggled, this, &HistogramPanel::outdated);
}

const Histogram& HistogramPanel::histogram() const { return view_->histogram(); }

void HistogramPanel::refresh() {
    if (!session() || !session()->view().slice() || *session()->view().slice() >= session()->document().trace.size()) {
        title_->setText("<span style='color:gray'>Click a slice to see how long slices of its name take.</span>");
        view_->set({}, SliceCategory::Compute);
        return;
    }
    const Trace& trace = session()->document().trace;
    const std::uint32_t slice = *session()->view().slice();
    const TimeRange range = session()->view().focus();
    struct Answer {
        std::string name;
        Histogram histogram;
    };
    background_.start(
        [document = session()->shared(), chosen = trace.name[slice], range, together = together_->isChecked(), log = logarithmic_->isChecked()](std::stop_token) {
            const std::vector<std::string>& names = document->trace.names;
            Answer answer{names[chosen], {}};
            std::vector<std::uint32_t> same{chosen};
            if (const std::string plain = withoutNumbers(names[chosen]); together && plain != names[chosen]) {
                for (std::uint32_t n = 0; n < names.size(); ++n)
                    if (n != chosen && withoutNumbers(names[n]) == plain) same.push_back(n);
                if (same.size() > 1) answer.name = plain;
            }
            answer.histogram = durationHistogram(document->trace, same, range.begin, range.end, 48, log);
            return answer;
        },
        [this, category = trace.category[slice]](Answer answer) {
            const Histogram& histogram = answer.histogram;
            title_->setText(QString("<b>%1</b>: %2 slice%3, mean %4, from %5 to %6")
                                .arg(QString::fromStdString(answer.name).left(120).toHtmlEscaped(), QString::fromStdString(formatCount(histogram.slices)), histogram.slices == 1 ? "" : "s",
                                     QString::fromStdString(formatTime(histogram.mean)), QString::fromStdString(formatTime(histogram.least)), QString::fromStdString(formatTime(histogram.most))));
            view_->set(std::move(answer.histogram), category);
        });
}

}  // namespace ringside::gui
