// The window: files in, tabs, errors, panels.
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <QProcess>
#include <QSettings>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>

#include <gtest/gtest.h>

#include "gui/app/error_bar.h"
#include "gui/app/gui_options.h"
#include "gui/app/main_window.h"
#include "gui/app/palette_dialog.h"
#include "gui/app/screenshot.h"
#include "gui/canvas/document_view.h"
#include "gui/canvas/search_bar.h"
#include "gui/panels/details_panel.h"
#include "traces/analysis/steps.h"

namespace ringside::gui {
namespace {

struct Fixture {
    Workspace workspace{Catalogs::builtin().value()};
    Theme theme;
    MainWindow window{workspace, theme};

    bool settled() {
        for (int i = 0; i < 600 && workspace.opening(); ++i) QTest::qWait(10);
        return !workspace.opening();
    }
    bool open(const QStringList& paths) {
        workspace.open(paths);
        return settled();
    }
    bool open(const QString& path) { return open(QStringList{path}); }
    QString error() { return window.findChild<ErrorBar*>()->text(); }
};

/// A folder with the traces of ranks as PyTorch's profiler writes them.
struct RankFiles {
    QTemporaryDir folder;

    QString write(int rank, int world, const QString& name) {
        QFile file(folder.filePath(name));
        EXPECT_TRUE(file.open(QIODevice::WriteOnly));
        file.write(QString(R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %1, "world_size": %2}, "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10, "dur": 40, "args": {"stream": 7}},
            {"ph": "X", "cat": "kernel", "name": "norm", "pid": 0, "tid": 7, "ts": 60, "dur": 5, "args": {"stream": 7}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 70, "dur": 40, "args": {"stream": 7}}]})").arg(rank).arg(world).toUtf8());
        return file.fileName();
    }
};

const QString kScenario = RINGSIDE_SOURCE_DIR "/docs/examples/tiny_gpt.json";

TEST(MainWindow, OpensAScenarioAsItsPrediction) {
    Fixture f;
    ASSERT_TRUE(f.open(kScenario));
    ASSERT_NE(f.workspace.current(), nullptr);
    EXPECT_NE(f.workspace.current()->document().prediction, nullptr);
    EXPECT_GT(f.workspace.current()->document().trace.size(), 100U);
    EXPECT_EQ(f.window.findChild<QTabWidget*>()->count(), 1);
    ASSERT_NE(f.window.currentView(), nullptr);
}

TEST(MainWindow, SaysWhatIsWrongWithAFileAndStaysOpen) {
    Fixture f;
    f.window.show();
    QTemporaryDir folder;
    const QString path = folder.filePath("broken.json");
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("{\"traceEvents\": [");
    file.close();
    ASSERT_TRUE(f.open(path));
    EXPECT_EQ(f.workspace.current(), nullptr);
    EXPECT_TRUE(f.window.findChild<ErrorBar*>()->text().contains("broken.json")) << f.window.findChild<ErrorBar*>()->text().toStdString();
    ASSERT_TRUE(f.open(kScenario));
    EXPECT_NE(f.workspace.current(), nullptr);
}

/// Opens, paints every panel's worth, and selects a slice.
void lookAt(Fixture& f, const QByteArray& content, const QString& name, const char* noted) {
    QTemporaryDir folder;
    QFile file(folder.filePath(name));
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(content);
    file.close();
    ASSERT_TRUE(f.open(file.fileName()));
    ASSERT_NE(f.workspace.current(), nullptr) << f.error().toStdString();
    f.workspace.current()->view().selectSlice(0);
    for (const QString& panel : f.window.panelIds()) {
        f.window.showPanel(panel);
        EXPECT_TRUE(settle(f.window));
        f.window.grab();
    }
    std::string notes;
    for (const ImportNote& note : f.workspace.current()->document().notes.all()) notes += note.what + "; ";
    EXPECT_NE(notes.find(noted), std::string::npos) << name.toStdString() << ": " << notes;
    f.window.commands().action("file.close")->trigger();
}

TEST(MainWindow, ShowsTracesThatAreNotQuiteRight) {
    Fixture f;
    f.window.show();
    const auto slice = [](const char* name, int ts, int dur, const char* more = "") {
        return QString(R"({"ph": "X", "cat": "cpu_op", "name": "%1", "pid": 1, "tid": 1, "ts": %2, "dur": %3%4})").arg(name).arg(ts).arg(dur).arg(more).toUtf8();
    };
    const QByteArray head = "{\"traceEvents\": [";
    lookAt(f, head + slice("alone", 5, 10) + "]}", "one-slice.json", "");
    lookAt(f, head + slice("nothing", 5, 0) + "]}", "an-instant.json", "");
    lookAt(f, head + slice("a", 0, 10) + "," + slice("b", 5, 10) + "," + slice("c", 8, 10) + "]}", "overlapping.json", "");
    lookAt(f, head + slice("a", 0, 10) + "," + slice("b", 20, 10).chopped(9), "cut-off.json", "ends within an event");
    lookAt(f, head + slice("a", 0, 10) + ",{\"ph\": \"X\", \"name\": 7}," + slice("b", 20, 10) + "]}", "odd-event.json", "");
    // A gzip that ends in the middle.
    QTemporaryDir folder;
    QByteArray many = head;
    for (int i = 0; i < 20'000; ++i) many += (i ? "," : "") + slice("kernel", 10 * i, 7 + i % 3);
    QProcess gzip;
    gzip.start("gzip", {"-c"});
    gzip.write(many + "]}");
    gzip.closeWriteChannel();
    ASSERT_TRUE(gzip.waitForFinished());
    const QByteArray packed = gzip.readAllStandardOutput();
    lookAt(f, packed.left(packed.size() * 2 / 3), "cut-off.json.gz", "");
}

TEST(MainWindow, ClosingTheLastTabShowsWhatToDoNext) {
    Fixture f;
    f.window.show();
    ASSERT_TRUE(f.open(kScenario));
    f.window.commands().action("file.close")->trigger();
    EXPECT_EQ(f.workspace.current(), nullptr);
    EXPECT_TRUE(f.window.findChild<QWidget*>("example0")->isVisible());
}

TEST(MainWindow, ExamplesOpen) {
    Fixture f;
    f.window.show();
    for (int i = 0; QWidget* button = f.window.findChild<QWidget*>(QString("example%1").arg(i)); ++i) {
        QMetaObject::invokeMethod(button, "click");
        EXPECT_EQ(f.workspace.sessions().size(), static_cast<std::size_t>(i + 1)) << f.window.findChild<ErrorBar*>()->text().toStdString();
    }
    EXPECT_GE(f.workspace.sessions().size(), 3U);
}

TEST(MainWindow, RanksOfOneRunAreOneTimeline) {
    Fixture f;
    RankFiles files;
    ASSERT_TRUE(f.open({files.write(0, 2, "r0.json"), files.write(1, 2, "r1.json")}));
    ASSERT_EQ(f.workspace.sessions().size(), 1U) << f.error().toStdString();
    EXPECT_EQ(ranksOf(f.workspace.current()->document().trace), (std::vector<std::int64_t>{0, 1}));
}

TEST(MainWindow, FilesOfSeveralRunsAreTabsOfTheirOwnUnlessOneSaysOtherwise) {
    Fixture f;
    RankFiles files;
    const QStringList twice{files.write(0, 2, "before.json"), files.write(0, 2, "after.json")};  // the same rank of two runs
    ASSERT_TRUE(f.open(twice));
    EXPECT_EQ(f.workspace.sessions().size(), 2U);
    ASSERT_TRUE(f.open({files.write(0, 2, "small.json"), files.write(1, 4, "large.json")}));
    EXPECT_EQ(f.workspace.sessions().size(), 4U);
    f.workspace.openTogether({files.write(0, 2, "r0.json"), files.write(1, 4, "r1.json")});
    ASSERT_TRUE(f.settled());
    ASSERT_EQ(f.workspace.sessions().size(), 5U) << f.error().toStdString();
    EXPECT_EQ(ranksOf(f.workspace.current()->document().trace).size(), 2U);
}

TEST(MainWindow, ATraceThatWasNotPredictedGetsTheRoomOfTheScenario) {
    Fixture f;
    RankFiles files;
    f.window.show();
    auto* scenario = f.window.findChild<QDockWidget*>("panel.scenario");
    ASSERT_TRUE(f.open(kScenario));
    EXPECT_FALSE(scenario->isHidden());
    ASSERT_TRUE(f.open(files.write(0, 1, "one.json")));
    EXPECT_TRUE(scenario->isHidden());
    f.window.showPanel("scenario");
    EXPECT_FALSE(scenario->isHidden()) << "asked for, it is shown all the same";
    f.window.findChild<QTabWidget*>()->setCurrentIndex(0);
    EXPECT_FALSE(scenario->isHidden());
    f.window.findChild<QTabWidget*>()->setCurrentIndex(1);
    EXPECT_TRUE(scenario->isHidden());
    f.window.commands().action("file.close")->trigger();
    EXPECT_FALSE(scenario->isHidden());
}

TEST(MainWindow, OpensWhatIsDroppedOnIt) {
    Fixture f;
    f.window.show();
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(kScenario)});
    QDragEnterEvent enter(QPoint(300, 300), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&f.window, &enter);
    EXPECT_TRUE(enter.isAccepted());
    QDropEvent drop(QPointF(300, 300), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&f.window, &drop);
    ASSERT_TRUE(f.settled());
    ASSERT_NE(f.workspace.current(), nullptr);
    QMimeData text;
    text.setText("no file");
    QDragEnterEvent other(QPoint(300, 300), Qt::CopyAction, &text, Qt::LeftButton, Qt::NoModifier);
    other.ignore();
    QApplication::sendEvent(&f.window, &other);
    EXPECT_FALSE(other.isAccepted());
}

TEST(MainWindow, LoadsWhatIsComparedInTheBackgroundAndSaysWhatIsWrongWithIt) {
    Fixture f;
    ASSERT_TRUE(f.open(kScenario));
    DocumentPtr loaded;
    f.workspace.load({kScenario}, &f.window, [&](DocumentPtr document) { loaded = std::move(document); });
    EXPECT_EQ(loaded, nullptr) << "it is opened beside the window";
    ASSERT_TRUE(f.settled());
    EXPECT_NE(loaded, nullptr);
    EXPECT_EQ(f.workspace.sessions().size(), 1U) << "no tab of its own";
    loaded = nullptr;
    f.workspace.load({"/nowhere/other.json"}, &f.window, [&](DocumentPtr document) { loaded = std::move(document); });
    ASSERT_TRUE(f.settled());
    EXPECT_EQ(loaded, nullptr);
    EXPECT_TRUE(f.error().contains("other.json")) << f.error().toStdString();
    // Whoever asked is gone by then.
    auto* gone = new QObject;
    f.workspace.load({kScenario}, gone, [&](DocumentPtr document) { loaded = std::move(document); });
    delete gone;
    ASSERT_TRUE(f.settled());
    EXPECT_EQ(loaded, nullptr);
}

TEST(MainWindow, KeepsItsLayoutAndRecentFiles) {
    QSettings().clear();
    {
        Fixture f;
        f.window.restoreLayout();
        f.window.resize(1111, 777);
        f.window.show();
        f.window.showPanel("histogram");
        f.window.findChild<QDockWidget*>("panel.collectives")->hide();
        ASSERT_TRUE(f.open(kScenario));
        f.window.close();
    }
    Fixture again;
    again.window.restoreLayout();
    again.window.show();
    EXPECT_EQ(again.window.size(), QSize(1111, 777));
    EXPECT_TRUE(again.window.findChild<QDockWidget*>("panel.collectives")->isHidden());
    EXPECT_FALSE(again.window.findChild<QDockWidget*>("panel.histogram")->isHidden());
    EXPECT_EQ(QSettings().value("recentFiles").toStringList(), QStringList{QFileInfo(kScenario).absoluteFilePath()});
    QSettings().clear();
}

TEST(MainWindow, AWindowForAPictureLeavesNoTrace) {
    QSettings().clear();
    {
        Fixture f;
        f.window.show();
        ASSERT_TRUE(f.open(kScenario));
        f.window.close();
    }
    EXPECT_TRUE(QSettings().allKeys().isEmpty());
}

TEST(DetailsPanel, ShowsTheArgsOfASliceAsTheyStandInItsFile) {
    Fixture f;
    RankFiles files;
    f.window.show();
    ASSERT_TRUE(f.open(files.write(0, 1, "one.json")));
    f.window.showPanel("details");
    f.workspace.current()->view().selectSlice(0);
    auto* panel = f.window.findChild<DetailsPanel*>();
    const auto facts = [&] {
        QStringList rows;
        const QAbstractItemModel& model = *panel->table().model();
        for (int r = 0; r < model.rowCount(); ++r) rows << model.index(r, 0).data().toString() + "=" + model.index(r, 1).data().toString();
        return rows;
    };
    for (int i = 0; i < 100 && !facts().contains("stream=7"); ++i) QTest::qWait(10);
    EXPECT_TRUE(facts().contains("stream=7")) << facts().join("; ").toStdString();
}

TEST(SearchBar, CountsHitsAndGoesFromOneToTheNextAndAround) {
    Fixture f;
    RankFiles files;
    f.window.show();
    ASSERT_TRUE(f.open(files.write(0, 1, "one.json")));
    SearchBar& search = f.window.currentView()->search();
    f.window.commands().action("view.search")->trigger();
    ASSERT_TRUE(search.isVisible());
    const auto found = [&](const QString& pattern, const QString& status) {
        search.setPattern(pattern);
        for (int i = 0; i < 300 && search.status() != status; ++i) QTest::qWait(10);
        return search.status();
    };
    EXPECT_EQ(found("^ge.m$", "2 hits"), "2 hits");
    ViewState& view = f.workspace.current()->view();
    EXPECT_EQ(view.hits().size(), 2U);
    auto* line = search.findChild<QLineEdit*>("search");
    QTest::keyClick(line, Qt::Key_Return);
    EXPECT_EQ(search.status(), "1 of 2");
    const std::optional<std::uint32_t> first = view.slice();
    ASSERT_TRUE(first);
    QTest::keyClick(line, Qt::Key_Return);
    EXPECT_EQ(search.status(), "2 of 2");
    EXPECT_NE(view.slice(), first);
    QTest::keyClick(line, Qt::Key_Return);
    EXPECT_EQ(view.slice(), first) << "around the end";
    QTest::keyClick(line, Qt::Key_Return, Qt::ShiftModifier);
    EXPECT_EQ(search.status(), "2 of 2");
    EXPECT_EQ(found("nothing like it", "no hit"), "no hit");
    EXPECT_EQ(found("ge(", "no regular expression"), "no regular expression");
    QTest::keyClick(line, Qt::Key_Escape);
    EXPECT_FALSE(search.isVisible());
    EXPECT_TRUE(view.hits().empty());
}

TEST(TrackFinder, OpensTheRankOfTheTrackThatWasTyped) {
    Fixture f;
    RankFiles files;
    f.window.show();
    ASSERT_TRUE(f.open({files.write(0, 2, "r0.json"), files.write(1, 2, "r1.json")}));
    ViewState& view = f.workspace.current()->view();
    TrackOptions options = view.trackOptions();
    options.collapsed = {0, 1};
    options.filter = "nothing";
    view.setTrackOptions(options);
    f.window.commands().action("view.find-track")->trigger();
    auto* finder = f.window.findChild<PaletteDialog*>();
    ASSERT_NE(finder, nullptr);
    auto* line = finder->findChild<QLineEdit*>();
    QTest::keyClicks(line, "rank 1");
    EXPECT_GE(finder->findChild<QListWidget*>()->count(), 1);
    QTest::keyClick(line, Qt::Key_Return);
    EXPECT_FALSE(view.trackOptions().collapsed.contains(1));
    EXPECT_TRUE(view.trackOptions().collapsed.contains(0));
    EXPECT_EQ(view.trackOptions().filter, "") << "a filter that hides the track is dropped";
}

TEST(MarkerFile, KeepsMarkersBesideTheTrace) {
    RankFiles files;
    const QString path = files.write(0, 1, "one.json");
    {
        Fixture f;
        ASSERT_TRUE(f.open(path));
        f.workspace.current()->view().addMarker(Time::fromMicroseconds(12.5), "the gemm");
        f.workspace.current()->view().addMarker(Time::fromMicroseconds(30));
    }
    Fixture again;
    ASSERT_TRUE(again.open(path));
    const std::vector<TimeMarker>& markers = again.workspace.current()->view().markers();
    ASSERT_EQ(markers.size(), 2U);
    EXPECT_EQ(markers[0].at, Time::fromMicroseconds(12.5));
    EXPECT_EQ(markers[0].label, "the gemm");
    again.workspace.current()->view().removeMarkers();
    EXPECT_FALSE(QFile::exists(path + ".markers.json")) << "without markers there is no file";
}

TEST(MarkerFile, ThatIsNotOursIsNeverWrittenOver) {
    RankFiles files;
    const QString path = files.write(0, 1, "one.json");
    QFile file(path + ".markers.json");
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("{\"format\": \"somebody else's\"}");
    file.close();
    Fixture f;
    ASSERT_TRUE(f.open(path));
    ASSERT_NE(f.workspace.current(), nullptr) << "the trace opens all the same";
    EXPECT_TRUE(f.error().contains("one.json.markers.json")) << f.error().toStdString();
    f.workspace.current()->view().addMarker(Time::fromMicroseconds(30));
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    EXPECT_EQ(file.readAll(), "{\"format\": \"somebody else's\"}");
}

TEST(GuiOptions, SayWhatToShowAndWhatIsWrongWithThem) {
    const Result<GuiOptions> options = parseGuiOptions({"a.json", "--screenshot", "out.png", "--size=1600x900", "--range", "10ms:25ms", "--panel", "range", "--compare", "b.json", "--theme", "dark"});
    ASSERT_TRUE(options) << options.error().toString();
    EXPECT_EQ(options->screenshot, "out.png");
    EXPECT_EQ(options->size, QSize(1600, 900));
    EXPECT_EQ(options->range, (TimeRange{Time::fromMicroseconds(10'000), Time::fromMicroseconds(25'000)}));
    EXPECT_EQ(options->panel, "range");
    EXPECT_EQ(options->compare, "b.json");
    EXPECT_EQ(options->theme, "dark");
    const auto wrong = [](const QStringList& arguments) {
        const Result<GuiOptions> parsed = parseGuiOptions(arguments);
        EXPECT_FALSE(parsed);
        return parsed ? std::string() : parsed.error().toString();
    };
    EXPECT_NE(wrong({"--size", "big"}).find("like 1600x900"), std::string::npos);
    EXPECT_NE(wrong({"--range", "25ms:10ms"}).find("ends (10.0 ms) before it starts"), std::string::npos) << wrong({"--range", "25ms:10ms"});
    EXPECT_NE(wrong({"--screenshot", "out.jpg"}).find("neither .png nor .svg"), std::string::npos);
    EXPECT_NE(wrong({"--theme", "pink"}).find("colour-blind-dark"), std::string::npos);
    EXPECT_NE(wrong({"--compare", "b.json"}).find("needs a file"), std::string::npos);
    EXPECT_NE(wrong({"--wide"}).find("no such flag"), std::string::npos);
    EXPECT_NE(wrong({"--panel"}).find("needs a value"), std::string::npos);
}

TEST(Screenshot, PaintsThePanelTheRangeTheComparisonAndTheStudyThatWereAskedFor) {
    const auto picture = [&](QStringList arguments) {
        Fixture f;
        QTemporaryDir folder;
        const QString path = folder.filePath("out.png");
        const Result<GuiOptions> options = parseGuiOptions(QStringList{kScenario, "--screenshot", path, "--size", "1400x900"} + arguments);
        EXPECT_TRUE(options);
        const Result<void> taken = takeScreenshot(f.window, f.workspace, *options);
        EXPECT_TRUE(taken) << taken.error().toString();
        const QImage image(path);
        EXPECT_EQ(image.size(), QSize(1400, 900));
        return image;
    };
    std::vector<QImage> all = {picture({}), picture({"--panel", "collectives"}), picture({"--range", "1ms:2ms"}), picture({"--compare", kScenario}), picture({"--panel", "sweep"}), picture({"--panel", "path"})};
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << i << " and " << j;
}

TEST(GuiOptions, RanksTakesAllFilesTogether) {
    const Result<GuiOptions> options = parseGuiOptions({"a.json", "--ranks", "b.json"});
    ASSERT_TRUE(options) << options.error().toString();
    EXPECT_TRUE(options->together);
    EXPECT_EQ(options->files.size(), 2);
    EXPECT_FALSE(parseGuiOptions({"a.json", "b.json"})->together);
}

}  // namespace
}  // namespace ringside::gui
