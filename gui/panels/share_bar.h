// ShareBar: shares of a whole as one bar with its legend below.
#pragma once

#include <vector>

#include <QWidget>

#include "gui/core/theme.h"
#include "model/base/units.h"

namespace ringside::gui {

struct Share {
    QString name;
    Time time;
    QColor color;
};

class ShareBar : public QWidget {
    Q_OBJECT
public:
    explicit ShareBar(Theme& theme, QWidget* parent = nullptr);
    /// `note` stands at the right of the title.
    void setShares(const QString& title, std::vector<Share> shares, const QString& note = {});
    const std::vector<Share>& shares() const { return shares_; }
    QSize sizeHint() const override;
    int heightForWidth(int width) const override;
    bool hasHeightForWidth() const override { return true; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme& theme_;
    QString title_, note_;
    std::vector<Share> shares_;
};

}  // namespace ringside::gui
