// EmptyState: what the window shows while nothing is open: what to do next.
#pragma once

#include <vector>

#include <QByteArray>
#include <QStringList>
#include <QWidget>

namespace ringside::gui {

/// A scenario that comes with the program.
struct Example {
    QString title, hint;
    QByteArray scenario;  ///< JSON
};
const std::vector<Example>& examples();

class EmptyState : public QWidget {
    Q_OBJECT
public:
    explicit EmptyState(QWidget* parent = nullptr);
    void setRecentFiles(const QStringList& files);

signals:
    void openRequested();
    void fileRequested(const QString& path);
    void exampleRequested(int index);

private:
    QWidget* recent_;
};

}  // namespace ringside::gui
