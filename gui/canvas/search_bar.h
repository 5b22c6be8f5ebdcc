// SearchBar: a regular expression, how many slices it found, and the way from hit to hit.
#pragma once

#include <vector>

#include <QWidget>

#include "gui/core/background.h"
#include "gui/core/session.h"

class QLabel;
class QLineEdit;
class QTimer;

namespace ringside::gui {

class SearchBar : public QWidget {
    Q_OBJECT
public:
    explicit SearchBar(Session& session, QWidget* parent = nullptr);

    /// Shows it and puts the cursor there.
    void begin();
    void setPattern(const QString& pattern);
    /// To the next hit after the chosen slice, or the one before it; around the end.
    void step(bool forward);
    QString status() const;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    void search();
    void showStatus();

    Session& session_;
    QLineEdit* typed_;
    QLabel* status_;
    QTimer* timer_;
    Background background_{this};
    std::vector<std::uint32_t> hits_;  ///< by start
    std::ptrdiff_t at_ = -1;
    QString error_;
};

}  // namespace ringside::gui
