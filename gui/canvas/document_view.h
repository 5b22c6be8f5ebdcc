// DocumentView: the tab of one session: search, overview, timeline, legend.
#pragma once

#include <QWidget>

#include "gui/core/panel.h"

namespace ringside::gui {

class SearchBar;
class TimelineWidget;

class DocumentView : public QWidget {
    Q_OBJECT
public:
    /// `legend`: false where another view beside it explains the colours.
    DocumentView(Session& session, const GuiContext& context, bool legend = true, QWidget* parent = nullptr);

    Session& session() { return session_; }
    TimelineWidget& timeline() { return *timeline_; }
    SearchBar& search() { return *search_; }

private:
    Session& session_;
    SearchBar* search_;
    TimelineWidget* timeline_;
};

/// What a widget shows, as a picture: .svg as shapes (of a document its timeline alone), everything else as PNG.
Result<void> savePicture(QWidget& view, const QString& path);

}  // namespace ringside::gui
