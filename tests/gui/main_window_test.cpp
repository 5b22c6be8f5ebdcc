// The window: files in, tabs, errors, panels.
#include <QSignalSpy>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>

#include <gtest/gtest.h>

#include "gui/app/error_bar.h"
#include "gui/app/main_window.h"
#include "gui/app/screenshot.h"

namespace ringside::gui {
namespace {

struct Fixture {
    Workspace workspace{Catalogs::builtin().value()};
    Theme theme;
    MainWindow window{workspace, theme};

    bool open(const QString& path) {
        QSignalSpy done(&workspace, &Workspace::openingChanged);
        workspace.open({path});
        for (int i = 0; i < 600 && workspace.opening(); ++i) QTest::qWait(10);
        return !workspace.opening();
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

}  // namespace
}  // namespace ringside::gui
