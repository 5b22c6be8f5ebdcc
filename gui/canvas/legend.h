// Legend: what the colours mean; only what the document has.
#pragma once

#include <QWidget>

#include "gui/core/session.h"
#include "gui/core/theme.h"

namespace ringside::gui {

class Legend : public QWidget {
    Q_OBJECT
public:
    Legend(Session& session, Theme& theme, QWidget* parent = nullptr);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::vector<std::pair<QColor, QString>> entries() const;
    Session& session_;
    Theme& theme_;
};

}  // namespace ringside::gui
