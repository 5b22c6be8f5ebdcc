// ScenarioPanel: edit the scenario of the current document; its prediction follows while one types.
#pragma once

#include <memory>

#include <QPointer>

#include "gui/core/panel.h"
#include "gui/scenario/predictor.h"
#include "gui/scenario/scenario_form.h"

class QStackedWidget;

namespace ringside::gui {

class FormView;
class KeptList;
class ResultHeader;
class WhatIfBar;

class ScenarioPanel : public Panel {
    Q_OBJECT
public:
    explicit ScenarioPanel(const GuiContext& context, QWidget* parent = nullptr);

    /// Puts a value into the scenario, as if it had been typed.
    void edit(const std::string& path, const Json& value);
    const ScenarioForm& form() const { return *form_; }
    Predictor& predictor() { return predictor_; }
    KeptList& kept() { return *kept_; }
    ResultHeader& header() { return *header_; }
    FormView& view() { return *view_; }

    /// Opens a new scenario in a tab of its own.
    void newScenario();
    void keepThisOne();
    Result<void> saveScenario(const QString& path) const;
    Result<void> saveResult(const QString& path) const;

protected:
    void refresh() override;

private:
    void addCommands();
    void predictNow();
    void showForm(const std::optional<FormError>& later = {});
    void compareWith(const DocumentPtr& kept);
    void saveAs(const char* title, const char* fallback, Result<void> (ScenarioPanel::*save)(const QString&) const);

    std::unique_ptr<ScenarioForm> form_;
    QPointer<Session> target_;  ///< whose scenario the form holds
    DocumentPtr shown_;         ///< the document that the form belongs to
    QStackedWidget* pages_;
    ResultHeader* header_;
    WhatIfBar* whatIf_;
    KeptList* kept_;
    FormView* view_;
    Predictor predictor_{this};
};

}  // namespace ringside::gui
