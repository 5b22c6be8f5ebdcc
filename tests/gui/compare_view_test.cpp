// Two documents above each other, and the topology panel.
#include "gui/compare/compare_view.h"

#include <QDockWidget>
#include <QTabWidget>
#include <QTest>

#include <gtest/gtest.h>

#include "gui/app/main_window.h"
#include "gui/compare/delta_table.h"
#include "gui/compare/linked_views.h"
#include "gui/scenario/scenario_panel.h"
#include "gui/topology/topology_panel.h"

namespace ringside::gui {
namespace {

struct CompareFixture {
    Workspace workspace{Catalogs::builtin().value()};
    Theme theme;
    MainWindow window{workspace, theme};

    DocumentPtr predicted(const char* text) {
        const Json json = Json::parse(text);
        return predictDocument(std::make_shared<const Scenario>(resolveScenario(json, "test", workspace.catalogs()).value()), {}, json).value();
    }
};

const char* const kDdp = R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "training": {"micro_batch": 4}})";
const char* const kSlower = R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8, "training": {"micro_batch": 8}})";

TEST(LinkedViews, ShowTheSameStretchShifted) {
    ViewState a, b;
    const Time ms = Time::fromMicroseconds(1000);
    a.reset({Time(), ms * 10});
    b.reset({Time(), ms * 20});
    LinkedViews link(a, b);
    link.setShift(ms * 5);
    a.setWindow({ms * 2, ms * 4});
    EXPECT_EQ(b.window(), (TimeRange{ms * 7, ms * 9}));
    b.setWindow({ms * 6, ms * 8});
    EXPECT_EQ(a.window(), (TimeRange{ms * 1, ms * 3}));
    a.select({ms * 2, ms * 3});
    EXPECT_EQ(b.selection(), (TimeRange{ms * 7, ms * 8}));
    a.clearSelection();
    EXPECT_FALSE(b.selection());
    link.setLinked(false);
    a.setWindow({ms * 4, ms * 6});
    EXPECT_EQ(b.window(), (TimeRange{ms * 6, ms * 8}));
}

TEST(CompareView, ShowsBothAndWhatDiffers) {
    CompareFixture f;
    showComparison(f.window.context(), f.predicted(kDdp), f.predicted(kSlower));
    auto* view = f.window.findChild<CompareView*>();
    ASSERT_NE(view, nullptr);
    EXPECT_GT(view->table().table().model()->rowCount(), 10);
    const std::string csv = view->table().table().csv();
    EXPECT_EQ(csv.substr(0, csv.find('\n')), "Name,slices_above,slices_below,above_s,below_s,change_s,relative_change");
    EXPECT_GT(view->table().deltas().rows.front().change(), Time()) << "twice the batch takes longer";
    EXPECT_TRUE(view->summary().contains("+")) << view->summary().toStdString();
    // The greater the change, the deeper its colour: red for more, green for less.
    float before = 1;
    for (const TableRow& row : view->table().table().table().rows()) {
        const TableCell& change = row.cells[5];
        if (change.value == 0) continue;
        EXPECT_LE(change.background.alphaF(), before);
        EXPECT_EQ(change.background.rgb(), (change.value > 0 ? f.theme.colors().bad : f.theme.colors().good).rgb());
        before = change.background.alphaF();
    }
    EXPECT_LT(before, 0.2);
    // The lower window follows the upper one.
    const TimeRange window = {Time(), Time::fromMicroseconds(2000)};
    view->upper().view().setWindow(window);
    EXPECT_EQ(view->lower().view().window().length(), view->upper().view().window().length());
}

TEST(CompareView, FollowsASelectedRangeAndThemes) {
    CompareFixture f;
    showComparison(f.window.context(), f.predicted(kDdp), f.predicted(kSlower));
    auto* view = f.window.findChild<CompareView*>();
    const std::size_t all = view->table().deltas().rows.size();
    view->upper().view().select({Time(), Time::fromMicroseconds(500)});
    EXPECT_LT(view->table().deltas().rows.size(), all);
    EXPECT_TRUE(view->summary().contains("Selected range"));
    f.theme.set("dark");
    EXPECT_LT(view->table().deltas().rows.size(), all);
}

TEST(PredictedFlows, LeadFromAGradientThroughItsBucketAndAllReduceToTheOptimizer) {
    CompareFixture f;
    const DocumentPtr document = f.predicted(kDdp);
    const Trace& trace = document->trace;
    std::uint32_t reduce = 0;
    while (trace.category[reduce] != SliceCategory::Communication) ++reduce;
    const auto nameOf = [&](std::uint32_t slice) { return slice == kNoSlice ? std::string("nothing") : trace.names[trace.name[slice]]; };
    const std::uint32_t bucket = previousAlongFlow(trace, document->flows, reduce), gradient = previousAlongFlow(trace, document->flows, bucket);
    ASSERT_NE(gradient, kNoSlice);
    EXPECT_NE(nameOf(bucket).find("copy into bucket"), std::string::npos) << nameOf(bucket);
    EXPECT_TRUE(nameOf(gradient).starts_with("backward")) << nameOf(gradient);
    std::uint32_t at = reduce;
    for (int step = 0; step < 4 && at != kNoSlice && trace.category[at] != SliceCategory::Optimizer; ++step) at = nextAlongFlow(trace, document->flows, at);
    EXPECT_TRUE(at != kNoSlice && trace.category[at] == SliceCategory::Optimizer) << nameOf(at);
}

TEST(CompareView, AnEditedScenarioIsComparedAtOnce) {
    CompareFixture f;
    f.window.show();
    auto* panel = f.window.findChild<ScenarioPanel*>();
    f.workspace.add(f.predicted(kDdp));
    f.window.showPanel("scenario");
    panel->refreshNow();
    f.window.commands().action("scenario.keep")->trigger();
    f.window.commands().action("scenario.compareKept")->trigger();
    auto* view = f.window.findChild<CompareView*>();
    ASSERT_NE(view, nullptr);
    EXPECT_EQ(f.workspace.current(), &view->lower()) << "below stands what is edited, above what was kept";
    panel->refreshNow();
    EXPECT_EQ(view->table().deltas().rows.front().change(), Time());
    const TimeRange window = {Time(), Time::fromMicroseconds(2000)};
    view->upper().view().setWindow(window);
    panel->edit("training.micro_batch", 8);
    for (int i = 0; i < 1000 && panel->predictor().busy(); ++i) QTest::qWait(5);
    EXPECT_EQ(view->lower().document().scenario->training.microBatch, 8);
    EXPECT_EQ(view->upper().document().scenario->training.microBatch, 4);
    EXPECT_GT(view->table().deltas().rows.front().change(), Time());
    EXPECT_TRUE(view->summary().contains("+")) << view->summary().toStdString();
    EXPECT_EQ(view->upper().view().window(), window) << "the zoom stays";
    EXPECT_EQ(f.workspace.sessions().front()->document().scenario->training.microBatch, 4) << "and so does the tab it came from";
}

TEST(CompareView, GetsTheRoomOfPanelsThatSpeakOfTheDocumentBehindIt) {
    CompareFixture f;
    f.window.show();
    f.workspace.add(f.predicted(kDdp));
    f.window.showPanel("histogram");
    auto* histogram = f.window.findChild<QDockWidget*>("panel.histogram");
    auto* scenario = f.window.findChild<QDockWidget*>("panel.scenario");
    ASSERT_FALSE(histogram->isHidden());
    showComparison(f.window.context(), f.predicted(kDdp), f.predicted(kSlower));
    EXPECT_TRUE(histogram->isHidden());
    EXPECT_FALSE(scenario->isHidden());
    f.window.showPanel("topology");  // asked for, it is shown all the same
    EXPECT_FALSE(f.window.findChild<QDockWidget*>("panel.topology")->isHidden());
    f.window.findChild<QTabWidget*>()->setCurrentIndex(0);
    EXPECT_FALSE(histogram->isHidden());
}

TEST(TopologyPanel, ColoursLinksByTheSelectedRange) {
    CompareFixture f;
    f.workspace.add(f.predicted(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 16, "strategy": "ddp"})"));
    f.window.show();
    f.window.showPanel("topology");
    auto* panel = f.window.findChild<TopologyPanel*>();
    panel->refreshNow();
    EXPECT_EQ(panel->view().layout().nodes.size(), 2U);
    EXPECT_GT(panel->view().busiest(), 0);
    EXPECT_LE(panel->view().busiest(), 1.01) << "no link carries more than it can";
    const TopologyLayout& layout = panel->view().layout();
    const auto [x1, y1, x2, y2] = lineOf(layout, layout.cables.front());
    EXPECT_TRUE(panel->view().textAt(panel->view().toWidget((x1 + x2) / 2, (y1 + y2) / 2)).contains("GB/s"));
    EXPECT_TRUE(panel->view().textAt(panel->view().toWidget(layout.parts[0].box.middleX(), layout.parts[0].box.middleY())).contains("GPU 0"));
    // In the first microsecond nothing is sent.
    f.workspace.current()->view().select({Time(), Time::fromMicroseconds(1)});
    panel->refreshNow();
    EXPECT_EQ(panel->view().busiest(), 0);
}

TEST(TopologyPanel, SaysWhyThereIsNothingToDraw) {
    CompareFixture f;
    Document parts;
    parts.title = "a trace from elsewhere";
    f.workspace.add(makeDocument(std::move(parts)));
    f.window.show();
    f.window.showPanel("topology");
    auto* panel = f.window.findChild<TopologyPanel*>();
    panel->refreshNow();
    EXPECT_TRUE(panel->view().layout().parts.empty());
    panel->view().grab();  // paints its sentence
}

}  // namespace
}  // namespace ringside::gui
