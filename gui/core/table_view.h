// TableView: a table of figures: sorted by value, right-aligned, copied and saved as CSV; a row leads to what it is about.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <QAbstractTableModel>
#include <QColor>
#include <QString>
#include <QTableView>

#include "model/base/units.h"

class QSortFilterProxyModel;

namespace ringside::gui {

struct TableColumn {
    QString title, tip = {};
    bool number = false;
    QString csvTitle = {};  ///< with the unit of TableCell::value; the title where empty
};

struct TableCell {
    QString text;
    double value = std::numeric_limits<double>::quiet_NaN();  ///< what is sorted by and saved; NaN: the text
    QColor color = {};                                        ///< a square before the text
    QColor background = {};

    static TableCell of(Time t) { return {QString::fromStdString(formatTime(t)), t.seconds(), {}, {}}; }
    static TableCell ofBytes(Bytes b) { return {QString::fromStdString(formatBytes(b)), static_cast<double>(b), {}, {}}; }
    static TableCell ofCount(std::int64_t n) { return {QString::fromStdString(formatCount(n)), static_cast<double>(n), {}, {}}; }
    static TableCell ofPercent(double share) { return {QString::number(100 * share, 'f', 1) + " %", share, {}, {}}; }
    static TableCell ofText(const std::string& text) { return {QString::fromStdString(text), std::numeric_limits<double>::quiet_NaN(), {}, {}}; }
};

struct TableRow {
    std::vector<TableCell> cells;
    std::uint32_t tag = 0xffffffff;  ///< what the row is about: a slice, mostly
};

class TableModel : public QAbstractTableModel {
    Q_OBJECT
public:
    using QAbstractTableModel::QAbstractTableModel;

    void set(std::vector<TableColumn> columns, std::vector<TableRow> rows);
    const std::vector<TableRow>& rows() const { return rows_; }

    int rowCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }
    int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : static_cast<int>(columns_.size()); }
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    const std::vector<TableColumn>& columns() const { return columns_; }

private:
    std::vector<TableColumn> columns_;
    std::vector<TableRow> rows_;
};

class TableView : public QTableView {
    Q_OBJECT
public:
    explicit TableView(QWidget* parent = nullptr);

    /// Keeps the order and widths that the user chose while the columns stay the same. `stretch`: the column that takes the rest.
    void setTable(std::vector<TableColumn> columns, std::vector<TableRow> rows, int stretch = 0);
    const TableModel& table() const { return *model_; }
    /// In the order shown: a header line, then the rows; numbers in full, text quoted where it must be.
    std::string csv() const;
    void saveCsv();

signals:
    void activatedTag(std::uint32_t tag);  ///< a click on a row that is about something
    void chosenTag(std::uint32_t tag);     ///< such a row became the current one, by mouse or keys

protected:
    void contextMenuEvent(QContextMenuEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void copy() const;
    /// Gives the column that takes the rest what the others leave, but never so little that a name cannot be read.
    void fitStretched();
    std::uint32_t tagOf(const QModelIndex& index) const;  ///< 0xffffffff: of nothing

    TableModel* model_;
    QSortFilterProxyModel* sorted_;
    int stretched_ = -1;
    bool sized_ = false;  ///< by what stood in the rows, not by headers alone
};

}  // namespace ringside::gui
