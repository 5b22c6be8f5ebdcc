#include "gui/core/table_view.h"

#include <algorithm>
#include <utility>

#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QFileDialog>
#include <QHeaderView>
#include <QMenu>
#include <QMessageBox>
#include <QSortFilterProxyModel>

#include <fmt/format.h>

#include "traces/export/atomic_file.h"

namespace ringside::gui {
namespace {

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

}  // namespace

void TableModel::set(std::vector<TableColumn> columns, std::vector<TableRow> rows) {
    beginResetModel();
    columns_ = std::move(columns);
    rows_ = std::move(rows);
    endResetModel();
}

QVariant TableModel::data(const QModelIndex& index, int role) const {
    const TableCell& cell = rows_[static_cast<std::size_t>(index.row())].cells[static_cast<std::size_t>(index.column())];
    switch (role) {
        case Qt::DisplayRole: return cell.text;
        case Qt::UserRole: return std::isnan(cell.value) ? QVariant(cell.text.toLower()) : QVariant(cell.value);
        case Qt::ToolTipRole: return cell.text.size() > 20 ? QVariant(cell.text) : QVariant();
        case Qt::DecorationRole: return cell.color.isValid() ? QVariant(cell.color) : QVariant();
        case Qt::BackgroundRole: return cell.background.isValid() ? QVariant(cell.background) : QVariant();
        case Qt::TextAlignmentRole: return static_cast<int>(columns_[static_cast<std::size_t>(index.column())].number ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
        default: return {};
    }
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section >= static_cast<int>(columns_.size())) return {};
    const TableColumn& column = columns_[static_cast<std::size_t>(section)];
    if (role == Qt::DisplayRole) return column.title;
    if (role == Qt::ToolTipRole) return column.tip.isEmpty() ? QVariant() : QVariant(column.tip);
    if (role == Qt::TextAlignmentRole) return static_cast<int>(column.number ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
    return {};
}

TableView::TableView(QWidget* parent) : QTableView(parent) {
    model_ = new TableModel(this);
    sorted_ = new QSortFilterProxyModel(this);
    sorted_->setSourceModel(model_);
    sorted_->setSortRole(Qt::UserRole);
    setModel(sorted_);
    setSortingEnabled(true);
    sorted_->sort(-1);
    horizontalHeader()->setSortIndicator(-1, Qt::DescendingOrder);
    setSelectionBehavior(SelectRows);
    setSelectionMode(ExtendedSelection);
    setAlternatingRowColors(true);
    setShowGrid(false);
    setWordWrap(false);
    setTextElideMode(Qt::ElideMiddle);
    setEditTriggers(NoEditTriggers);
    setIconSize(QSize(10, 10));
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 7);
    horizontalHeader()->setHighlightSections(false);
    setHorizontalScrollMode(ScrollPerPixel);
    connect(this, &QTableView::clicked, this, [this](const QModelIndex& index) {
        if (const std::uint32_t tag = tagOf(index); tag != 0xffffffff) emit activatedTag(tag);
    });
    connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& index) {
        if (const std::uint32_t tag = tagOf(index); tag != 0xffffffff) emit chosenTag(tag);
    });
}

std::uint32_t TableView::tagOf(const QModelIndex& index) const {
    return index.isValid() ? model_->rows()[static_cast<std::size_t>(sorted_->mapToSource(index).row())].tag : 0xffffffff;
}

void TableView::setTable(std::vector<TableColumn> columns, std::vector<TableRow> rows, int stretch) {
    bool same = columns.size() == model_->columns().size();
    for (std::size_t i = 0; same && i < columns.size(); ++i) same = columns[i].title == model_->columns()[i].title;
    model_->set(std::move(columns), std::move(rows));
    if (same && sized_) return fitStretched();
    sized_ = !model_->rows().empty();
    resizeColumnsToContents();
    // Names of kernels would push every figure out of sight.
    constexpr int kWidest = 380;
    for (int i = 0; i < model_->columnCount(); ++i)
        if (i != stretch && columnWidth(i) > kWidest) setColumnWidth(i, kWidest);
    stretched_ = stretch < model_->columnCount() ? stretch : -1;
    fitStretched();
}

void TableView::fitStretched() {
    if (stretched_ < 0 || stretched_ >= model_->columnCount()) return;
    constexpr int kNarrowest = 220;
    int others = 0;
    for (int i = 0; i < model_->columnCount(); ++i)
        if (i != stretched_) others += columnWidth(i);
    setColumnWidth(stretched_, std::max(std::min(kNarrowest, sizeHintForColumn(stretched_)), viewport()->width() - others));
}

void TableView::resizeEvent(QResizeEvent* event) {
    QTableView::resizeEvent(event);
    fitStretched();
}

std::string TableView::csv() const {
    std::string out;
    const std::vector<TableColumn>& columns = model_->columns();
    for (std::size_t c = 0; c < columns.size(); ++c) out += (c ? "," : "") + quoted((columns[c].csvTitle.isEmpty() ? columns[c].title : columns[c].csvTitle).toStdString());
    out += '\n';
    for (int r = 0; r < sorted_->rowCount(); ++r) {
        const TableRow& row = model_->rows()[static_cast<std::size_t>(sorted_->mapToSource(sorted_->index(r, 0)).row())];
        for (std::size_t c = 0; c < row.cells.size(); ++c) {
            const TableCell& cell = row.cells[c];
            out += (c ? "," : "") + (std::isnan(cell.value) ? quoted(cell.text.toStdString()) : fmt::format("{}", cell.value));
        }
        out += '\n';
    }
    return out;
}

void TableView::saveCsv() {
    const QString path = QFileDialog::getSaveFileName(window(), "Save the table", "table.csv", "CSV (*.csv)");
    if (path.isEmpty()) return;
    if (const Result<void> saved = atomicWriteFile(path.toStdString(), csv()); !saved) QMessageBox::warning(window(), "Save the table", QString::fromStdString(saved.error().toString()));
}

void TableView::copy() const {
    QStringList lines;
    for (const QModelIndex& row : selectionModel()->selectedRows()) {
        QStringList cells;
        for (int c = 0; c < sorted_->columnCount(); ++c) cells << sorted_->index(row.row(), c).data().toString();
        lines << cells.join('\t');
    }
    QApplication::clipboard()->setText(lines.join('\n'));
}

void TableView::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu(this);
    menu.addAction("Copy rows", this, [this] { copy(); })->setEnabled(selectionModel()->hasSelection());
    menu.addAction("Save the table as CSV…", this, &TableView::saveCsv);
    menu.exec(event->globalPos());
}

void TableView::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Copy)) copy();
    else if (!event->text().isEmpty() && event->text().front().isLetter()) event->ignore();  // they move the timeline
    else QTableView::keyPressEvent(event);
}

}  // namespace ringside::gui
