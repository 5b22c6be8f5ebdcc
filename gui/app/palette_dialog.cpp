#include "gui/app/palette_dialog.h"

#include <utility>

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QVBoxLayout>

namespace ringside::gui {

PaletteDialog::PaletteDialog(const QString& prompt, Finder finder, QWidget* parent) : QDialog(parent, Qt::Popup | Qt::FramelessWindowHint), finder_(std::move(finder)) {
    typed_ = new QLineEdit(this);
    typed_->setPlaceholderText(prompt);
    typed_->setClearButtonEnabled(true);
    list_ = new QListWidget(this);
    list_->setUniformItemSizes(true);
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->addWidget(typed_);
    layout->addWidget(list_);
    resize(520, 380);
    if (parent) move(parent->mapToGlobal(QPoint((parent->width() - width()) / 2, 80)));
    typed_->installEventFilter(this);
    typed_->setFocus();
    connect(typed_, &QLineEdit::textChanged, this, &PaletteDialog::fill);
    connect(list_, &QListWidget::currentRowChanged, this, &PaletteDialog::colorRows);
    connect(list_, &QListWidget::itemActivated, this, &PaletteDialog::runCurrent);
    connect(list_, &QListWidget::itemClicked, this, &PaletteDialog::runCurrent);
    fill();
}

void PaletteDialog::fill() {
    entries_ = finder_(typed_->text());
    list_->clear();
    for (const Entry& entry : entries_) {
        auto* item = new QListWidgetItem(list_);
        auto* row = new QWidget;
        auto* layout = new QHBoxLayout(row);
        layout->setContentsMargins(6, 3, 6, 3);
        layout->addWidget(new QLabel(entry.title));
        layout->addStretch();
        layout->addWidget(new QLabel(entry.hint));
        item->setSizeHint(row->sizeHint());
        list_->setItemWidget(item, row);
    }
    if (!entries_.empty()) list_->setCurrentRow(0);
    colorRows();
}

/// Labels do not know that their row is chosen.
void PaletteDialog::colorRows() {
    for (int r = 0; r < list_->count(); ++r) {
        const QWidget* row = list_->itemWidget(list_->item(r));
        if (!row) continue;
        const QList<QLabel*> labels = row->findChildren<QLabel*>();
        for (qsizetype i = 0; i < labels.size(); ++i) labels[i]->setForegroundRole(r == list_->currentRow() ? QPalette::HighlightedText : i == 0 ? QPalette::WindowText : QPalette::PlaceholderText);
    }
}

void PaletteDialog::paintEvent(QPaintEvent* event) {
    QDialog::paintEvent(event);
    QPainter painter(this);
    painter.setPen(palette().color(QPalette::Dark));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void PaletteDialog::runCurrent() {
    const int row = list_->currentRow();
    if (row < 0) return;
    const std::function<void()> run = entries_[static_cast<std::size_t>(row)].run;
    accept();
    if (run) run();
}

bool PaletteDialog::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
    const int key = static_cast<QKeyEvent*>(event)->key();
    const int rows = list_->count();
    if ((key == Qt::Key_Down || key == Qt::Key_Up) && rows > 0) {
        list_->setCurrentRow((list_->currentRow() + (key == Qt::Key_Down ? 1 : rows - 1)) % rows);
        return true;
    }
    if (key == Qt::Key_Return || key == Qt::Key_Enter) {
        runCurrent();
        return true;
    }
    return QDialog::eventFilter(watched, event);
}

}  // namespace ringside::gui
