#include "gui/app/screenshot.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QEventLoop>

#include "gui/canvas/document_view.h"
#include "gui/compare/compare_view.h"
#include "gui/core/background.h"
#include "gui/scenario/predictor.h"
#include "gui/study/study_runner.h"

namespace ringside::gui {
namespace {

void applyView(MainWindow& window, Workspace& workspace, const GuiOptions& options) {
    if (!options.panel.isEmpty()) window.showPanel(options.panel);
    if (options.panel == "path") window.commands().action("view.path")->trigger();  // whoever asks for it wants to see where it runs
    if (QAction* study = window.commands().action("study." + options.panel)) study->trigger();
    Session* session = workspace.current();
    if (session && options.range) {
        session->view().select(clamp(*options.range, session->view().trace()));
        session->view().setWindow(fitTo(*options.range, session->view().trace()));
    }
}

}  // namespace

bool settle(QWidget& window) {
    QElapsedTimer clock;
    clock.start();
    int quiet = 0;
    while (clock.elapsed() < 60'000) {
        QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents, 30);
        bool working = false;
        for (const Background* background : window.findChildren<Background*>()) working = working || background->running();
        for (const Predictor* predictor : window.findChildren<Predictor*>()) working = working || predictor->busy();
        for (const StudyRunner* runner : window.findChildren<StudyRunner*>()) working = working || runner->running();
        for (const QTimer* timer : window.findChildren<QTimer*>()) working = working || (timer->isSingleShot() && timer->isActive() && timer->interval() < 1000);
        quiet = working ? 0 : quiet + 1;
        if (quiet >= 3) return true;
    }
    return false;
}

Result<void> takeScreenshot(MainWindow& window, Workspace& workspace, const GuiOptions& options) {
    std::vector<std::string> files;
    for (const QString& file : options.files) files.push_back(file.toStdString());
    for (const std::vector<std::string>& paths : options.together && !files.empty() ? std::vector<std::vector<std::string>>{files} : asDocuments(files)) {
        TRY(DocumentPtr document, openDocument(paths, workspace.catalogs()));
        workspace.add(std::move(document));
    }
    if (!options.compare.isEmpty()) {
        TRY(DocumentPtr other, openDocument({options.compare.toStdString()}, workspace.catalogs()));
        showComparison(window.context(), workspace.current()->shared(), std::move(other));
    }
    window.resize(options.size);
    window.show();
    applyView(window, workspace, options);
    if (!settle(window)) return failure(ErrorCode::RuntimeFailure, options.screenshot.toStdString(), "the panels were not done after a minute");
    if (options.screenshot.endsWith(".svg", Qt::CaseInsensitive)) {
        if (!window.currentView()) return failure(ErrorCode::Usage, "--screenshot", "an .svg has the timeline alone, and no file was given");
        return savePicture(*window.currentView(), options.screenshot);
    }
    return savePicture(window, options.screenshot);
}

void applyWhenOpen(MainWindow& window, Workspace& workspace, const GuiOptions& options) {
    if (options.files.isEmpty()) return;
    auto* once = new QObject(&window);
    QObject::connect(&workspace, &Workspace::openingChanged, once, [&window, &workspace, options, once](const QString&, double progress) {
        if (progress >= 0) return;
        workspace.disconnect(once);
        once->deleteLater();
        applyView(window, workspace, options);
        if (options.compare.isEmpty() || !workspace.current()) return;  // what was wrong with it has been said
        workspace.load({options.compare}, &window, [&window, upper = workspace.current()->shared()](DocumentPtr other) { showComparison(window.context(), upper, std::move(other)); });
    });
    if (options.together) workspace.openTogether(options.files);
    else workspace.open(options.files);
}

}  // namespace ringside::gui
