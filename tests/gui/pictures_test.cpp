// What is painted and saved: hits in the overview, arrows, counters, the critical path, in pixels and as shapes, at any resolution.
#include <QApplication>
#include <QFile>
#include <QFileDialog>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>

#include <gtest/gtest.h>

#include "gui/app/main_window.h"
#include "gui/app/screenshot.h"
#include "gui/canvas/document_view.h"
#include "gui/canvas/overview_bar.h"
#include "gui/canvas/timeline_widget.h"
#include "gui/compare/compare_view.h"
#include "traces/import/read_trace.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }

/// Compute at [0, 400) and [600, 1000), an all-reduce at [400, 600) between them and another, hidden, at [650, 700); memory that grows.
DocumentPtr made() {
    TraceBuilder builder;
    const auto compute = builder.addTrack(0, 1, TrackKind::Compute, "compute"), nccl = builder.addTrack(0, 2, TrackKind::Communication, "nccl");
    CollectiveDetails details;
    details.op = "allreduce";
    details.bytes = 1'000'000;
    details.groupSize = 2;
    const auto first = builder.addSlice(compute, us(0), us(400), SliceCategory::Compute, builder.internName("forward"));
    const auto reduce = builder.addSlice(nccl, us(400), us(200), SliceCategory::Communication, builder.internName("all-reduce"), -1, builder.addCollective(details));
    const auto second = builder.addSlice(compute, us(600), us(400), SliceCategory::Compute, builder.internName("backward"));
    builder.addSlice(nccl, us(650), us(50), SliceCategory::Communication, builder.internName("hidden"), -1, builder.addCollective(details));
    builder.addFlow(first, reduce);
    builder.addFlow(reduce, second);
    CounterSeries memory;
    memory.name = "memory by category";
    memory.series = {"parameters", "activations"};
    memory.at = {us(0), us(500)};
    memory.values = {kGiB, 0, kGiB, 2 * kGiB};
    memory.limit = 4 * kGiB;
    builder.addCounter(std::move(memory));
    CounterSeries reserved;
    reserved.name = "memory reserved";
    reserved.series = {"reserved"};
    reserved.at = {us(0)};
    reserved.values = {3 * kGiB + kGiB / 2};
    builder.addCounter(std::move(reserved));
    Document parts;
    parts.trace = builder.build();
    parts.title = "made";
    return makeDocument(std::move(parts));
}

struct Fixture {
    Workspace workspace{Catalogs::builtin().value()};
    Theme theme;
    MainWindow window{workspace, theme};
    Session* session = workspace.add(made());
    QTemporaryDir folder;

    Fixture() {
        window.resize(1400, 900);
        window.show();
        EXPECT_TRUE(settle(window));
    }
    ViewState& view() { return session->view(); }
    TimelineWidget& timeline() { return window.currentView()->timeline(); }
    std::uint32_t slice(const char* name) const {
        const Trace& trace = session->document().trace;
        for (std::uint32_t i = 0; i < trace.size(); ++i)
            if (trace.names[trace.name[i]] == name) return i;
        return kNoSlice;
    }
    QByteArray contentOf(const QString& name) {
        QFile file(folder.filePath(name));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    QByteArray saved(const QString& name) {
        EXPECT_TRUE(savePicture(*window.currentView(), folder.filePath(name)));
        return contentOf(name);
    }
    /// Answers the next dialog that asks for a file.
    void answerWith(const QString& name) {
        QTimer::singleShot(0, [path = folder.filePath(name)] {
            auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
            ASSERT_NE(dialog, nullptr);
            dialog->selectFile(path);
            QMetaObject::invokeMethod(dialog, "accept");
        });
    }
    QByteArray run(const char* command, const QString& name) {
        answerWith(name);
        window.commands().action(command)->trigger();
        return contentOf(name);
    }
};

bool has(const QImage& image, const QRect& where, const QColor& color) {
    for (int y = where.top(); y <= where.bottom(); ++y)
        for (int x = where.left(); x <= where.right(); ++x)
            if (image.pixelColor(x, y).rgb() == color.rgb()) return true;
    return false;
}

TEST(Overview, ShowsWhereASearchHitAndItsFrameMovesTheWindow) {
    Fixture f;
    auto* overview = f.window.findChild<OverviewBar*>();
    const QColor hit = f.theme.colors().searchHit;
    EXPECT_FALSE(has(overview->grab().toImage(), overview->rect(), hit));
    f.view().setHits({f.slice("backward")});
    const QImage image = overview->grab().toImage();
    // It begins at 600 of 1,000 µs; the strip begins right of the names of tracks and leaves a little room at both ends.
    const int header = f.timeline().metrics().header, strip = overview->width() - header;
    EXPECT_TRUE(has(image, QRect(header + strip * 55 / 100, 0, strip / 10, overview->height() - 1), hit));
    EXPECT_FALSE(has(image, QRect(header, 0, strip / 2, overview->height() - 1), hit));
    // Dragging over the first fifth frames it.
    const auto drag = [&](int from, int to) {
        QTest::mousePress(overview, Qt::LeftButton, {}, QPoint(from, 20));
        QMouseEvent move(QEvent::MouseMove, QPoint(to, 20), overview->mapToGlobal(QPoint(to, 20)), Qt::NoButton, Qt::LeftButton, {});
        QApplication::sendEvent(overview, &move);
        QTest::mouseRelease(overview, Qt::LeftButton, {}, QPoint(to, 20));
    };
    drag(header + 10, header + strip / 5);
    EXPECT_NEAR(f.view().window().length().microseconds(), 200, 30);
    const TimeRange framed = f.view().window();
    drag(header + strip / 10, header + strip / 10 + strip / 2);
    EXPECT_EQ(f.view().window().length(), framed.length()) << "dragging the frame moves it";
    EXPECT_NEAR((f.view().window().begin - framed.begin).microseconds(), 525, 40);
}

TEST(Flows, AreArrowsFromAndToTheChosenSliceOnly) {
    Fixture f;
    const QImage before = f.timeline().grab().toImage();
    f.view().selectSlice(f.slice("hidden"));
    const QImage without = f.timeline().grab().toImage();
    f.view().selectSlice(f.slice("all-reduce"));
    const QImage with = f.timeline().grab().toImage();
    // Between the row of compute and that of nccl, at the instant where the all-reduce begins.
    const QRectF reduce = *f.timeline().rectOfSlice(f.slice("all-reduce"));
    const QRect between(static_cast<int>(reduce.left()) - 14, static_cast<int>(reduce.top()) - 12, 28, 20);
    EXPECT_EQ(before.copy(between), without.copy(between));
    EXPECT_NE(before.copy(between), with.copy(between));
}

TEST(Counters, AreStackedBelowADashedLineOfTheCapacityAndTellTheirValues) {
    Fixture f;
    const Trace& trace = f.session->document().trace;
    std::vector<std::string> names;
    const LayoutRow* memory = nullptr;
    for (const LayoutRow& row : f.timeline().layout().rows)
        if (row.kind == RowKind::Counter) {
            names.push_back(trace.counters[row.track].name);
            if (names.back() == "memory by category") memory = &row;
        }
    EXPECT_EQ(names, (std::vector<std::string>{"memory by category", "link load", "bytes in flight"})) << "what is reserved is a line over the first";
    ASSERT_NE(memory, nullptr);
    const QImage image = f.timeline().grab().toImage();
    const int left = f.timeline().metrics().header, width = f.timeline().width() - left, top = static_cast<int>(f.timeline().metrics().top() + memory->y);
    const auto column = [&](double share) { return QRect(left + static_cast<int>(share * width), top, 3, static_cast<int>(memory->height)); };
    // In the first half parameters alone; then activations above them. Series are painted with 85 % of their colour.
    const auto painted = [&](std::size_t series) {
        const QColor a = f.theme.colors().base, b = f.theme.colors().seriesColor(series);
        const auto mixed = [](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * 0.85)); };
        return QColor(mixed(a.red(), b.red()), mixed(a.green(), b.green()), mixed(a.blue(), b.blue()));
    };
    EXPECT_TRUE(has(image, column(0.25), painted(0)));
    EXPECT_FALSE(has(image, column(0.25), painted(1)));
    EXPECT_TRUE(has(image, column(0.75), painted(1)));
    EXPECT_TRUE(has(image, QRect(left, top, width - 30, static_cast<int>(memory->height)), f.theme.colors().bad)) << "the capacity, which is near";
    EXPECT_TRUE(has(image, column(0.25), f.theme.colors().text)) << "the reserved bytes";
}

TEST(DensityRows, ShowWhatTheDeviceDoesInOneLineARank) {
    Fixture f;
    f.window.commands().action("view.collapse")->trigger();
    ASSERT_EQ(f.timeline().layout().rows.size(), 1U);
    const QImage image = f.timeline().grab().toImage();
    const int left = f.timeline().metrics().header, width = f.timeline().width() - left, top = static_cast<int>(f.timeline().metrics().top());
    const auto shown = [&](double share, SliceCategory category) {
        bool any = false;
        for (int shade = 0; shade < kShades; ++shade) any = any || has(image, QRect(left + static_cast<int>(share * width), top, 2, 24), f.theme.colors().shadeOf(category, shade));
        return any;
    };
    // Compute runs at a quarter of the trace, the all-reduce alone in the middle.
    EXPECT_TRUE(shown(0.25, SliceCategory::Compute));
    EXPECT_FALSE(shown(0.25, SliceCategory::Communication));
    EXPECT_FALSE(shown(0.5, SliceCategory::Compute));
    EXPECT_TRUE(shown(0.5, SliceCategory::Communication));
}

TEST(Names, AreWrittenWhereTheyFit) {
    Fixture f;
    f.view().setWindow({us(0), us(400)});
    EXPECT_TRUE(f.saved("near.svg").contains("forward<"));
    // 50 of 100,000 µs are less than a pixel.
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 1, TrackKind::Compute, "compute");
    builder.addSlice(track, us(0), us(50), SliceCategory::Compute, builder.internName("narrow"));
    builder.addSlice(track, us(50), us(99'950), SliceCategory::Compute, builder.internName("wide"));
    Document parts;
    parts.trace = builder.build();
    f.workspace.add(makeDocument(std::move(parts)));
    const QByteArray far = f.saved("far.svg");
    EXPECT_TRUE(far.contains("wide<"));
    EXPECT_FALSE(far.contains("narrow<"));
}

TEST(Pictures, HaveTheCriticalPathInPixelsAndAsShapes) {
    Fixture f;
    const QString red = f.theme.colors().criticalPath.name();
    const QByteArray pngWithout = f.saved("without.png"), svgWithout = f.saved("without.svg");
    EXPECT_FALSE(svgWithout.contains(red.toUtf8()));
    f.window.commands().action("view.path")->trigger();
    ASSERT_TRUE(settle(f.window));
    const QByteArray svg = f.saved("with.svg");
    EXPECT_TRUE(svg.contains(red.toUtf8()));
    EXPECT_TRUE(svg.contains("all-reduce")) << "names are text";
    f.saved("with.png");
    const QImage image(f.folder.filePath("with.png")), before(f.folder.filePath("without.png"));
    EXPECT_TRUE(has(image, image.rect(), f.theme.colors().criticalPath));
    EXPECT_FALSE(has(before, before.rect(), f.theme.colors().criticalPath));
    // On it lie the all-reduce that nothing hides and both computations; the hidden one does not.
    const auto strip = [&](const char* name) {
        const QRectF rect = *f.timeline().rectOfSlice(f.slice(name));
        const QPoint at = f.timeline().mapTo(f.window.currentView(), rect.center().toPoint());
        return QRect(at.x() - 2, at.y(), 4, static_cast<int>(rect.height() / 2));
    };
    for (const char* name : {"forward", "all-reduce", "backward"}) EXPECT_TRUE(has(image, strip(name), f.theme.colors().criticalPath)) << name;
    EXPECT_FALSE(has(image, strip("hidden"), f.theme.colors().criticalPath));
}

TEST(Pictures, ThePathStaysDrawnWhenTheRangeChangesWhileItsPanelIsBehindOthers) {
    Fixture f;
    f.window.showPanel("range");
    f.window.commands().action("view.path")->trigger();
    ASSERT_TRUE(settle(f.window));
    const std::size_t whole = f.view().path().size();
    ASSERT_GE(whole, 3U);
    f.view().select({us(0), us(300)});
    ASSERT_TRUE(settle(f.window));
    EXPECT_EQ(f.view().path().size(), 1U);
    f.session->replaceDocument(made());
    ASSERT_TRUE(settle(f.window));
    EXPECT_FALSE(f.view().path().empty()) << "another version of the document has a path of its own";
}

TEST(Pictures, OfAComparisonAndItsTableAreSavedToo) {
    Fixture f;
    showComparison(f.window.context(), f.session->shared(), made());
    ASSERT_TRUE(settle(f.window));
    const QByteArray svg = f.run("go.save-picture", "compare.svg");
    EXPECT_EQ(svg.count("all-reduce<"), 3) << "on both timelines and in the table";
    EXPECT_FALSE(QImage::fromData(f.run("go.save-picture", "compare.png")).isNull());
    EXPECT_TRUE(f.run("go.save-table", "compare.csv").startsWith("Name,slices_above"));
}

TEST(Pictures, AreAsSharpAsTheScreen) {
    Fixture f;
    // Two pixels per unit: everything stands at twice the place, and a line of one unit is two pixels wide.
    const QSize size = f.timeline().size();
    QImage sharp(size * 2, QImage::Format_RGB32);
    sharp.setDevicePixelRatio(2);
    TimelinePainter painter(f.timeline().font());
    const TimelineScene scene{f.session->document(), f.view(), f.timeline().layout(), f.theme.colors(), f.timeline().metrics(), size};
    QPainter onto(&sharp);
    painter.paint(onto, scene, 2);
    onto.end();
    sharp.setDevicePixelRatio(1);
    const QRectF reduce = *f.timeline().rectOfSlice(f.slice("all-reduce"));
    const QColor inside = sharp.pixelColor((reduce.topRight() * 2).toPoint() + QPoint(-8, 8));
    bool known = false;
    for (int shade = 0; shade < kShades; ++shade) known = known || f.theme.colors().shadeOf(SliceCategory::Communication, shade).rgb() == inside.rgb();
    EXPECT_TRUE(known) << inside.name().toStdString();
    EXPECT_EQ(sharp.pixelColor((reduce.topRight() * 2).toPoint() + QPoint(6, 8)).rgb(), f.theme.colors().base.rgb()) << "and not further";
}

TEST(Files, TheTraceIsSavedForPerfettoAndOpensAgain) {
    Fixture f;
    const QByteArray json = f.run("go.save-trace", "trace.json");
    EXPECT_TRUE(json.contains("\"traceEvents\""));
    const Result<ImportedTrace> again = readTrace({f.folder.filePath("trace.json").toStdString()}, {});
    ASSERT_TRUE(again) << again.error().toString();
    EXPECT_EQ(again->trace.size(), f.session->document().trace.size());
}

TEST(Files, TheTableInFrontIsSavedAsCsv) {
    Fixture f;
    f.window.showPanel("collectives");
    ASSERT_TRUE(settle(f.window));
    EXPECT_TRUE(f.run("go.save-table", "collectives.csv").startsWith("Operation,start_s,bytes"));
    f.window.showPanel("range");
    ASSERT_TRUE(settle(f.window));
    EXPECT_TRUE(f.run("go.save-table", "range.csv").startsWith("Name,Category,Count,total_s"));
}

TEST(Theme, IsKeptAndEveryPanelIsPaintedInEveryOne) {
    QSettings().clear();
    {
        Fixture f;
        f.window.restoreLayout();
        for (const ThemeColors& theme : allThemes()) {
            f.window.commands().action("theme." + theme.id)->trigger();
            for (const QString& panel : f.window.panelIds()) {
                f.window.showPanel(panel);
                EXPECT_TRUE(settle(f.window));
                f.window.grab();
            }
            EXPECT_EQ(f.timeline().grab().toImage().pixelColor(f.timeline().rectOfSlice(f.slice("all-reduce"))->topRight().toPoint() + QPoint(6, 6)).rgb(), theme.base.rgb());
        }
        f.window.close();
    }
    EXPECT_EQ(QSettings().value("theme").toString(), allThemes().back().id);
    QSettings().clear();
}

}  // namespace
}  // namespace ringside::gui
