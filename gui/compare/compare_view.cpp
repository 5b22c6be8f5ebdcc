#include "gui/compare/compare_view.h"

#include <algorithm>
#include <tuple>

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QInputDialog>
#include <QLabel>
#include <QSettings>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>

#include <fmt/format.h>

#include "gui/canvas/document_view.h"
#include "gui/compare/delta_table.h"
#include "gui/compare/linked_views.h"
#include "traces/analysis/pairing.h"

namespace ringside::gui {
namespace {

QString text(const std::string& utf8) { return QString::fromStdString(utf8); }

QWidget* framed(QLabel* title, QWidget* view) {
    auto* box = new QWidget;
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(title);
    column->addWidget(view, 1);
    return box;
}

}  // namespace

CompareView::CompareView(const GuiContext& context, DocumentPtr upper, DocumentPtr lower, QWidget* parent) : QWidget(parent), context_(context) {
    upper_ = new Session(std::move(upper), this);
    lower_ = new Session(std::move(lower), this);
    const RankPairs ranks = pairedRanks(upper_->document().trace, lower_->document().trace);
    if (!ranks.empty()) std::tie(upperRank_, lowerRank_) = ranks.front();
    link_ = new LinkedViews(upper_->view(), lower_->view(), this);
    upperStep_ = new QComboBox;
    lowerStep_ = new QComboBox;
    upperTitle_ = new QLabel;
    lowerTitle_ = new QLabel;
    for (QLabel* title : {upperTitle_, lowerTitle_}) title->setContentsMargins(12, 3, 12, 3);
    fillSteps();
    if (const auto aligned = alignedSteps(stepsOf(upper_->document().trace, upperRank_), stepsOf(lower_->document().trace, lowerRank_)); !aligned.empty()) {
        upperStep_->setCurrentIndex(static_cast<int>(aligned.front().first));
        lowerStep_->setCurrentIndex(static_cast<int>(aligned.front().second));
    }
    linked_ = new QCheckBox("Linked zoom");
    linked_->setChecked(true);
    linked_->setToolTip("What one timeline shows, the other shows too");
    together_ = new QCheckBox("Layers together");
    together_->setChecked(true);
    together_->setToolTip("Names that differ in numbers only are one row of the table");
    summary_ = new QLabel;
    summary_->setWordWrap(true);
    summary_->setObjectName("summary");
    table_ = new DeltaTable(context.theme);

    auto* bar = new QHBoxLayout;
    bar->setContentsMargins(12, 4, 12, 4);
    bar->addWidget(summary_, 1);
    bar->addWidget(new QLabel("Align"));
    bar->addWidget(upperStep_);
    bar->addWidget(new QLabel("with"));
    bar->addWidget(lowerStep_);
    bar->addWidget(linked_);
    bar->addWidget(together_);
    bar->setSpacing(8);
    auto* split = new QSplitter(Qt::Vertical);
    upperView_ = active_ = new DocumentView(*upper_, context, false);
    lowerView_ = new DocumentView(*lower_, context);
    split->addWidget(framed(upperTitle_, upperView_));
    split->addWidget(framed(lowerTitle_, lowerView_));
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
        for (DocumentView* view : {upperView_, lowerView_})
            if (now && (view == now || view->isAncestorOf(now))) workIn(*view);
    });
    split->addWidget(table_);
    split->setStretchFactor(0, 3);
    split->setStretchFactor(1, 3);
    split->setStretchFactor(2, 2);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(bar);
    column->addWidget(split, 1);

    connect(upperStep_, &QComboBox::currentIndexChanged, this, &CompareView::align);
    connect(lowerStep_, &QComboBox::currentIndexChanged, this, &CompareView::align);
    connect(linked_, &QCheckBox::toggled, this, [this](bool on) { link_->setLinked(on); });
    connect(together_, &QCheckBox::toggled, this, &CompareView::refresh);
    connect(&upper_->view(), &ViewState::selectionChanged, this, &CompareView::refresh);
    connect(&lower_->view(), &ViewState::selectionChanged, this, &CompareView::refresh);
    connect(&context.theme, &Theme::changed, this, &CompareView::refresh);
    connect(upper_, &Session::documentChanged, this, &CompareView::documentChanged);
    connect(lower_, &Session::documentChanged, this, &CompareView::documentChanged);
    align();
    workIn(*upperView_);
}

CompareView::~CompareView() {
    qApp->disconnect(this);  // the focus moves while its parts are taken down
    // Whoever follows the side that goes away follows a tab again.
    Workspace& workspace = context_.workspace;
    if (workspace.current() == upper_ || workspace.current() == lower_) workspace.setCurrent(workspace.sessions().empty() ? nullptr : workspace.sessions().back());
}

void CompareView::workIn(DocumentView& side) {
    active_ = &side;
    setFocusProxy(active_);
    for (const auto& [title, place, session, view] : {std::tuple{upperTitle_, "Above:", upper_, upperView_}, std::tuple{lowerTitle_, "Below:", lower_, lowerView_}}) {
        title->setText(QString("<b>%1</b>&nbsp; %2").arg(place, text(session->document().title).toHtmlEscaped()));
        title->setForegroundRole(view == active_ ? QPalette::Link : QPalette::WindowText);
    }
    if (isVisible()) context_.workspace.setCurrent(&active_->session());
}

void CompareView::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    context_.workspace.setCurrent(&active_->session());
}

void CompareView::documentChanged() {
    fillSteps();
    alignShift();
    workIn(*active_);
    refresh();
}

void CompareView::fillSteps() {
    for (const auto& [box, session, rank] : {std::tuple{upperStep_, upper_, upperRank_}, std::tuple{lowerStep_, lower_, lowerRank_}}) {
        const QSignalBlocker quiet(box);
        const int chosen = box->currentIndex();
        const Steps steps = stepsOf(session->document().trace, rank);
        box->clear();
        for (const Step& step : steps.steps) box->addItem(QString("step %1 (%2)").arg(step.number).arg(text(formatTime(step.length()))));
        if (steps.steps.empty()) box->addItem("the whole trace");
        box->setCurrentIndex(std::clamp(chosen, 0, box->count() - 1));
        box->setEnabled(steps.steps.size() > 1);
    }
}

TimeRange CompareView::chosenStep(bool above) const {
    const Trace& trace = (above ? upper_ : lower_)->document().trace;
    return stepRange(trace, above ? upperRank_ : lowerRank_, static_cast<std::size_t>(std::max(0, (above ? upperStep_ : lowerStep_)->currentIndex())));
}

void CompareView::alignShift() { link_->setShift(chosenStep(false).begin - chosenStep(true).begin); }

void CompareView::align() {
    alignShift();
    const TimeRange above = chosenStep(true), below = chosenStep(false);
    // Both steps whole, the longer one decides.
    const Time length = std::max(above.length(), below.length());
    const Time room = Time::fromPicoseconds(length.picoseconds() / 40);
    upper_->view().setWindow({above.begin - room, above.begin + length + room});
    refresh();
}

void CompareView::refresh() {
    const TimeRange above = upper_->view().selection().value_or(chosenStep(true)), below = lower_->view().selection().value_or(chosenStep(false));
    Deltas deltas = deltasOf(upper_->document().trace, above, lower_->document().trace, below, together_->isChecked());
    const bool selected = upper_->view().selection().has_value();
    const double before = above.length().seconds(), after = below.length().seconds();
    std::string line = selected ? fmt::format("Selected range: {} above, {} below", formatSeconds(before), formatSeconds(after))
                                : fmt::format("Step: {} above, {} below", formatSeconds(before), formatSeconds(after));
    if (!selected && before > 0) line += fmt::format(" ({}{:.1f} %)", after >= before ? "+" : "−", std::abs(after / before - 1) * 100);
    if (deltas.joinedByTask > 0) line += fmt::format("; {} slices joined by task id", deltas.joinedByTask);
    if (deltas.ranks.size() == 1) line += fmt::format("; rank {}", deltas.ranks.front());
    else if (!deltas.ranks.empty()) line += fmt::format("; {} ranks that both have", deltas.ranks.size());
    summary_->setText(text(line));
    table_->show(std::move(deltas));
}

QString CompareView::summary() const { return summary_->text(); }

void showComparison(const GuiContext& context, DocumentPtr upper, DocumentPtr lower) {
    const QString title = "Compare: " + text(upper->title) + " | " + text(lower->title);
    context.workspace.showView(new CompareView(context, std::move(upper), std::move(lower)), title);
}

void addCompareCommands(const GuiContext& context, QWidget* window) {
    context.commands.add({"compare.file", "Compare", "Compare with a file…", "Puts another trace or scenario below this one", {QKeySequence("Ctrl+Shift+O")}, [context, window] {
                              Session* session = context.workspace.current();
                              if (!session) return context.workspace.say("Open a trace or a scenario first");
                              const QStringList paths = QFileDialog::getOpenFileNames(window, "Compare with (several: the ranks of one run)", QSettings().value("folder").toString(),
                                                                                      "Traces and scenarios (*.json *.json.gz *.gz);;All files (*)");
                              context.workspace.load(paths, window, [context, upper = session->shared()](DocumentPtr other) { showComparison(context, upper, std::move(other)); });
                          }});
    context.commands.add({"compare.tab", "Compare", "Compare with another tab…", "Puts another open document below this one", {QKeySequence("Ctrl+D")}, [context, window] {
                              Session* session = context.workspace.current();
                              QStringList titles;
                              std::vector<Session*> others;
                              for (Session* other : context.workspace.sessions())
                                  if (other != session) {
                                      titles << QString("%1. %2").arg(others.size() + 1).arg(text(other->document().title));
                                      others.push_back(other);
                                  }
                              if (!session || others.empty()) return context.workspace.say("Open a second trace or scenario first");
                              bool chosen = others.size() == 1;
                              const QString title = chosen ? titles.front() : QInputDialog::getItem(window, "Compare with", "Document", titles, 0, false, &chosen);
                              if (chosen) showComparison(context, session->shared(), others[static_cast<std::size_t>(titles.indexOf(title))]->shared());
                          }});
}

}  // namespace ringside::gui
