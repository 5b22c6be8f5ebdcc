#include "gui/canvas/document_view.h"

#include <QBuffer>
#include <QImage>
#include <QPainter>
#include <QSvgGenerator>
#include <QVBoxLayout>

#include "gui/canvas/legend.h"
#include "gui/canvas/overview_bar.h"
#include "gui/canvas/search_bar.h"
#include "gui/canvas/timeline_widget.h"
#include "traces/export/atomic_file.h"

namespace ringside::gui {

DocumentView::DocumentView(Session& session, const GuiContext& context, bool legend, QWidget* parent) : QWidget(parent), session_(session) {
    search_ = new SearchBar(session, this);
    timeline_ = new TimelineWidget(session, context.theme, this);
    setFocusProxy(timeline_);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(search_);
    layout->addWidget(new OverviewBar(session, context.theme, timeline_->metrics().header, this));
    layout->addWidget(timeline_, 1);
    if (legend) layout->addWidget(new Legend(session, context.theme, this));
    connect(timeline_, &TimelineWidget::hovered, &context.workspace, &Workspace::say);
}

Result<void> DocumentView::savePicture(const QString& path) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (path.endsWith(".svg", Qt::CaseInsensitive)) {
        QSvgGenerator svg;
        svg.setOutputDevice(&buffer);
        svg.setSize(timeline_->size());
        svg.setViewBox(timeline_->rect());
        svg.setTitle(QString::fromStdString(session_.document().title));
        QPainter painter(&svg);
        timeline_->paintInto(painter, timeline_->size(), true);
    } else {
        QImage image(size() * devicePixelRatioF(), QImage::Format_RGB32);
        image.setDevicePixelRatio(devicePixelRatioF());
        render(&image);
        if (!image.save(&buffer, "PNG")) return failure(ErrorCode::RuntimeFailure, path.toStdString(), "the picture could not be encoded");
    }
    return atomicWriteFile(path.toStdString(), std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
}

}  // namespace ringside::gui
