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

Result<void> savePicture(QWidget& view, const QString& path) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (path.endsWith(".svg", Qt::CaseInsensitive)) {
        auto* document = qobject_cast<DocumentView*>(&view);
        QWidget& shown = document ? static_cast<QWidget&>(document->timeline()) : view;
        QSvgGenerator svg;
        svg.setOutputDevice(&buffer);
        svg.setSize(shown.size());
        svg.setViewBox(shown.rect());
        svg.setTitle(document ? QString::fromStdString(document->session().document().title) : view.windowTitle());
        QPainter painter(&svg);
        if (document) document->timeline().paintInto(painter, shown.size(), true);
        else shown.render(&painter);
    } else {
        QImage image(view.size() * view.devicePixelRatioF(), QImage::Format_RGB32);
        image.setDevicePixelRatio(view.devicePixelRatioF());
        view.render(&image);
        if (!image.save(&buffer, "PNG")) return failure(ErrorCode::RuntimeFailure, path.toStdString(), "the picture could not be encoded");
    }
    return atomicWriteFile(path.toStdString(), std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
}

}  // namespace ringside::gui
