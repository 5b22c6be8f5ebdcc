// Workspace: everything that is open, and which of it the panels follow. The one object that all parts of the window share.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <QObject>
#include <QString>
#include <QStringList>

#include "gui/core/background.h"
#include "gui/core/session.h"
#include "sim/scenario.h"

class QWidget;

namespace ringside::gui {

class Workspace : public QObject {
    Q_OBJECT
public:
    explicit Workspace(Catalogs catalogs, QObject* parent = nullptr);

    const Catalogs& catalogs() const { return *catalogs_; }
    std::shared_ptr<const Catalogs> sharedCatalogs() const { return catalogs_; }

    const std::vector<Session*>& sessions() const { return sessions_; }
    /// Null where nothing is open.
    Session* current() const { return current_; }

    /// Opens it in a tab of its own and makes it current. The workspace owns the session.
    Session* add(DocumentPtr document);
    void setCurrent(Session* session);
    void close(Session* session);

    /// In the background, one after the other; added(), or failed() with what was wrong. Files that say that they are the ranks of one
    /// run are one document (asDocuments).
    void open(const QStringList& paths);
    /// As the ranks of one run, whatever they say.
    void openTogether(const QStringList& paths);
    /// Likewise in the background, but given to `use` instead of a tab of its own. `context` gone: not used.
    void load(const QStringList& paths, QObject* context, std::function<void(DocumentPtr)> use);
    bool opening() const { return opener_.running() || !waiting_.empty(); }
    void cancelOpening();

    /// Asks for a tab of its own for a view that is no document (a comparison, a study). The window takes ownership.
    void showView(QWidget* view, const QString& title) { emit viewRequested(view, title); }
    /// Asks for a panel to be brought to the front, by its id.
    void showPanel(const QString& id) { emit panelRequested(id); }
    /// A line for the status bar.
    void say(const QString& text) { emit said(text); }

signals:
    void added(ringside::gui::Session* session);
    void aboutToClose(ringside::gui::Session* session);
    void currentChanged(ringside::gui::Session* session);  ///< null: nothing is open
    void openingChanged(const QString& path, double progress);  ///< progress < 0: done
    void failed(const ringside::Error& error);
    void viewRequested(QWidget* view, const QString& title);
    void panelRequested(const QString& id);
    void said(const QString& text);

private:
    using Use = std::function<void(DocumentPtr)>;
    struct Job {
        std::vector<std::string> paths;  ///< of one document
        Use use;
    };
    void enqueue(std::vector<std::string> paths, Use use);
    void openNext();
    void keepMarkers(Session* session);

    std::shared_ptr<const Catalogs> catalogs_;
    std::vector<Session*> sessions_;
    Session* current_ = nullptr;
    std::deque<Job> waiting_;
    Background opener_;
};

}  // namespace ringside::gui
