// What the command line asks a window to show, and the window as a picture.
#pragma once

#include "gui/app/gui_options.h"
#include "gui/app/main_window.h"

namespace ringside::gui {

/// Opens the files one after the other, on this thread; then shows what `options` ask for, waits until no panel computes any
/// more and writes the picture. Fails with the first file that cannot be opened.
Result<void> takeScreenshot(MainWindow& window, Workspace& workspace, const GuiOptions& options);

/// Opens the files in the background, and shows what `options` ask for when they are there.
void applyWhenOpen(MainWindow& window, Workspace& workspace, const GuiOptions& options);

/// Runs the event loop until nothing in `window` works in the background. False after a minute.
bool settle(QWidget& window);

}  // namespace ringside::gui
