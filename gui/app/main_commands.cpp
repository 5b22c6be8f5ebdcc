// The commands of the window itself. Views and panels add their own.
#include <QApplication>
#include <QKeySequence>

#include "gui/app/help_dialog.h"
#include "gui/app/main_window.h"
#include "gui/app/palette_dialog.h"
#include "gui/canvas/document_view.h"

namespace ringside::gui {

void MainWindow::addCommands() {
    const auto view = [this](auto act) {
        return [this, act] {
            if (DocumentView* shown = currentView()) act(shown->session().view());
        };
    };
    commands_.add({"file.open", "File", "Open…", "Opens traces and scenarios; files that say that they are ranks of one run are shown together", {QKeySequence::Open}, [this] { openFiles(); }});
    commands_.add({"file.open-ranks", "File", "Open the ranks of a run…", "Opens one trace per rank as one timeline, whatever the files say", {QKeySequence("Ctrl+Alt+O")}, [this] { openFiles(true); }});
    commands_.add({"file.close", "File", "Close tab", "Closes the tab in front", {QKeySequence::Close}, [this] { closeTab(currentTab()); }});
    commands_.add({.id = "file.quit", .menu = "File", .title = "Quit", .help = "Ends the program", .keys = {QKeySequence("Ctrl+Q")}, .run = [this] { close(); }, .shownKeys = {}, .separatorBefore = true});

    commands_.add({"view.whole", "View", "Whole trace", "Shows the whole trace", {QKeySequence("0")}, view([](ViewState& state) { state.showWhole(); })});
    commands_.add({"view.back", "View", "Back", "Goes back to the last view", {QKeySequence("Alt+Left")}, view([](ViewState& state) { state.goBack(); })});
    commands_.add({"view.forward", "View", "Forward", "Goes forward again", {QKeySequence("Alt+Right")}, view([](ViewState& state) { state.goForward(); })});
    commands_.add({"view.clear", "View", "Clear selection", "Drops the range, then the slice", {QKeySequence("Esc")}, view([](ViewState& state) {
                       if (state.selection()) state.clearSelection();
                       else state.selectSlice({});
                   })});
    addTimelineCommands();
    commands_.add({.id = "window.panels", .menu = "View", .title = "Hide or show panels", .help = "Gives the timeline the whole window, and back", .keys = {QKeySequence("Q")},
                   .run = [this] { togglePanels(); }, .shownKeys = {}, .separatorBefore = true});
    for (const ThemeColors& colors : allThemes())
        commands_.add({"theme." + colors.id, "Theme", colors.title, "Uses the palette \"" + colors.title + "\"", {}, [this, id = colors.id] { theme_.set(id); }});

    commands_.add({"help.palette", "Help", "Command palette…", "Finds any command by name", {QKeySequence("Ctrl+Shift+P")}, [this] { showPalette(); }});
    commands_.add({"help.keys", "Help", "Keys and commands", "Lists every key", {QKeySequence("?"), QKeySequence("F1")}, [this] { showHelp(); }});
}

void MainWindow::showPalette() {
    auto* dialog = new PaletteDialog("Type a command", [this](const QString& typed) {
        std::vector<PaletteDialog::Entry> entries;
        for (const Command* command : commands_.matching(typed))
            entries.push_back({command->spec.menu.isEmpty() ? command->spec.title : command->spec.menu + ": " + command->spec.title, command->shownKeys(), [action = command->action] { action->trigger(); }});
        return entries;
    }, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->show();
}

void MainWindow::showHelp() {
    auto* dialog = new HelpDialog(commands_, theme_.colors(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->show();
}

}  // namespace ringside::gui
