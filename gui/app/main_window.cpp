#include "gui/app/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <QMimeData>
#include <QProgressBar>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <QTabBar>
#include <QTabWidget>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/app/empty_state.h"
#include "gui/app/error_bar.h"
#include "gui/app/panel_list.h"
#include "gui/canvas/document_view.h"
#include "gui/canvas/timeline_widget.h"
#include "gui/compare/compare_view.h"
#include "gui/study/study_view.h"

namespace ringside::gui {

MainWindow::MainWindow(Workspace& workspace, Theme& theme, QWidget* parent) : QMainWindow(parent), workspace_(workspace), theme_(theme), commands_(this) {
    setWindowTitle("Ringside");
    setAcceptDrops(true);
    setDockOptions(AllowTabbedDocks | AllowNestedDocks | AnimatedDocks);
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);

    tabs_ = new QTabWidget;
    tabs_->setDocumentMode(true);
    tabs_->setTabsClosable(true);
    tabs_->setMovable(true);
    connect(tabs_, &QTabWidget::currentChanged, this, &MainWindow::tabChanged);
    connect(tabs_, &QTabWidget::tabCloseRequested, this, &MainWindow::closeTab);

    empty_ = new EmptyState;
    connect(empty_, &EmptyState::openRequested, this, [this] { openFiles(); });
    connect(empty_, &EmptyState::fileRequested, this, [this](const QString& path) { workspace_.open({path}); });
    connect(empty_, &EmptyState::exampleRequested, this, &MainWindow::openExample);
    middle_ = new QStackedWidget;
    middle_->addWidget(empty_);
    middle_->addWidget(tabs_);

    error_ = new ErrorBar;
    auto* central = new QWidget;
    auto* column = new QVBoxLayout(central);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(error_);
    column->addWidget(middle_, 1);
    setCentralWidget(central);

    connect(&workspace_, &Workspace::added, this, &MainWindow::addSession);
    connect(&workspace_, &Workspace::aboutToClose, this, [this](Session* session) {
        for (int i = 0; i < tabs_->count(); ++i)
            if (auto* view = qobject_cast<DocumentView*>(tabs_->widget(i)); view && &view->session() == session) {
                tabs_->removeTab(i);
                delete view;
                break;
            }
    });
    connect(&workspace_, &Workspace::currentChanged, this, [this](Session* session) {
        for (int i = 0; i < tabs_->count(); ++i)
            if (auto* view = qobject_cast<DocumentView*>(tabs_->widget(i)); view && &view->session() == session) tabs_->setCurrentIndex(i);
        updateCommands();
    });
    connect(&workspace_, &Workspace::failed, this, &MainWindow::showError);
    connect(&workspace_, &Workspace::viewRequested, this, &MainWindow::addView);
    connect(&workspace_, &Workspace::panelRequested, this, [this](const QString& id) { showPanel(id); });
    connect(&workspace_, &Workspace::said, this, [this](const QString& text) { statusBar()->showMessage(text, 8000); });

    addCommands();
    addPanels();
    addStudyCommands(context());
    addCompareCommands(context(), this);
    addStatusBar();
    commands_.fillMenus(*menuBar());
    for (QAction* menu : menuBar()->actions())
        if (menu->text() == "&Help") menuBar()->addAction(menu);  // last, where one looks for it
    addToolBar();
    fillRecentFiles();
    updateCommands();
    resize(1440, 900);
}

MainWindow::~MainWindow() {
    // Panels listen to sessions; they go first.
    workspace_.cancelOpening();
    workspace_.disconnect(this);
}

DocumentView* MainWindow::currentView() const {
    if (const auto* comparison = qobject_cast<CompareView*>(tabs_->currentWidget())) return &comparison->activeView();
    return qobject_cast<DocumentView*>(tabs_->currentWidget());
}

void MainWindow::addPanels() {
    specs_ = allPanels();
    std::map<Qt::DockWidgetArea, QDockWidget*> firstIn;
    for (const PanelSpec& spec : specs_) {
        auto* dock = new QDockWidget(spec.title, this);
        dock->setObjectName("panel." + spec.id);
        dock->setWidget(spec.make(context()));
        if (QDockWidget*& first = firstIn[spec.area]; first) tabifyDockWidget(first, dock);
        else addDockWidget(spec.area, first = dock);
        dock->setVisible(spec.visible);
        docks_[spec.id] = dock;
        commands_.add({"panel." + spec.id, "Panels", spec.title, "Shows the panel \"" + spec.title + "\"", {}, [this, id = spec.id] { showPanel(id); }});
    }
    for (const auto& [area, first] : firstIn) first->raise();
}

QStringList MainWindow::panelIds() const {
    QStringList ids;
    for (const PanelSpec& spec : specs_) ids << spec.id;
    return ids;
}

QStringList MainWindow::studyIds() const {
    QStringList ids;
    for (const Command& command : commands_.all())
        if (command.spec.id.startsWith("study.")) ids << command.spec.id.mid(6);
    return ids;
}

bool MainWindow::showPanel(const QString& id) {
    const auto it = docks_.find(id);
    if (it == docks_.end()) return false;
    std::erase(lent_, it->second);
    it->second->show();
    it->second->raise();
    return true;
}

/// Of two panels behind each other the one that speaks of what was just picked comes to the front; any other that is there stays.
void MainWindow::preferPanel(const QString& id, const QString& to) {
    QDockWidget *wanted = docks_.at(id), *other = docks_.at(to);
    if (!wanted->isHidden() && !other->visibleRegion().isEmpty() && tabifiedDockWidgets(other).contains(wanted)) wanted->raise();
}

void MainWindow::togglePanels() {
    if (hidden_.empty()) {
        for (const auto& [id, dock] : docks_)
            if (!dock->isHidden()) {
                hidden_.push_back(dock);
                dock->hide();
            }
        return;
    }
    for (const QPointer<QDockWidget>& dock : hidden_)
        if (dock) dock->show();
    hidden_.clear();
}

void MainWindow::takeBackRoom() {
    for (const QPointer<QDockWidget>& dock : lent_)
        if (dock) dock->show();
    for (const QPointer<QDockWidget>& dock : lentInFront_)
        if (dock) dock->raise();
    lent_.clear();
    lentInFront_.clear();
}

void MainWindow::lendRoom() {
    takeBackRoom();
    if (tabs_->currentIndex() < 0) return;
    const Session* session = workspace_.current();
    for (const auto& [id, dock] : docks_) {
        if (dock->isHidden() || dock->isFloating()) continue;
        const bool speaksOfADocument = dockWidgetArea(dock) == Qt::BottomDockWidgetArea, editsAScenario = id == "scenario";
        if (!(speaksOfADocument && !qobject_cast<DocumentView*>(tabs_->currentWidget())) && !(editsAScenario && session && !session->document().scenario)) continue;
        lent_.push_back(dock);
        if (!dock->visibleRegion().isEmpty()) lentInFront_.push_back(dock);
    }
    for (const QPointer<QDockWidget>& dock : lent_) dock->hide();
}

void MainWindow::addToolBar() {
    auto* bar = QMainWindow::addToolBar("Tools");
    bar->setObjectName("tools");
    bar->setMovable(false);
    for (const QString& id : {QString("file.open"), QString("view.back"), QString("view.forward"), QString("view.whole")})
        if (QAction* action = commands_.action(id)) bar->addAction(action);
}

void MainWindow::addStatusBar() {
    message_ = new QLabel;
    statusBar()->addWidget(message_, 1);
    progress_ = new QProgressBar;
    progress_->setRange(0, 100);
    progress_->setFixedWidth(180);
    progress_->hide();
    cancel_ = new QToolButton;
    cancel_->setText("Cancel");
    cancel_->hide();
    connect(cancel_, &QToolButton::clicked, &workspace_, &Workspace::cancelOpening);
    statusBar()->addPermanentWidget(progress_);
    statusBar()->addPermanentWidget(cancel_);
    connect(&workspace_, &Workspace::openingChanged, this, [this](const QString& path, double share) {
        progress_->setVisible(share >= 0);
        cancel_->setVisible(share >= 0);
        message_->setText(share >= 0 ? "Opening " + QFileInfo(path).fileName() + " …" : QString());
        progress_->setValue(static_cast<int>(100 * share));
    });
}

void MainWindow::addSession(Session* session) {
    auto* view = new DocumentView(*session, context());
    const QString title = QString::fromStdString(session->document().title);
    const int index = tabs_->addTab(view, fontMetrics().elidedText(title, Qt::ElideMiddle, 320));
    tabs_->setTabToolTip(index, session->document().path.empty() ? title : QString::fromStdString(session->document().path));
    connect(session, &Session::documentChanged, view, [this, view, session] {
        const int at = tabs_->indexOf(view);
        if (at >= 0) tabs_->setTabText(at, fontMetrics().elidedText(QString::fromStdString(session->document().title), Qt::ElideMiddle, 320));
    });
    connect(&view->timeline(), &TimelineWidget::picked, this, [this](TimelineWidget::Picked what) {
        if (what == TimelineWidget::Picked::Slice) preferPanel("details", "range");
        else preferPanel("range", "details");
    });
    tabs_->setCurrentIndex(index);
    middle_->setCurrentWidget(tabs_);
    const Document& document = session->document();
    if (!document.path.empty() && (!document.imported || document.imported->files.size() == 1)) rememberFile(QString::fromStdString(session->document().path));
}

void MainWindow::addView(QWidget* view, const QString& title) {
    tabs_->setCurrentIndex(tabs_->addTab(view, fontMetrics().elidedText(title, Qt::ElideMiddle, 320)));
    middle_->setCurrentWidget(tabs_);
}

void MainWindow::tabChanged(int index) {
    if (auto* view = qobject_cast<DocumentView*>(tabs_->widget(index))) workspace_.setCurrent(&view->session());
    if (index >= 0) tabs_->widget(index)->setFocus();
    lendRoom();
    setWindowTitle(index >= 0 ? tabs_->tabText(index) + " · Ringside" : "Ringside");
    if (index < 0) middle_->setCurrentWidget(empty_);
    updateCommands();
}

void MainWindow::closeTab(int index) {
    if (index < 0) return;
    if (auto* view = qobject_cast<DocumentView*>(tabs_->widget(index))) {
        workspace_.close(&view->session());
        return;
    }
    QWidget* view = tabs_->widget(index);
    tabs_->removeTab(index);
    delete view;
}

int MainWindow::currentTab() const { return tabs_->currentIndex(); }

void MainWindow::openFiles(bool together) {
    const QStringList paths = QFileDialog::getOpenFileNames(this, together ? "Open the ranks of a run" : "Open traces or scenarios", QSettings().value("folder").toString(),
                                                            "Traces and scenarios (*.json *.json.gz *.gz);;All files (*)");
    if (paths.isEmpty()) return;
    QSettings().setValue("folder", QFileInfo(paths.first()).path());
    if (together) workspace_.openTogether(paths);
    else workspace_.open(paths);
}

void MainWindow::openExample(int index) {
    const Example& example = examples()[static_cast<std::size_t>(index)];
    const Result<DocumentPtr> document = [&]() -> Result<DocumentPtr> {
        TRY(const Json json, parseJson(example.scenario.toStdString(), example.title.toStdString()));
        TRY(Scenario scenario, resolveScenario(json, example.title.toStdString(), workspace_.catalogs()));
        return predictDocument(std::make_shared<const Scenario>(std::move(scenario)), {}, json);
    }();
    if (document) workspace_.add(*document);
    else showError(document.error());
}

void MainWindow::showError(const Error& error) { error_->show(QString::fromStdString(error.toString())); }

void MainWindow::updateCommands() {
    const Session* session = workspace_.current();
    for (const Command& command : commands_.all())
        if (command.spec.id.startsWith("view.")) command.action->setEnabled(session || currentView());
        else if (command.spec.id.startsWith("go.")) command.action->setEnabled(tabs_->count() > 0);
}

void MainWindow::fillRecentFiles() {
    if (keepsSettings_) empty_->setRecentFiles(QSettings().value("recentFiles").toStringList());
}

void MainWindow::rememberFile(const QString& path) {
    if (!keepsSettings_) return;
    const QString absolute = QFileInfo(path).absoluteFilePath();
    QStringList files = QSettings().value("recentFiles").toStringList();
    files.removeAll(absolute);
    files.prepend(absolute);
    QSettings().setValue("recentFiles", files.mid(0, 12));
    fillRecentFiles();
}

void MainWindow::restoreLayout() {
    keepsSettings_ = true;
    fillRecentFiles();
    const QSettings settings;
    restoreGeometry(settings.value("geometry").toByteArray());
    restoreState(settings.value("docks").toByteArray());
}

void MainWindow::saveLayout() const {
    QSettings settings;
    settings.setValue("geometry", saveGeometry());
    settings.setValue("docks", saveState());
    settings.setValue("theme", theme_.id());
}

/// Before the user moves anything the timeline gets most of the room.
void MainWindow::showEvent(QShowEvent* event) {
    QMainWindow::showEvent(event);
    if (event->spontaneous() || (keepsSettings_ && QSettings().contains("docks"))) return;
    resizeDocks({docks_.at("scenario")}, {440}, Qt::Horizontal);
    resizeDocks({docks_.at("range")}, {std::max(190, height() / 3)}, Qt::Vertical);
}

/// Whatever has the focus and no use for W, S, A and D: they move the timeline.
void MainWindow::keyPressEvent(QKeyEvent* event) {
    DocumentView* view = currentView();
    const bool plain = !(event->modifiers() & (Qt::ControlModifier | Qt::AltModifier));
    if (!view || !plain || navigationKey(event->nativeScanCode(), event->key()) == NavigationKey::None || view->timeline().hasFocus()) return QMainWindow::keyPressEvent(event);
    view->timeline().setFocus();
    QApplication::sendEvent(&view->timeline(), event);
}

void MainWindow::closeEvent(QCloseEvent* event) {
    takeBackRoom();
    if (keepsSettings_) saveLayout();
    QMainWindow::closeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    QStringList paths;
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile()) paths << url.toLocalFile();
    if (!paths.isEmpty()) workspace_.open(paths);
}

}  // namespace ringside::gui
