#include "gui/study/study_view.h"

#include <map>

#include <QComboBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTabWidget>
#include <QVBoxLayout>

#include <fmt/format.h>

#include "traces/export/atomic_file.h"

namespace ringside::gui {
namespace {

QString text(std::string_view utf8) { return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size())); }

QString titleOf(StudyFigure figure) { return unitOf(figure).empty() ? text(nameOf(figure)) : text(nameOf(figure)) + " (" + text(unitOf(figure)) + ")"; }

QString valueText(const StudyRow& row, StudyFigure figure) {
    const auto value = figureOf(row, figure);
    return value ? text(fmt::format("{}: {} {}", nameOf(figure), formatShortCount(*value), unitOf(figure))) : QString();
}

/// Efficiency and speed-up belong to scaling alone; they come before the figures that all rows have.
enum ScalingFigureIndex { kEfficiency = -1, kSpeedUp = -2 };

std::string joined(const QString& line) { return line.simplified().remove(' ').toStdString(); }

}  // namespace

StudyPage::StudyPage(const GuiContext& context, Json scenario, QWidget* parent) : QWidget(parent), context_(context), scenario_(std::move(scenario)) {
    prices_ = std::make_shared<const PriceCatalog>(PriceCatalog::builtin().value_or(PriceCatalog()));
    runner_ = new StudyRunner;
    runner_->started = [this] { start(); };
    chart_ = new StudyChart(context.theme);
    chart_->describe = [this](std::size_t row) { return describe(row); };
    chart_->open = [this](std::size_t row) { openRow(row); };
}

QComboBox* StudyPage::figureBox(std::vector<StudyFigure> figures, StudyFigure chosen) {
    auto* box = new QComboBox;
    for (const StudyFigure figure : figures) box->addItem(titleOf(figure), static_cast<int>(figure));
    box->setCurrentIndex(box->findData(static_cast<int>(chosen)));
    connect(box, &QComboBox::currentIndexChanged, this, [this] { draw(); });
    return box;
}

StudyFigure StudyPage::figureIn(const QComboBox* box) { return static_cast<StudyFigure>(box->currentData().toInt()); }

QString StudyPage::describe(std::size_t index) const {
    const StudyRow& row = rows_[index];
    QStringList lines = {text(row.label)};
    for (const StudyFigure figure : {StudyFigure::StepTime, StudyFigure::Throughput, StudyFigure::Mfu, StudyFigure::ExposedShare, StudyFigure::PeakMemory, StudyFigure::UsdPerMillionSamples})
        if (const QString line = valueText(row, figure); !line.isEmpty()) lines << line;
    if (row.verdict != MemoryVerdict::Fits) lines << (row.verdict == MemoryVerdict::Tight ? "Memory is tight" : "Does not fit in memory");
    lines << "Click to open its timeline";
    return lines.join("\n");
}

void StudyPage::openRow(std::size_t index) {
    const StudyRow& row = rows_[index];
    const Result<DocumentPtr> document = [&]() -> Result<DocumentPtr> {
        TRY(Scenario scenario, resolveScenario(row.document, row.label, context_.workspace.catalogs()));
        return predictDocument(std::make_shared<const Scenario>(std::move(scenario)), {}, row.document);
    }();
    if (document) context_.workspace.add(*document);
    else emit context_.workspace.failed(document.error());
}

void StudyPage::saveRows() {
    const QString path = QFileDialog::getSaveFileName(this, "Save the rows", "study.csv", "CSV (*.csv)");
    if (path.isEmpty()) return;
    if (const Result<void> saved = atomicWriteFile(path.toStdString(), toCsv(rows_)); !saved) emit context_.workspace.failed(saved.error());
    else context_.workspace.say("Written: " + path);
}

ScalingPage::ScalingPage(const GuiContext& context, Json scenario, QWidget* parent) : StudyPage(context, std::move(scenario), parent) {
    mode_ = new QComboBox;
    mode_->addItem("Weak: the batch per device stays", static_cast<int>(ScalingMode::Weak));
    mode_->addItem("Strong: the global batch stays", static_cast<int>(ScalingMode::Strong));
    devices_ = new QLineEdit("1-64");
    devices_->setObjectName("devices");
    devices_->setToolTip("Device counts; a range doubles: 1-64 is 1, 2, 4, …, 64");
    strategies_ = new QLineEdit("ddp, zero2, fsdp2");
    strategies_->setObjectName("strategies");
    strategies_->setToolTip("Names from `ringside catalog strategies`, with commas");
    figure_ = figureBox({StudyFigure::StepTime, StudyFigure::Throughput, StudyFigure::Mfu, StudyFigure::ExposedShare, StudyFigure::PeakMemory, StudyFigure::UsdPerHour, StudyFigure::UsdPerMillionSamples},
                        StudyFigure::StepTime);
    figure_->setObjectName("figure");
    figure_->insertItem(0, "Speed-up", kSpeedUp);
    figure_->insertItem(0, "Efficiency (%)", kEfficiency);
    figure_->setCurrentIndex(0);
    auto* csv = new QPushButton("Rows as CSV…");
    connect(csv, &QPushButton::clicked, this, &ScalingPage::saveRows);

    auto* form = new QHBoxLayout;
    for (const auto& [name, widget, stretch] : {std::tuple{"Scaling", static_cast<QWidget*>(mode_), 2}, std::tuple{"Devices", static_cast<QWidget*>(devices_), 1},
                                                std::tuple{"Strategies", static_cast<QWidget*>(strategies_), 3}}) {
        form->addWidget(new QLabel(name));
        form->addWidget(widget, stretch);
    }
    auto* show = new QHBoxLayout;
    show->addWidget(new QLabel("Show"));
    show->addWidget(figure_);
    show->addStretch(1);
    show->addWidget(csv);
    auto* column = new QVBoxLayout(this);
    column->addLayout(form);
    column->addWidget(runner_);
    column->addLayout(show);
    column->addWidget(chart_, 1);
    draw();
}

void ScalingPage::start() {
    const auto counts = parseDeviceCounts(devices_->text().toStdString());
    if (!counts) {
        runner_->say(QString::fromStdString(counts.error().message));
        return;
    }
    ScalingRequest request;
    request.scenario = scenario_;
    request.source = "scenario";
    request.mode = static_cast<ScalingMode>(mode_->currentData().toInt());
    request.devices = *counts;
    for (const QString& name : strategies_->text().split(',', Qt::SkipEmptyParts)) request.strategies.push_back(name.trimmed().toStdString());
    struct Answer {
        Result<ScalingStudy> study;
        std::vector<StudyRow> rows;
    };
    runner_->run(
        [request, catalogs = context_.workspace.sharedCatalogs(), prices = prices_](const StudyWatch& watch) mutable {
            request.stop = watch.stop;
            request.progress = watch.progress;
            request.threads = watch.threads;
            Answer answer{studyScaling(request, *catalogs), {}};
            if (answer.study) answer.rows = rowsOf(*answer.study, request.scenario, *catalogs, *prices);
            return answer;
        },
        [this](Answer answer) {
            if (!answer.study) {
                runner_->say(QString::fromStdString(answer.study.error().toString()));
                return;
            }
            study_ = std::move(*answer.study);
            rows_ = std::move(answer.rows);
            QString said = QString("%1 points").arg(rows_.size());
            if (!study_.skipped.empty())
                said += QString(", %1 left out (%2 on %3: %4)").arg(study_.skipped.size()).arg(text(study_.skipped.front().strategy)).arg(study_.skipped.front().devices).arg(text(study_.skipped.front().reason));
            runner_->say(said);
            draw();
        });
}

void ScalingPage::draw() {
    ChartContent content;
    content.doublingX = true;
    content.x = "Devices";
    const int chosen = figure_->currentData().toInt();
    const bool relative = chosen == kEfficiency || chosen == kSpeedUp;
    content.y = figure_->currentText();
    content.title = rows_.empty() ? QString("Run the study to see how this scenario scales") : text(fmt::format("{} on {}, {} scaling", study_.model, study_.device, nameOf(study_.mode)));
    std::map<std::string, std::size_t> lineOf;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const StudyRow& row = rows_[i];
        std::optional<double> value;
        if (relative) {
            if (const auto& speedUp = study_.points[i].speedUp) value = chosen == kEfficiency ? speedUp->efficiency * 100 : speedUp->speedup;
        } else {
            value = figureOf(row, static_cast<StudyFigure>(chosen));
        }
        if (!value) continue;
        const auto [at, isNew] = lineOf.try_emplace(row.strategy, content.lines.size());
        if (isNew) content.lines.push_back({.name = text(row.strategy), .points = {}, .color = static_cast<int>(content.lines.size())});
        content.lines[at->second].points.push_back({static_cast<double>(row.devices), *value, i, row.verdict == MemoryVerdict::OutOfMemory});
        most = std::max(most, row.devices);
    }
    if (relative && !content.lines.empty()) {
        ChartLine ideal{.name = "ideal", .points = {}, .color = -2, .joined = true, .dashed = true, .marks = false};
        for (std::int64_t n = study_.baseline; n <= most; n *= 2)
            ideal.points.push_back({static_cast<double>(n), chosen == kEfficiency ? 100 : static_cast<double>(n) / static_cast<double>(study_.baseline)});
        content.lines.push_back(std::move(ideal));
    }
    chart_->show(std::move(content));
}

SweepPage::SweepPage(const GuiContext& context, Json scenario, QWidget* parent) : StudyPage(context, std::move(scenario), parent) {
    auto* form = new QHBoxLayout;
    form->addWidget(new QLabel("Vary"));
    for (const char* axis : {"strategy=ddp,zero2,zero3,fsdp2", "micro_batch=1,2,4,8", "recompute=none,full"}) {
        auto* line = new QLineEdit(axis);
        line->setObjectName(QString("axis%1").arg(axes_.size()));
        line->setPlaceholderText("key=value,value,…");
        line->setToolTip("Any key of the scenario and the values to try; empty: nothing");
        line->setCursorPosition(0);
        axes_.push_back(line);
        form->addWidget(line, 1);
    }
    const std::vector<StudyFigure> figures = {StudyFigure::StepTime, StudyFigure::Throughput, StudyFigure::Tokens, StudyFigure::Mfu, StudyFigure::ExposedShare,
                                              StudyFigure::PeakMemory, StudyFigure::UsdPerHour, StudyFigure::UsdPerMillionSamples, StudyFigure::Devices};
    x_ = figureBox(figures, StudyFigure::Throughput);
    y_ = figureBox(figures, StudyFigure::PeakMemory);
    auto* csv = new QPushButton("Rows as CSV…");
    connect(csv, &QPushButton::clicked, this, &SweepPage::saveRows);
    auto* show = new QHBoxLayout;
    show->addWidget(new QLabel("Across"));
    show->addWidget(x_);
    show->addWidget(new QLabel("Up"));
    show->addWidget(y_);
    show->addStretch(1);
    show->addWidget(csv);
    auto* bottom = new QHBoxLayout;
    bottom->addWidget(runner_, 1);
    auto* column = new QVBoxLayout(this);
    column->addLayout(form);
    column->addLayout(bottom);
    column->addLayout(show);
    column->addWidget(chart_, 1);
    draw();
}

void SweepPage::start() {
    SweepDefinition definition;
    definition.base = scenario_;
    definition.source = "scenario";
    for (const QLineEdit* line : axes_)
        if (!joined(line->text()).empty()) definition.axes.push_back(joined(line->text()));
    runner_->run([definition, catalogs = context_.workspace.sharedCatalogs(), prices = prices_](const StudyWatch& watch) { return sweepRows(definition, *catalogs, *prices, watch); },
                 [this](Result<SweepAnswer> answer) {
                     if (!answer) {
                         runner_->say(QString::fromStdString(answer.error().toString()));
                         return;
                     }
                     rows_ = std::move(answer->rows);
                     QString said = QString("%1 points%2").arg(rows_.size()).arg(answer->stopped ? ", stopped" : "");
                     if (answer->failed > 0) said += QString(", %1 cannot be predicted (%2)").arg(answer->failed).arg(text(answer->firstError));
                     runner_->say(said);
                     draw();
                 });
}

void SweepPage::draw() {
    ChartContent content;
    const StudyFigure x = figureIn(x_), y = figureIn(y_);
    content.x = titleOf(x);
    content.y = titleOf(y);
    content.title = rows_.empty() ? "Run the sweep to see every combination" : "Each point is a scenario; click one to open its timeline";
    std::map<std::string, std::size_t> lineOf;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const auto px = figureOf(rows_[i], x), py = figureOf(rows_[i], y);
        if (!px || !py) continue;
        const auto [at, isNew] = lineOf.try_emplace(rows_[i].strategy, content.lines.size());
        if (isNew) content.lines.push_back({.name = text(rows_[i].strategy), .points = {}, .color = static_cast<int>(content.lines.size()), .joined = false});
        content.lines[at->second].points.push_back({*px, *py, i, rows_[i].verdict == MemoryVerdict::OutOfMemory});
    }
    const std::vector<std::size_t> best = bestRows(rows_, x, y);
    if (best.size() > 1) {
        ChartLine front{.name = "nothing beats these", .points = {}, .color = -1, .joined = true, .dashed = true, .marks = false};
        for (const std::size_t row : best) front.points.push_back({*figureOf(rows_[row], x), *figureOf(rows_[row], y), row});
        content.lines.push_back(std::move(front));
    }
    chart_->show(std::move(content));
}

StudyView::StudyView(const GuiContext& context, Json scenario, QWidget* parent) : QWidget(parent) {
    tabs_ = new QTabWidget;
    scaling_ = new ScalingPage(context, scenario);
    sweep_ = new SweepPage(context, std::move(scenario));
    tabs_->addTab(scaling_, "Scaling");
    tabs_->addTab(sweep_, "Sweep");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(tabs_);
}

void StudyView::showSweep() { tabs_->setCurrentWidget(sweep_); }

void addStudyCommands(const GuiContext& context) {
    const auto open = [context](bool sweep) {
        const Session* session = context.workspace.current();
        if (!session || !session->document().scenario) {
            context.workspace.say("Open a scenario first: a study varies one");
            return;
        }
        auto* view = new StudyView(context, session->document().scenarioAsGiven);
        if (sweep) view->showSweep();
        context.workspace.showView(view, "Study: " + QString::fromStdString(session->document().scenario->model.name));
        // With what stands in the form to begin with: whoever asks for a study wants to see one.
        if (sweep) view->sweep().start();
        else view->scaling().start();
    };
    context.commands.add({"study.scaling", "Study", "Scaling of this scenario", "How it behaves on more and more devices", {QKeySequence("Ctrl+G")}, [open] { open(false); }});
    context.commands.add({"study.sweep", "Study", "Sweep of this scenario", "Every combination of some settings, and which of them nothing beats", {QKeySequence("Ctrl+Shift+G")}, [open] { open(true); }});
}

}  // namespace ringside::gui
