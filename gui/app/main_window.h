// MainWindow: tabs of documents and views in the middle, panels around them, commands from one registry.
#pragma once

#include <map>
#include <vector>

#include <QMainWindow>
#include <QPointer>

#include "gui/core/panel.h"

class QDockWidget;
class QLabel;
class QProgressBar;
class QStackedWidget;
class QTabWidget;
class QToolButton;

namespace ringside::gui {

class DocumentView;
class EmptyState;
class ErrorBar;
class TableView;

class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    /// Both outlive the window.
    MainWindow(Workspace& workspace, Theme& theme, QWidget* parent = nullptr);
    ~MainWindow() override;

    CommandRegistry& commands() { return commands_; }
    GuiContext context() { return {workspace_, theme_, commands_}; }
    /// What keys act on: the document in front, or of a comparison the side one works in. Null where there is no timeline.
    DocumentView* currentView() const;
    /// The table one works in, or else the largest one that is shown; null where there is none.
    TableView* tableInFront() const;

    /// False if there is none of that name.
    bool showPanel(const QString& id);
    QStringList panelIds() const;
    /// "scaling" for the command "study.scaling".
    QStringList studyIds() const;
    /// From and to QSettings: geometry, docks, recent files, theme.
    void restoreLayout();
    void saveLayout() const;
    /// Tells of a failure: in the bar above the tabs, until it is closed or another comes.
    void showError(const Error& error);

protected:
    void showEvent(QShowEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void addCommands();
    void addTimelineCommands();
    void showTrackFinder();
    void saveText(const QString& title, const QString& suggested, const std::string& text);
    void addPanels();
    void addToolBar();
    void addStatusBar();
    void addSession(Session* session);
    void addView(QWidget* view, const QString& title);
    void tabChanged(int index);
    void preferPanel(const QString& id, const QString& to);
    void closeTab(int index);
    int currentTab() const;
    void openFiles(bool together = false);
    void openExample(int index);
    void fillRecentFiles();
    void rememberFile(const QString& path);
    void showPalette();
    void showHelp();
    void togglePanels();
    /// Panels that have nothing to say of the tab in front lend it their room: those at the bottom to a comparison or a study, the
    /// scenario's to a trace that was not predicted. Whoever asks for one gets it all the same.
    void lendRoom();
    void takeBackRoom();
    void updateCommands();

    Workspace& workspace_;
    Theme& theme_;
    CommandRegistry commands_;
    QTabWidget* tabs_;
    EmptyState* empty_;
    QStackedWidget* middle_;
    ErrorBar* error_;
    std::vector<PanelSpec> specs_;
    std::map<QString, QDockWidget*> docks_;
    std::vector<QPointer<QDockWidget>> hidden_;  ///< by the key that hides the drawer
    std::vector<QPointer<QDockWidget>> lent_, lentInFront_;  ///< hidden by lendRoom; those that were not behind others
    bool keepsSettings_ = false;  ///< a window for a screenshot or a test leaves no trace
    QLabel* message_ = nullptr;
    QProgressBar* progress_ = nullptr;
    QToolButton* cancel_ = nullptr;
};

}  // namespace ringside::gui
