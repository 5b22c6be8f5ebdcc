// PathPanel: what decided how long the range took: the critical path by category and name, with the slack of what is off it.
#pragma once

#include <memory>

#include "gui/core/background.h"
#include "gui/core/panel.h"
#include "gui/core/table_view.h"
#include "traces/analysis/trace_path.h"

class QCheckBox;
class QLabel;

namespace ringside::gui {

class ShareBar;

class PathPanel : public Panel {
    Q_OBJECT
public:
    explicit PathPanel(const GuiContext& context, QWidget* parent = nullptr);
    const TableView& table() const { return *table_; }
    const ShareBar& bar() const { return *bar_; }

protected:
    void refresh() override;
    bool isWanted() const override;

private:
    struct Answer {
        TracePath path;
        std::vector<Time> slack;
    };
    void fill();
    void showOnTimeline(bool shown);

    QCheckBox* overlay_;
    ShareBar* bar_;
    QLabel* note_;
    TableView* table_;
    Background background_{this};
    DocumentPtr answeredOf_;
    TimeRange answeredFor_;
    Answer answer_;
};

}  // namespace ringside::gui
