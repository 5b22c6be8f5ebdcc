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

    /// The view as a picture: .svg as shapes, everything else as PNG.
    Result<void> savePicture(const QString& path);

private:
    Session& session_;
    SearchBar* search_;
    TimelineWidget* timeline_;
};

}  // namespace ringside::gui
