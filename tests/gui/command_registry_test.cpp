// One registry feeds menus, palette and help.
#include <QAction>
#include <QMainWindow>
#include <QMenuBar>

#include <gtest/gtest.h>

#include "gui/app/help_dialog.h"
#include "gui/core/command_registry.h"

namespace ringside::gui {
namespace {

struct Fixture {
    QMainWindow window;
    CommandRegistry commands{&window};
    int opened = 0, fitted = 0;

    Fixture() {
        commands.add({"file.open", "File", "Open…", "Opens a file", {QKeySequence("Ctrl+O")}, [this] { ++opened; }});
        commands.add({"view.fit", "View", "Fit selection", "Fits the selection", {QKeySequence("F")}, [this] { ++fitted; }});
        commands.add({.id = "key.zoom", .menu = {}, .title = "Zoom", .help = "Zooms in and out", .keys = {}, .run = {}, .shownKeys = "W S"});
    }
};

TEST(CommandRegistry, MakesAMenuPerNameWithTheActionsThatShortcutsTrigger) {
    Fixture f;
    f.commands.fillMenus(*f.window.menuBar());
    const QList<QAction*> menus = f.window.menuBar()->actions();
    ASSERT_EQ(menus.size(), 2);
    EXPECT_EQ(menus[0]->text(), "&File");
    f.commands.action("view.fit")->trigger();
    EXPECT_EQ(f.fitted, 1);
    EXPECT_EQ(f.commands.action("view.fit")->shortcut(), QKeySequence("F"));
    EXPECT_EQ(f.commands.action("no.such"), nullptr);
}

TEST(CommandRegistry, FindsCommandsByTheFirstLettersOfTheirWords) {
    Fixture f;
    ASSERT_FALSE(f.commands.matching("fs").empty());
    EXPECT_EQ(f.commands.matching("fs").front()->spec.id, "view.fit");
    EXPECT_EQ(f.commands.matching("open").front()->spec.id, "file.open");
    EXPECT_TRUE(f.commands.matching("xyz").empty());
    f.commands.action("view.fit")->setEnabled(false);
    EXPECT_TRUE(f.commands.matching("fit sel").empty()) << "what cannot be run is not offered";
}

TEST(CommandRegistry, TypedLettersMustComeInOrder) {
    EXPECT_GE(matchScore("Whole trace", "wt"), 0);
    EXPECT_LT(matchScore("Whole trace", "tw"), 0);
    EXPECT_GT(matchScore("Fit selection", "fit"), matchScore("Find it", "fit")) << "letters in a row count for more";
}

TEST(CommandRegistry, HelpListsEveryKeyAlsoThoseThatWidgetsHandle) {
    Fixture f;
    const QString html = helpHtml(f.commands, allThemes().front());
    EXPECT_TRUE(html.contains("Ctrl+O"));
    EXPECT_TRUE(html.contains("W S"));
    EXPECT_TRUE(html.contains("Zooms in and out"));
}

}  // namespace
}  // namespace ringside::gui
