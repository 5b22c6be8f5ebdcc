#include "gui/scenario/result_header.h"

#include <QGridLayout>
#include <QLabel>

#include "gui/scenario/memory_bar.h"

namespace ringside::gui {
namespace {

void setColor(QLabel* label, const QColor& color) {
    QPalette palette = label->palette();
    palette.setColor(QPalette::WindowText, color);
    label->setPalette(palette);
}

QString fromUtf8(const std::string& utf8) { return QString::fromStdString(utf8); }

}  // namespace

ResultHeader::ResultHeader(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    const auto label = [](const char* name) {
        auto* made = new QLabel;
        made->setObjectName(name);
        made->setWordWrap(true);
        made->setTextInteractionFlags(Qt::TextSelectableByMouse);
        return made;
    };
    step_ = label("step");
    QFont large = step_->font();
    large.setPointSizeF(large.pointSizeF() * 1.9);
    large.setBold(true);
    step_->setFont(large);
    step_->setWordWrap(false);
    band_ = label("band");
    change_ = label("change");
    throughput_ = label("throughput");
    utilisation_ = label("utilisation");
    exposed_ = label("exposed");
    memory_ = label("memory");
    warnings_ = label("warnings");
    bar_ = new MemoryBar(theme);

    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(12, 10, 12, 8);
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(3);
    auto* top = new QHBoxLayout;
    top->setSpacing(12);
    top->addWidget(step_);
    auto* beside = new QVBoxLayout;
    beside->setSpacing(0);
    beside->addWidget(band_);
    beside->addWidget(change_);
    top->addLayout(beside, 1);
    grid->addLayout(top, 0, 0, 1, 2);
    int row = 1;
    for (const auto& [name, value] : {std::pair{"Throughput", throughput_}, std::pair{"MFU", utilisation_}, std::pair{"Exposed", exposed_}, std::pair{"Memory", memory_}}) {
        auto* caption = new QLabel(name);
        caption->setForegroundRole(QPalette::PlaceholderText);
        grid->addWidget(caption, row, 0, Qt::AlignTop);
        grid->addWidget(value, row++, 1);
    }
    grid->setColumnStretch(1, 1);
    grid->addWidget(bar_, row++, 0, 1, 2);
    grid->addWidget(warnings_, row, 0, 1, 2);
    utilisation_->setToolTip("Model FLOPs utilisation: the model's arithmetic over what the devices could do at their dense peak");
    exposed_->setToolTip("Communication that nothing hides, and its share of the step");
    band_->setToolTip("80 % band of the prediction");
    show(nullptr, nullptr);
}

void ResultHeader::show(const DocumentPtr& document, const DocumentPtr& kept) {
    const bool known = document && document->prediction && document->scenario;
    for (QLabel* label : {band_, change_, throughput_, utilisation_, exposed_, memory_, warnings_}) label->clear();
    step_->setText(known ? "" : "–");
    bar_->setVisible(known);
    warnings_->hide();
    change_->hide();
    if (!known) return;
    const ThemeColors& colors = theme_.colors();
    const Prediction& prediction = *document->prediction;
    const ResultSummary summary = summaryOf(*document->scenario, prediction);
    step_->setText(fromUtf8(summary.step));
    band_->setText("per step, 80 %: " + fromUtf8(summary.band));
    setColor(band_, colors.muted);
    throughput_->setText(fromUtf8(summary.throughput));
    throughput_->setToolTip("Per device: " + fromUtf8(summary.perDevice));
    utilisation_->setText(fromUtf8(summary.utilisation));
    exposed_->setText(fromUtf8(summary.exposed) + ", hidden " + fromUtf8(summary.hidden));
    memory_->setText(fromUtf8(summary.memoryText));
    setColor(memory_, summary.verdict == MemoryVerdict::Fits ? colors.text : summary.verdict == MemoryVerdict::Tight ? colors.warning : colors.bad);
    bar_->show(summary);
    if (kept && kept->prediction) {
        const double before = kept->prediction->stepSeconds;
        change_->setText(fromUtf8(changeText(before, prediction.stepSeconds)) + " against the kept " + fromUtf8(formatSeconds(before)));
        setColor(change_, prediction.stepSeconds <= before ? colors.good : colors.bad);
        change_->show();
    }
    QStringList warnings;
    for (const std::string& warning : summary.warnings) warnings << "⚠ " + fromUtf8(warning);
    warnings_->setText(warnings.join("\n"));
    warnings_->setVisible(!warnings.isEmpty());
    setColor(warnings_, colors.warning);
    setOutdated(false);
}

void ResultHeader::setOutdated(bool outdated) { setColor(step_, outdated ? theme_.colors().muted : theme_.colors().text); }

QString ResultHeader::text() const {
    QStringList parts;
    for (const QLabel* label : {step_, band_, change_, throughput_, utilisation_, exposed_, memory_, warnings_})
        if (!label->text().isEmpty()) parts << label->text();
    return parts.join("\n");
}

}  // namespace ringside::gui
