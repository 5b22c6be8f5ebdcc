// HistogramPanel: how long slices of the chosen slice's name took in the range.
#pragma once

#include "gui/core/background.h"
#include "gui/core/panel.h"
#include "traces/analysis/range_statistics.h"

class QCheckBox;
class QLabel;

namespace ringside::gui {

class HistogramView;

class HistogramPanel : public Panel {
    Q_OBJECT
public:
    explicit HistogramPanel(const GuiContext& context, QWidget* parent = nullptr);
    /// Of the last refresh; no counts where no slice is chosen.
    /// Layers together: names that differ in numbers only are one.
    const Histogram& histogram() const;

protected:
    void refresh() override;

private:
    QLabel* title_;
    QCheckBox *together_, *logarithmic_;
    HistogramView* view_;
    Background background_{this};
};

}  // namespace ringside::gui
