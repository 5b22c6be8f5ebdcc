// ringside-gui: the program.
#include <QApplication>
#include <QSettings>

#include <fmt/format.h>

#include "gui/app/gui_options.h"
#include "gui/app/main_window.h"
#include "gui/app/screenshot.h"
#include "model/base/heap.h"

namespace ringside::gui {
namespace {

int fail(const Error& error) {
    fmt::print(stderr, "ringside-gui: {}\n", error.toString());
    return static_cast<int>(error.code);
}

QStringList argumentsOf(int argc, char** argv) {
    QStringList arguments;
    for (int i = 1; i < argc; ++i) arguments << QString::fromLocal8Bit(argv[i]);
    return arguments;
}

/// Without this Qt ends the program with an abort where there is no display.
bool hasDisplay() { return !qEnvironmentVariableIsEmpty("DISPLAY") || !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY") || !qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM"); }

int run(int argc, char** argv) {
    const Result<GuiOptions> options = parseGuiOptions(argumentsOf(argc, argv));
    if (!options) return fail(options.error());
    if (options->help) {
        fmt::print("{}", guiHelpText().toStdString());
        return 0;
    }
    if (options->version) {
        fmt::print("ringside-gui {}\nRingside itself: Apache-2.0. This program is linked with Qt Charts, so as a whole it is under the GPL, version 3.\n", RINGSIDE_VERSION);
        return 0;
    }
    if (!hasDisplay()) {
        if (options->screenshot.isEmpty())
            return fail({ErrorCode::MissingCapability, "no display was found (DISPLAY and WAYLAND_DISPLAY are empty); --screenshot OUT.png needs none", ""});
        qputenv("QT_QPA_PLATFORM", "offscreen");
    }
    QCoreApplication::setOrganizationName("ringside");
    QCoreApplication::setApplicationName("ringside-gui");
    QCoreApplication::setApplicationVersion(RINGSIDE_VERSION);
    QApplication application(argc, argv);

    Result<Catalogs> catalogs = Catalogs::builtin();
    if (!catalogs) return fail(catalogs.error());
    Workspace workspace(std::move(*catalogs));
    Theme theme;
    QObject::connect(&theme, &Theme::changed, &application, [&] { theme.applyTo(application); });
    if (!theme.set(!options->theme.isEmpty() || !options->screenshot.isEmpty() ? options->theme : QSettings().value("theme").toString())) theme.set("light");

    MainWindow window(workspace, theme);
    if (const QStringList known = window.panelIds() + window.studyIds(); !options->panel.isEmpty() && !known.contains(options->panel))
        return fail({ErrorCode::Usage, fmt::format("'{}' is no panel; there are {}", options->panel.toStdString(), known.join(", ").toStdString()), "--panel"});
    if (!options->screenshot.isEmpty()) {
        if (const Result<void> taken = takeScreenshot(window, workspace, *options); !taken) return fail(taken.error());
        return 0;
    }
    window.restoreLayout();
    if (options->sizeGiven) window.resize(options->size);
    window.show();
    applyWhenOpen(window, workspace, *options);
    return application.exec();
}

}  // namespace
}  // namespace ringside::gui

int main(int argc, char** argv) {
    ringside::keepFreedMemory();
    return ringside::gui::run(argc, argv);
}
