// Studies: rows, fronts, progress, cancelling, and closing while one runs.
#include "gui/study/study_view.h"

#include <QComboBox>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTest>

#include <gtest/gtest.h>

#include "gui/app/main_window.h"

namespace ringside::gui {
namespace {

const Json kScenario = Json::parse(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8})");

struct StudyFixture {
    Workspace workspace{Catalogs::builtin().value()};
    Theme theme;
    MainWindow window{workspace, theme};

    static void settle(StudyPage& page) {
        for (int i = 0; i < 4000 && page.runner().running(); ++i) QTest::qWait(5);
        ASSERT_FALSE(page.runner().running());
    }
};

StudyRow rowWith(double step, Bytes peak, MemoryVerdict verdict = MemoryVerdict::Fits) {
    StudyRow row;
    row.stepSeconds = step;
    row.samplesPerSecond = 1 / step;
    row.peakBytes = peak;
    row.verdict = verdict;
    return row;
}

TEST(StudyFigures, TheFrontHoldsWhatNothingBeatsAndFits) {
    const std::vector<StudyRow> rows = {rowWith(1, 10 * kGiB), rowWith(2, 5 * kGiB), rowWith(3, 7 * kGiB), rowWith(0.5, 90 * kGiB, MemoryVerdict::OutOfMemory)};
    // By throughput (more is better) and memory (less is): row 2 is slower and larger than row 1; row 3 does not fit.
    EXPECT_EQ(bestRows(rows, StudyFigure::Throughput, StudyFigure::PeakMemory), (std::vector<std::size_t>{1, 0}));
    EXPECT_EQ(bestRows(rows, StudyFigure::StepTime, StudyFigure::PeakMemory), (std::vector<std::size_t>{0, 1}));
}

TEST(StudyFigures, AMillionSamplesCostTheRentOfTheTimeTheyTake) {
    StudyRow row = rowWith(0.01, kGiB);  // 100 samples/s: a million takes 10,000 s
    EXPECT_FALSE(figureOf(row, StudyFigure::UsdPerMillionSamples));
    row.usdPerHour = 36;
    EXPECT_DOUBLE_EQ(*figureOf(row, StudyFigure::UsdPerMillionSamples), 100);
}

TEST(StudyFigures, DeviceCountsAreNumbersAndDoublingRanges) {
    EXPECT_EQ(parseDeviceCounts("1, 3,4-32").value(), (std::vector<std::int64_t>{1, 3, 4, 8, 16, 32}));
    for (const char* wrong : {"", "0", "a", "8-4", "1,,2", "99999999999999"}) EXPECT_FALSE(parseDeviceCounts(wrong)) << wrong;
}

TEST(StudyFigures, ASweepGivesARowForEveryCombinationAndCanBeStopped) {
    const Catalogs catalogs = Catalogs::builtin().value();
    const PriceCatalog prices = PriceCatalog::builtin().value();
    SweepDefinition definition;
    definition.base = kScenario;
    definition.axes = {"strategy=ddp,zero3", "micro_batch=1,2"};
    std::size_t last = 0;
    StudyWatch watch;
    watch.progress = [&](std::size_t done, std::size_t all) {
        EXPECT_EQ(all, 4U);
        last = done;
    };
    const SweepAnswer answer = sweepRows(definition, catalogs, prices, watch).value();
    ASSERT_EQ(answer.rows.size(), 4U);
    EXPECT_EQ(last, 4U);
    EXPECT_EQ(answer.rows[3].label, "strategy=zero3, micro_batch=2");
    EXPECT_EQ(answer.rows[3].strategy, "zero3");
    EXPECT_GT(answer.rows[3].peakBytes, 0);
    EXPECT_TRUE(answer.rows[3].usdPerHour);
    EXPECT_EQ(resolveScenario(answer.rows[3].document, "row", catalogs)->training.microBatch, 2);
    watch.progress = [](std::size_t, std::size_t) {};
    watch.stop = [] { return true; };
    EXPECT_TRUE(sweepRows(definition, catalogs, prices, watch)->stopped);
}

TEST(StudyView, DrawsALineForEveryStrategyAndOpensAPoint) {
    StudyFixture f;
    StudyView view(f.window.context(), kScenario);
    view.resize(900, 600);
    view.show();
    view.scaling().findChild<QLineEdit*>("devices")->setText("1-8");
    view.scaling().findChild<QLineEdit*>("strategies")->setText("ddp, fsdp2");
    view.scaling().start();
    EXPECT_TRUE(view.scaling().runner().running());
    f.settle(view.scaling());
    EXPECT_EQ(view.scaling().rows().size(), 8U);
    EXPECT_EQ(view.scaling().chart().content().lines.size(), 3U);  // and the ideal
    const ChartPoint& point = view.scaling().chart().content().lines[1].points[2];
    EXPECT_EQ(view.scaling().chart().rowAt(view.scaling().chart().placeOf(point)), static_cast<int>(point.row));
    view.scaling().openRow(point.row);
    ASSERT_NE(f.workspace.current(), nullptr);
    EXPECT_EQ(f.workspace.current()->document().scenario->cluster.deviceCount(), view.scaling().rows()[point.row].devices);
}

TEST(StudyView, RunsAsSoonAsItIsAskedFor) {
    StudyFixture f;
    f.workspace.add(predictDocument(std::make_shared<const Scenario>(resolveScenario(kScenario, "test", f.workspace.catalogs()).value()), {}, kScenario).value());
    f.window.commands().action("study.scaling")->trigger();
    auto* view = f.window.findChild<StudyView*>();
    ASSERT_NE(view, nullptr);
    EXPECT_TRUE(view->scaling().runner().running());
    f.settle(view->scaling());
    EXPECT_FALSE(view->scaling().rows().empty());
}

TEST(StudyView, ASweepShowsItsFrontAndSaysWhatIsWrongWithAnAxis) {
    StudyFixture f;
    StudyView view(f.window.context(), kScenario);
    view.sweep().start();
    f.settle(view.sweep());
    EXPECT_EQ(view.sweep().rows().size(), 32U);
    EXPECT_EQ(view.sweep().chart().content().lines.back().name, "nothing beats these");
    view.sweep().findChild<QLineEdit*>("axis0")->setText("micro_bacth=1,2");
    view.sweep().start();
    f.settle(view.sweep());
    EXPECT_TRUE(view.sweep().runner().said().contains("micro_batch")) << view.sweep().runner().said().toStdString();
    EXPECT_EQ(view.sweep().rows().size(), 32U) << "the old rows stay";
}

TEST(StudyView, DrawsEveryFigureAlsoMoneyAndMemory) {
    StudyFixture f;
    StudyView view(f.window.context(), kScenario);
    view.scaling().findChild<QLineEdit*>("devices")->setText("1-4");
    view.scaling().findChild<QLineEdit*>("strategies")->setText("ddp");
    view.scaling().start();
    f.settle(view.scaling());
    auto* figure = view.scaling().findChild<QComboBox*>("figure");
    QStringList shown;
    for (int i = 0; i < figure->count(); ++i) {
        figure->setCurrentIndex(i);
        const ChartContent& content = view.scaling().chart().content();
        shown << content.y;
        ASSERT_FALSE(content.lines.empty()) << content.y.toStdString();
        EXPECT_EQ(content.lines[0].points.size(), 3U) << content.y.toStdString();
    }
    for (const char* wanted : {"Efficiency", "Speed-up", "memory", "USD"}) EXPECT_TRUE(shown.join("; ").contains(wanted)) << wanted << " in " << shown.join("; ").toStdString();
}

TEST(StudyView, AClickOnAPointOpensItsTimelineInATab) {
    StudyFixture f;
    auto* view = new StudyView(f.window.context(), kScenario);
    f.workspace.showView(view, "Study");
    view->showSweep();
    f.window.resize(1400, 900);
    f.window.show();
    view->sweep().start();
    f.settle(view->sweep());
    QTest::qWait(50);  // the chart lays itself out
    StudyChart& chart = view->sweep().chart();
    const ChartPoint point = chart.content().lines[0].points[1];
    QTest::mouseClick(chart.viewport(), Qt::LeftButton, {}, chart.placeOf(point).toPoint());
    ASSERT_NE(f.workspace.current(), nullptr);
    EXPECT_EQ(Json(f.workspace.current()->document().scenarioAsGiven).dump(), view->sweep().rows()[point.row].document.dump());
}

TEST(StudyView, CancelEndsAStudySoonAndKeepsTheWindowAlive) {
    StudyFixture f;
    StudyView view(f.window.context(), kScenario);
    view.scaling().findChild<QLineEdit*>("devices")->setText("1-1024");
    view.scaling().findChild<QLineEdit*>("strategies")->setText("ddp,zero1,zero2,zero3,fsdp1,fsdp2,naive,megatron");
    view.scaling().start();
    view.scaling().runner().cancel();
    f.settle(view.scaling());
    EXPECT_TRUE(view.scaling().runner().said().contains("stopped")) << view.scaling().runner().said().toStdString();
    EXPECT_TRUE(view.scaling().rows().empty());
}

TEST(StudyView, ClosingWhileAStudyRunsEndsItCleanly) {
    StudyFixture f;
    const Json json = kScenario;
    auto scenario = std::make_shared<const Scenario>(resolveScenario(json, "test", f.workspace.catalogs()).value());
    f.workspace.add(predictDocument(scenario, {}, json).value());
    f.window.show();
    f.window.commands().action("study.scaling")->trigger();
    auto* view = f.window.findChild<StudyView*>();
    ASSERT_NE(view, nullptr);
    view->scaling().findChild<QLineEdit*>("devices")->setText("1-1024");
    view->scaling().start();
    view->sweep().start();
    EXPECT_TRUE(view->scaling().runner().running());
    f.window.close();
    // The fixture's end destroys the window with both studies at work.
}

}  // namespace
}  // namespace ringside::gui
