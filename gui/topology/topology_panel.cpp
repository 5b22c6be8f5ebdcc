#include "gui/topology/topology_panel.h"

#include <QLabel>
#include <QVBoxLayout>

#include <fmt/format.h>

namespace ringside::gui {
namespace {

constexpr std::int64_t kMostDrawnDevices = 16'384;

}  // namespace

TopologyPanel::TopologyPanel(const GuiContext& context, QWidget* parent) : Panel(context, parent) {
    view_ = new TopologyView(context.theme);
    note_ = new QLabel;
    note_->setWordWrap(true);
    note_->setContentsMargins(12, 4, 12, 4);
    note_->setForegroundRole(QPalette::PlaceholderText);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(view_, 1);
    column->addWidget(note_);
}

QString TopologyPanel::note() const { return note_->text(); }

void TopologyPanel::refresh() {
    note_->hide();
    const Document* document = session() ? &session()->document() : nullptr;
    if (!document || !document->scenario) {
        topology_.reset();
        cluster_.reset();
        view_->show(nullptr, document ? "This trace does not say which cluster it ran on: links cannot be drawn." : "Open or edit a scenario to see its cluster.");
        return;
    }
    const Cluster& cluster = document->scenario->cluster;
    if (!cluster_ || *cluster_ != cluster) {
        cluster_ = cluster;
        topology_.reset();
        if (cluster.deviceCount() > kMostDrawnDevices) {
            view_->show(nullptr, QString("%1 devices are too many to draw; at most %2 are.").arg(cluster.deviceCount()).arg(kMostDrawnDevices));
            return;
        }
        Result<Topology> built = buildTopology(cluster);
        if (!built) {
            cluster_.reset();
            view_->show(nullptr, QString::fromStdString(built.error().toString()));
            return;
        }
        topology_ = std::make_shared<const Topology>(std::move(*built));
    }
    if (!topology_) return;
    view_->show(topology_, {});
    const TimeRange range = session()->view().focus();
    const Traffic traffic = document->prediction ? trafficOf(*document->prediction, range.begin, range.end) : trafficOf(document->trace, range.begin, range.end);
    view_->setLoad(bytesOnLinks(*topology_, traffic.groups), range.length());
    QStringList notes;
    if (view_->layout().nodesLeftOut > 0) notes << QString("%1 more nodes are not drawn.").arg(view_->layout().nodesLeftOut);
    if (traffic.unplaced > 0) notes << QString("%1 transfers are not on the links: their bytes or their ranks are not known (messages to parameter servers among them).").arg(traffic.unplaced);
    note_->setText(notes.join(" "));
    note_->setVisible(!notes.isEmpty());
}

}  // namespace ringside::gui
