// Widgets need an application; it draws into memory, and keeps its settings in a folder of its own.
#include <QApplication>
#include <QSettings>
#include <QTemporaryDir>

#include <gtest/gtest.h>

#include "gui/core/theme.h"

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QTemporaryDir settings;
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, settings.path());
    QCoreApplication::setOrganizationName("ringside-tests");
    QCoreApplication::setApplicationName("gui");
    QApplication application(argc, argv);
    ringside::gui::Theme().applyTo(application);
    return RUN_ALL_TESTS();
}
