// CompareView: two documents above each other, their steps aligned and their zoom linked, and below them what differs.
#pragma once

#include <QWidget>

#include "gui/core/panel.h"
#include "traces/analysis/steps.h"

class QCheckBox;
class QComboBox;
class QLabel;

namespace ringside::gui {

class DeltaTable;
class DocumentView;
class LinkedViews;

class CompareView : public QWidget {
    Q_OBJECT
public:
    /// Both documents are not null.
    CompareView(const GuiContext& context, DocumentPtr upper, DocumentPtr lower, QWidget* parent = nullptr);

    Session& upper() { return *upper_; }
    Session& lower() { return *lower_; }
    DeltaTable& table() { return *table_; }
    LinkedViews& link() { return *link_; }
    QString summary() const;
    /// The side one works in; the upper one to begin with.
    DocumentView& activeView() const { return *active_; }

private:
    static void fillSteps(QComboBox* box, const Steps& steps);
    void align();
    void refresh();

    GuiContext context_;
    Session *upper_, *lower_;
    LinkedViews* link_;
    QComboBox *upperStep_, *lowerStep_;
    QCheckBox *linked_, *together_;
    QLabel* summary_;
    DeltaTable* table_;
    DocumentView* active_;
    std::int64_t upperRank_ = 0, lowerRank_ = 0;  ///< whose steps are aligned
};

/// Opens a comparison in a tab of its own.
void showComparison(const GuiContext& context, DocumentPtr upper, DocumentPtr lower);
/// Adds the commands that open comparisons: with a file, with another tab.
void addCompareCommands(const GuiContext& context, QWidget* window);

}  // namespace ringside::gui
