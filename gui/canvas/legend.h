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
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Entry {
        QColor color;  ///< invalid: a caption
        QString name;
        double x = 0, width = 0;
        int line = 0;
    };
    std::vector<std::pair<QColor, QString>> entries() const;
    /// In as many lines as they need.
    std::vector<Entry> placed() const;
    QFont small() const;
    void fitHeight();
    Session& session_;
    Theme& theme_;
};

}  // namespace ringside::gui
