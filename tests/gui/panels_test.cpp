// Panels follow the one range, the chosen slice and the instant.
#include <QCheckBox>
#include <QTest>

#include <gtest/gtest.h>

#include "gui/app/main_window.h"
#include "gui/app/screenshot.h"
#include "gui/panels/collectives_panel.h"
#include "gui/panels/details_panel.h"
#include "gui/panels/histogram_panel.h"
#include "gui/panels/import_panel.h"
#include "gui/panels/memory_panel.h"
#include "gui/panels/path_panel.h"
#include "gui/panels/range_panel.h"
#include "gui/panels/share_bar.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }

/// Compute [0, 100) in two kernels of 40 and 60 µs, an all-reduce of 8 MB over 4 ranks in [60, 140): 40 µs hidden, 40 exposed.
DocumentPtr small() {
    TraceBuilder builder;
    const std::uint32_t compute = builder.addTrack(0, 1, TrackKind::Compute, "compute"), nccl = builder.addTrack(0, 2, TrackKind::Communication, "nccl");
    const std::uint32_t first = builder.addSlice(compute, us(0), us(40), SliceCategory::Compute, builder.internName("gemm"));
    builder.addSlice(compute, us(40), us(60), SliceCategory::Compute, builder.internName("gemm"));
    CollectiveDetails details;
    details.op = "allreduce";
    details.bytes = 8'000'000;
    details.elements = 2'000'000;
    details.dtype = "Float";
    details.groupSize = 4;
    details.algorithm = "RING";
    details.protocol = "SIMPLE";
    const std::uint32_t reduce = builder.addSlice(nccl, us(60), us(80), SliceCategory::Communication, builder.internName("all-reduce bucket 0"), -1, builder.addCollective(details));
    builder.addFlow(first, reduce);
    Document parts;
    parts.trace = builder.build();
    parts.title = "small";
    parts.notes.add("event without a duration", "small.json:7", 3);
    return makeDocument(std::move(parts));
}

struct Fixture {
    Workspace workspace{Catalogs::builtin().value()};
    Theme theme;
    MainWindow window{workspace, theme};
    Session* session = workspace.add(small());

    template <class P>
    P& panel(const char* id) {
        window.show();
        EXPECT_TRUE(window.showPanel(id));
        EXPECT_TRUE(settle(window));
        return *window.findChild<P*>();
    }
    static QString cell(const TableView& table, int row, int column) { return table.model()->index(row, column).data().toString(); }
};

TEST(RangePanel, SplitsTheWholeTraceAndThenTheSelectedRange) {
    Fixture f;
    RangePanel& panel = f.panel<RangePanel>("range");
    // Of 140 µs: 100 compute, 40 exposed communication, nothing else.
    EXPECT_EQ(panel.bar().shares()[0].time, us(100));
    EXPECT_EQ(panel.bar().shares()[2].time, us(40));
    EXPECT_EQ(panel.bar().shares()[4].time, us(0));
    ASSERT_EQ(panel.table().model()->rowCount(), 2);
    f.session->view().select({us(50), us(80)});
    settle(f.window);
    // In [50, 80) compute runs all the time.
    EXPECT_EQ(panel.bar().shares()[0].time, us(30));
    EXPECT_EQ(panel.bar().shares()[2].time, us(0));
    f.session->view().setWindow({us(10), us(20)});
    settle(f.window);
    EXPECT_EQ(panel.bar().shares()[0].time, us(30)) << "zooming filters nothing";
}

TEST(DetailsPanel, ShowsTheCollectivesFiguresAndWhereItsFlowsComeFrom) {
    Fixture f;
    f.session->view().selectSlice(2);
    DetailsPanel& panel = f.panel<DetailsPanel>("details");
    QStringList facts;
    for (int r = 0; r < panel.table().model()->rowCount(); ++r) facts << Fixture::cell(panel.table(), r, 0) + "=" + Fixture::cell(panel.table(), r, 1);
    EXPECT_TRUE(facts.contains("duration=80.0 µs")) << facts.join("; ").toStdString();
    EXPECT_TRUE(facts.contains("algorithm=RING SIMPLE"));
    EXPECT_TRUE(facts.join(";").contains("7.63 MiB"));  // 8,000,000 / 1,048,576
}

TEST(CollectivesPanel, HasTheBandwidthsOfNcclTests) {
    Fixture f;
    CollectivesPanel& panel = f.panel<CollectivesPanel>("collectives");
    ASSERT_EQ(panel.table().model()->rowCount(), 1);
    // 8 MB in 80 µs: 100 GB/s; an all-reduce of 4 ranks moves 2·3/4 of that.
    QStringList row;
    for (int c = 0; c < panel.table().model()->columnCount(); ++c) row << panel.table().model()->headerData(c, Qt::Horizontal).toString() + "=" + Fixture::cell(panel.table(), 0, c);
    EXPECT_EQ(row, QStringList({"Operation=allreduce", "Start=60.0 µs", "Bytes=7.63 MiB", "Ranks=4", "Algorithm=RING SIMPLE", "Duration=80.0 µs", "Wait=0 s", "Transfer=80.0 µs", "algbw GB/s=100.00",
                                "busbw GB/s=150.00", "Type=Float", "Group=all", "Seen=1"}))
        << row.join("; ").toStdString();
    // A click on the row leads to its slice.
    TableView& table = const_cast<TableView&>(panel.table());
    QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(table.model()->index(0, 3)).center());
    EXPECT_EQ(f.session->view().slice(), 2U);
    f.session->view().select({us(0), us(10)});
    settle(f.window);
    EXPECT_EQ(panel.table().model()->rowCount(), 0) << "it follows the range";
}

TEST(HistogramPanel, CountsTheSlicesOfTheChosenName) {
    Fixture f;
    f.session->view().selectSlice(0);
    HistogramPanel& panel = f.panel<HistogramPanel>("histogram");
    EXPECT_EQ(panel.histogram().slices, 2);
    EXPECT_EQ(panel.histogram().mean, us(50));
    f.session->view().select({us(0), us(30)});
    settle(f.window);
    EXPECT_EQ(panel.histogram().slices, 1) << "it follows the range";
}

TEST(HistogramPanel, TakesTheLayersOfANameTogetherUnlessToldNotTo) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 1, TrackKind::Compute, "compute");
    for (int layer = 0; layer < 5; ++layer) builder.addSlice(track, us(100.0 * layer), us(10 + layer), SliceCategory::Compute, builder.internName("forward h." + std::to_string(layer) + ".mlp"));
    builder.addSlice(track, us(900), us(10), SliceCategory::Compute, builder.internName("forward head"));
    Document parts;
    parts.trace = builder.build();
    Fixture f;
    Session* session = f.workspace.add(makeDocument(std::move(parts)));
    session->view().selectSlice(2);
    HistogramPanel& panel = f.panel<HistogramPanel>("histogram");
    EXPECT_EQ(panel.histogram().slices, 5);
    for (QCheckBox* box : panel.findChildren<QCheckBox*>())
        if (box->text() == "Layers together") box->setChecked(false);
    settle(f.window);
    EXPECT_EQ(panel.histogram().slices, 1);
}

TEST(ImportPanel, SaysWhatWasSkippedHowOftenAndWhere) {
    Fixture f;
    ImportPanel& panel = f.panel<ImportPanel>("import");
    ASSERT_EQ(panel.table().model()->rowCount(), 1);
    EXPECT_EQ(Fixture::cell(panel.table(), 0, 0), "event without a duration");
    EXPECT_EQ(Fixture::cell(panel.table(), 0, 1), "3");
    EXPECT_EQ(Fixture::cell(panel.table(), 0, 2), "small.json:7");
}

TEST(PathPanel, SharesOfThePathSumToTheRangeAndTheOverlayIsASwitch) {
    Fixture f;
    PathPanel& panel = f.panel<PathPanel>("path");
    Time sum;
    for (const Share& share : panel.bar().shares()) sum += share.time;
    EXPECT_EQ(sum, us(140));
    EXPECT_TRUE(f.session->view().path().empty());
    f.window.commands().action("view.path")->trigger();
    settle(f.window);
    EXPECT_FALSE(f.session->view().path().empty());
    f.window.commands().action("view.path")->trigger();
    EXPECT_TRUE(f.session->view().path().empty());
}

TEST(MemoryPanel, ShowsThePeakFirstAndThenTheChosenInstant) {
    Fixture f;
    TraceBuilder builder;
    builder.addSlice(builder.addTrack(0, 1, TrackKind::Compute, "compute"), us(0), us(100), SliceCategory::Compute, builder.internName("k"));
    CounterSeries counter;
    counter.name = "memory by category";
    counter.series = {"parameters", "activations"};
    counter.at = {us(0), us(50), us(80)};
    counter.values = {kGiB, 0, kGiB, 3 * kGiB, kGiB, kGiB};
    builder.addCounter(std::move(counter));
    Document parts;
    parts.trace = builder.build();
    Session* session = f.workspace.add(makeDocument(std::move(parts)));
    MemoryPanel& panel = f.panel<MemoryPanel>("memory");
    // At the peak 3 of 4 GiB are activations: the largest comes first.
    EXPECT_EQ(Fixture::cell(panel.categories(), 0, 0), "activations");
    EXPECT_EQ(Fixture::cell(panel.categories(), 0, 2), "75.0 %");
    session->view().setInstant(us(90));
    settle(f.window);
    EXPECT_EQ(Fixture::cell(panel.categories(), 0, 2), "50.0 %");
}

TEST(Panels, EveryOneShowsNothingWhereNothingIsOpen) {
    Fixture f;
    f.workspace.close(f.session);
    f.window.show();
    for (const QString& id : f.window.panelIds()) {
        EXPECT_TRUE(f.window.showPanel(id));
        EXPECT_TRUE(settle(f.window)) << id.toStdString();
    }
}

TEST(TableView, ANameTakesTheRestButStaysReadable) {
    TableView table;
    table.resize(900, 200);
    table.show();
    std::vector<TableColumn> columns = {{"Name"}};
    TableRow row{{TableCell::ofText("backward layers.12.mlp.down_proj: linear weight gradient")}};
    for (int i = 0; i < 6; ++i) {
        columns.push_back({QString("Figure %1").arg(i), {}, true});
        row.cells.push_back(TableCell::of(us(1.5 * i)));
    }
    row.cells[1] = TableCell::ofText("longer than its header");
    table.setTable(columns, {});
    table.setTable(columns, {row});  // the first rows decide, not the headers of the empty table
    EXPECT_GE(table.columnWidth(1), table.fontMetrics().horizontalAdvance("longer than its header"));
    int sum = 0;
    for (int c = 0; c < 7; ++c) sum += table.columnWidth(c);
    EXPECT_EQ(sum, table.viewport()->width());
    table.resize(300, 200);
    QTest::qWait(10);
    EXPECT_GE(table.columnWidth(0), 200);
}

TEST(TableView, SavesFiguresInFullAndQuotesWhereItMust) {
    TableView table;
    table.setTable({{"Name"}, {"Time", {}, true, "time_s"}}, {{{TableCell::ofText("a, \"b\""), TableCell::of(us(1.5))}}, {{TableCell::ofText("c"), TableCell::of(us(2))}}});
    EXPECT_EQ(table.csv(), "Name,time_s\n\"a, \"\"b\"\"\",1.5e-06\nc,2e-06\n");
    table.sortByColumn(1, Qt::DescendingOrder);
    EXPECT_EQ(table.csv().substr(0, 20), "Name,time_s\nc,2e-06\n") << "in the order shown";
}

}  // namespace
}  // namespace ringside::gui
