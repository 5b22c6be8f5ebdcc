// StudyView: what happens when something is varied. Scaling curves and sweeps of the current scenario, with a chart each.
#pragma once

#include <memory>
#include <vector>

#include <QWidget>

#include "gui/core/panel.h"
#include "gui/study/study_figures.h"
#include "gui/study/study_chart.h"
#include "gui/study/study_runner.h"

class QComboBox;
class QLineEdit;
class QTabWidget;

namespace ringside::gui {

/// What both kinds of study share: the scenario they vary, prices, a runner, a chart, and rows that open.
class StudyPage : public QWidget {
    Q_OBJECT
public:
    StudyPage(const GuiContext& context, Json scenario, QWidget* parent = nullptr);

    StudyRunner& runner() { return *runner_; }
    StudyChart& chart() { return *chart_; }
    const std::vector<StudyRow>& rows() const { return rows_; }
    virtual void start() = 0;
    /// Opens the row's timeline in a tab of its own.
    void openRow(std::size_t row);

protected:
    virtual void draw() = 0;
    QString describe(std::size_t row) const;
    QComboBox* figureBox(std::vector<StudyFigure> figures, StudyFigure chosen);
    static StudyFigure figureIn(const QComboBox* box);
    void saveRows();

    GuiContext context_;
    Json scenario_;
    std::shared_ptr<const PriceCatalog> prices_;
    StudyRunner* runner_;
    StudyChart* chart_;
    std::vector<StudyRow> rows_;
};

/// More and more devices, weak or strong, a line per strategy.
class ScalingPage : public StudyPage {
    Q_OBJECT
public:
    ScalingPage(const GuiContext& context, Json scenario, QWidget* parent = nullptr);
    void start() override;

private:
    void draw() override;

    QComboBox *mode_, *figure_;
    QLineEdit *devices_, *strategies_;
    ScalingStudy study_;
};

/// A grid of settings as points, with the front that nothing beats.
class SweepPage : public StudyPage {
    Q_OBJECT
public:
    SweepPage(const GuiContext& context, Json scenario, QWidget* parent = nullptr);
    void start() override;

private:
    void draw() override;

    std::vector<QLineEdit*> axes_;
    QComboBox *x_, *y_;
};

class StudyView : public QWidget {
    Q_OBJECT
public:
    StudyView(const GuiContext& context, Json scenario, QWidget* parent = nullptr);

    ScalingPage& scaling() { return *scaling_; }
    SweepPage& sweep() { return *sweep_; }
    void showSweep();

private:
    QTabWidget* tabs_;
    ScalingPage* scaling_;
    SweepPage* sweep_;
};

/// Adds the commands that open studies of the current scenario.
void addStudyCommands(const GuiContext& context);

}  // namespace ringside::gui
