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
    ~CompareView() override;

    Session& upper() { return *upper_; }
    Session& lower() { return *lower_; }
    DeltaTable& table() { return *table_; }
    LinkedViews& link() { return *link_; }
    QString summary() const;
    /// The side one works in, the upper one to begin with: keys act on it, panels speak of it, the scenario panel edits it.
    DocumentView& activeView() const { return *active_; }
    void workIn(DocumentView& side);
    DocumentView& upperView() { return *upperView_; }
    DocumentView& lowerView() { return *lowerView_; }

protected:
    void showEvent(QShowEvent* event) override;

private:
    /// Another version of one side: its name and steps; the chosen ones and the zoom stay.
    void documentChanged();
    void fillSteps();
    TimeRange chosenStep(bool above) const;
    void alignShift();
    void align();
    void refresh();

    GuiContext context_;
    Session *upper_, *lower_;
    LinkedViews* link_;
    QComboBox *upperStep_, *lowerStep_;
    QCheckBox *linked_, *together_;
    QLabel* summary_;
    DeltaTable* table_;
    DocumentView *upperView_, *lowerView_, *active_;
    QLabel *upperTitle_, *lowerTitle_;
    std::int64_t upperRank_ = 0, lowerRank_ = 0;  ///< whose steps are aligned
};

/// Opens a comparison in a tab of its own.
void showComparison(const GuiContext& context, DocumentPtr upper, DocumentPtr lower);
/// Adds the commands that open comparisons: with a file, with another tab.
void addCompareCommands(const GuiContext& context, QWidget* window);

}  // namespace ringside::gui
