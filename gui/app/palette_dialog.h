// PaletteDialog: type a few letters, press Enter. For commands (Ctrl+Shift+P) and for anything else that has a name (tracks).
#pragma once

#include <functional>
#include <vector>

#include <QDialog>
#include <QString>

class QLineEdit;
class QListWidget;

namespace ringside::gui {

class PaletteDialog : public QDialog {
    Q_OBJECT
public:
    struct Entry {
        QString title, hint;  ///< the hint stands at the right: a shortcut
        std::function<void()> run;
    };
    /// Entries that match what was typed, the best first.
    using Finder = std::function<std::vector<Entry>(const QString& typed)>;

    PaletteDialog(const QString& prompt, Finder finder, QWidget* parent);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void fill();
    void colorRows();
    void runCurrent();

    Finder finder_;
    std::vector<Entry> entries_;
    QLineEdit* typed_;
    QListWidget* list_;
};

}  // namespace ringside::gui
