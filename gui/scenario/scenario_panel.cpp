#include "gui/scenario/scenario_panel.h"

#include <QFileDialog>
#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/compare/compare_view.h"
#include "gui/scenario/form_view.h"
#include "gui/scenario/kept_list.h"
#include "gui/scenario/result_header.h"
#include "gui/scenario/what_if_bar.h"
#include "traces/export/atomic_file.h"

namespace ringside::gui {
namespace {

QFrame* line() {
    auto* made = new QFrame;
    made->setFrameShape(QFrame::HLine);
    made->setForegroundRole(QPalette::Mid);
    return made;
}

}  // namespace

ScenarioPanel::ScenarioPanel(const GuiContext& context, QWidget* parent) : Panel(context, parent), form_(std::make_unique<ScenarioForm>(context.workspace.sharedCatalogs())) {
    header_ = new ResultHeader(context.theme);
    whatIf_ = new WhatIfBar(*form_, context.theme);
    kept_ = new KeptList(context.theme);
    view_ = new FormView(context.theme);
    view_->edited = whatIf_->edited = [this](const std::string& path, const Json& value) { edit(path, value); };
    kept_->changed = [this] { header_->show(shown_, kept_->chosen()); };
    kept_->compare = [this](const DocumentPtr& kept) { compareWith(kept); };
    kept_->open = [this](DocumentPtr kept) { this->context().workspace.add(std::move(kept)); };

    auto* keep = new QPushButton("Keep this one");
    keep->setObjectName("keep");
    keep->setToolTip("Remembers this result, to compare others with it");
    connect(keep, &QPushButton::clicked, this, &ScenarioPanel::keepThisOne);
    auto* buttons = new QHBoxLayout;
    buttons->setContentsMargins(12, 0, 12, 6);
    buttons->addWidget(keep);
    buttons->addStretch(1);

    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(header_);
    column->addLayout(buttons);
    column->addWidget(kept_);
    column->addWidget(line());
    column->addWidget(whatIf_);
    column->addWidget(line());
    column->addWidget(view_, 1);

    auto* none = new QWidget;
    auto* middle = new QVBoxLayout(none);
    auto* text = new QLabel("This trace was not predicted, so there is no scenario to edit.");
    text->setWordWrap(true);
    text->setAlignment(Qt::AlignCenter);
    auto* fresh = new QPushButton("New scenario");
    connect(fresh, &QPushButton::clicked, this, &ScenarioPanel::newScenario);
    middle->addStretch(1);
    middle->addWidget(text);
    middle->addWidget(fresh, 0, Qt::AlignHCenter);
    middle->addStretch(2);

    pages_ = new QStackedWidget;
    pages_->addWidget(page);
    pages_->addWidget(none);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->addWidget(pages_);
    setMinimumWidth(390);

    connect(&predictor_, &Predictor::predicted, this, [this](const DocumentPtr& document) {
        if (!target_) return;
        shown_ = document;
        target_->replaceDocument(document);
        header_->show(shown_, kept_->chosen());
        kept_->show(shown_);
    });
    connect(&predictor_, &Predictor::failed, this, [this](const Error& error) { showForm(form_->located(error)); });
    addCommands();
}

void ScenarioPanel::addCommands() {
    CommandRegistry& commands = context().commands;
    commands.add({"scenario.new", "Scenario", "New scenario", "Opens a scenario to edit in a tab of its own", {QKeySequence("Ctrl+N")}, [this] { newScenario(); }});
    commands.add({"scenario.keep", "Scenario", "Keep this one", "Remembers this result, to compare others with it", {QKeySequence("Ctrl+K")}, [this] { keepThisOne(); }});
    commands.add({"scenario.compareKept", "Scenario", "Compare with the kept one", "Puts the kept result and the present one above each other", {QKeySequence("Ctrl+Shift+K")},
                  [this] { compareWith(kept_->chosen()); }});
    commands.add({"scenario.find", "Scenario", "Find a setting", "Goes to the line that finds a setting by typing", {QKeySequence("Ctrl+E")}, [this] {
                      context().workspace.showPanel("scenario");
                      view_->findLine()->setFocus();
                  }});
    commands.add({.id = "scenario.save", .menu = "Scenario", .title = "Save scenario…", .help = "Writes the scenario as JSON, for ringside predict and for later", .keys = {QKeySequence::Save},
                  .run = [this] { saveAs("Save the scenario", "scenario.json", &ScenarioPanel::saveScenario); }, .shownKeys = {}, .separatorBefore = true});
    commands.add({"scenario.saveResult", "Scenario", "Save result…", "Writes the prediction as JSON, as ringside predict --json does", {QKeySequence("Ctrl+Shift+R")},
                  [this] { saveAs("Save the result", "result.json", &ScenarioPanel::saveResult); }});
}

void ScenarioPanel::refresh() {
    const bool editable = session() && session()->document().scenario;
    pages_->setCurrentIndex(editable || !session() ? 0 : 1);
    if (!editable) {
        target_ = nullptr;
        shown_ = nullptr;
        predictor_.forget();
        showForm();
        header_->show(nullptr, nullptr);
        return;
    }
    if (session() != target_ || session()->shared() != shown_) {
        predictor_.forget();
        target_ = session();
        shown_ = session()->shared();
        if (!form_->setDocument(shown_->scenarioAsGiven)) return;
    }
    showForm();
    header_->show(shown_, kept_->chosen());
    kept_->show(shown_);
}

void ScenarioPanel::showForm(const std::optional<FormError>& later) {
    view_->show(*form_, later);
    whatIf_->show(*form_);
    header_->setOutdated(form_->error() || later);
}

void ScenarioPanel::edit(const std::string& path, const Json& value) {
    form_->set(path, value);
    showForm();
    predictNow();
}

void ScenarioPanel::predictNow() {
    if (!form_->scenario()) {
        predictor_.forget();
        return;
    }
    if (!target_) {  // nothing was open: the first answer opens a tab
        const Result<DocumentPtr> document = predictDocument(form_->scenario(), {}, form_->document());
        if (!document) {
            showForm(form_->located(document.error()));
            return;
        }
        shown_ = *document;
        target_ = context().workspace.add(*document);
        return;
    }
    header_->setOutdated(true);
    predictor_.ask(form_->scenario(), form_->document(), target_->document().path);
}

void ScenarioPanel::newScenario() {
    target_ = nullptr;
    form_ = std::make_unique<ScenarioForm>(context().workspace.sharedCatalogs(), form_->document());
    predictNow();
    context().workspace.showPanel("scenario");
}

void ScenarioPanel::keepThisOne() {
    if (!shown_) return;
    kept_->keep(shown_);
    context().workspace.say("Kept; edit the scenario and the change is shown against it");
}

void ScenarioPanel::compareWith(const DocumentPtr& kept) {
    if (!kept || !shown_) {
        context().workspace.say("Keep a result first (Ctrl+K), then change the scenario");
        return;
    }
    auto* comparison = new CompareView(context(), kept, shown_);
    comparison->workIn(comparison->lowerView());  // what is edited further stands below what was kept
    context().workspace.showView(comparison, "Compare: " + QString::fromStdString(shortTitle(*shown_->scenario)));
}

Result<void> ScenarioPanel::saveScenario(const QString& path) const {
    Json document = {{"format", "ringside-scenario"}, {"version", 1}};
    for (const auto& entry : form_->document().items()) document[entry.key()] = entry.value();
    return atomicWriteFile(path.toStdString(), document.dump(2) + "\n");
}

Result<void> ScenarioPanel::saveResult(const QString& path) const {
    if (!shown_ || !shown_->prediction) return badInput(path.toStdString(), "nothing is predicted; open or edit a scenario first");
    return atomicWriteFile(path.toStdString(), toJson(*shown_->scenario, *shown_->prediction).dump(2) + "\n");
}

void ScenarioPanel::saveAs(const char* title, const char* fallback, Result<void> (ScenarioPanel::*save)(const QString&) const) {
    const QString path = QFileDialog::getSaveFileName(this, title, QSettings().value("folder").toString() + "/" + fallback, "JSON (*.json)");
    if (path.isEmpty()) return;
    if (const Result<void> saved = (this->*save)(path); !saved) emit context().workspace.failed(saved.error());
    else context().workspace.say("Written: " + path);
}

}  // namespace ringside::gui
