// DeltaTable: the deltas as a table, coloured by size, and the durations of the chosen name as two histograms over each other.
#pragma once

#include <QWidget>

#include "gui/compare/deltas.h"
#include "gui/core/table_view.h"
#include "gui/core/theme.h"

namespace ringside::gui {

/// Two histograms over the same bins.
class HistogramPair : public QWidget {
    Q_OBJECT
public:
    explicit HistogramPair(const Theme& theme, QWidget* parent = nullptr);
    void show(const DeltaRow* row);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    const Theme& theme_;
    QString name_;
    PairedHistogram histogram_;
};

class DeltaTable : public QWidget {
    Q_OBJECT
public:
    explicit DeltaTable(const Theme& theme, QWidget* parent = nullptr);

    void show(Deltas deltas);
    const Deltas& deltas() const { return deltas_; }
    const TableView& table() const { return *table_; }

private:
    const Theme& theme_;
    Deltas deltas_;
    TableView* table_;
    HistogramPair* histogram_;
};

}  // namespace ringside::gui
