// ErrorBar: what went wrong, above the tabs, until it is read.
#pragma once

#include <QFrame>
#include <QString>

class QLabel;

namespace ringside::gui {

class ErrorBar : public QFrame {
    Q_OBJECT
public:
    explicit ErrorBar(QWidget* parent = nullptr);
    void show(const QString& text);
    QString text() const;

private:
    QLabel* text_;
};

}  // namespace ringside::gui
