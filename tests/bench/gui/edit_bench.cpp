// From an edit of a scenario to the new picture, as a person sees it: wall-clock time from the edit in the panel, over prediction, trace
// and document in another thread, to the painted window of 1920 × 1080.
#include <QCoreApplication>
#include <QEventLoop>

#include "gui/app/main_window.h"
#include "gui/app/screenshot.h"
#include "gui/canvas/document_view.h"
#include "gui/scenario/scenario_panel.h"
#include "screen.h"

namespace ringside::gui {
namespace {

void editToPicture(benchmark::State& state) {
    Workspace workspace(Catalogs::builtin().value());
    Theme theme;
    MainWindow window(workspace, theme);
    const Json json = Json::parse(R"({"model": "llama-3-8b", "device": "h100-sxm", "devices": 8, "training": {"seq_len": 4096, "precision": "bf16-master"}, "strategy": "fsdp2"})");
    Session* session = workspace.add(predictDocument(std::make_shared<const Scenario>(resolveScenario(json, "benchmark", workspace.catalogs()).value()), {}, json).value());
    window.resize(kScreen);
    window.show();
    window.showPanel("range");
    settle(window);
    auto* panel = window.findChild<ScenarioPanel*>();

    bool isNew = false, painted = false;
    QObject::connect(session, &Session::documentChanged, &window, [&] { isNew = true; });
    QObject::connect(&window.currentView()->timeline(), &TimelineWidget::frameTime, &window, [&] { painted = painted || isNew; });
    std::vector<double> waits;
    for (auto _ : state)
        for (int i = 0; i < 40; ++i) {
            isNew = painted = false;
            const Stopwatch watch(CLOCK_MONOTONIC);
            panel->edit("training.micro_batch", 2 + i % 2);
            while (!painted) QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
            waits.push_back(watch.milliseconds());
            settle(window);  // panels follow after the picture; the next edit comes when they are done
        }
    state.counters["slices"] = static_cast<double>(session->document().trace.size());
    report(state, waits);
}
BENCHMARK(editToPicture)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace ringside::gui
