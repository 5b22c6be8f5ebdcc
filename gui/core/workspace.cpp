#include "gui/core/workspace.h"

#include <algorithm>
#include <utility>

#include <QMetaObject>
#include <QPointer>

#include "gui/core/marker_file.h"

namespace ringside::gui {

Workspace::Workspace(Catalogs catalogs, QObject* parent) : QObject(parent), catalogs_(std::make_shared<const Catalogs>(std::move(catalogs))) {}

Session* Workspace::add(DocumentPtr document) {
    auto* session = new Session(std::move(document), this);
    sessions_.push_back(session);
    if (session->document().imported) keepMarkers(session);
    emit added(session);
    setCurrent(session);
    return session;
}

void Workspace::keepMarkers(Session* session) {
    Result<std::vector<TimeMarker>> kept = readMarkers(session->document().path);
    if (!kept) {  // whatever the file holds, it is not written over
        emit failed(kept.error());
        return;
    }
    if (!kept->empty()) session->view().setMarkers(std::move(*kept));
    connect(&session->view(), &ViewState::markersChanged, this, [this, session] {
        const std::string& trace = session->document().path;
        const std::vector<TimeMarker>& markers = session->view().markers();
        if (const Result<void> written = writeMarkers(trace, markers); !written) emit failed(written.error());
        else if (!markers.empty()) say("Markers are kept in " + QString::fromStdString(markerFileOf(trace)));
    });
}

void Workspace::setCurrent(Session* session) {
    if (session == current_) return;
    current_ = session;
    emit currentChanged(session);
}

void Workspace::close(Session* session) {
    const auto it = std::find(sessions_.begin(), sessions_.end(), session);
    if (it == sessions_.end()) return;
    emit aboutToClose(session);
    const auto next = sessions_.erase(it);
    if (session == current_) setCurrent(sessions_.empty() ? nullptr : next != sessions_.end() ? *next : sessions_.back());
    session->deleteLater();
}

namespace {

std::vector<std::string> utf8(const QStringList& paths) {
    std::vector<std::string> list;
    for (const QString& path : paths) list.push_back(path.toStdString());
    return list;
}

}  // namespace

void Workspace::open(const QStringList& paths) {
    for (std::vector<std::string>& document : asDocuments(utf8(paths))) enqueue(std::move(document), [this](DocumentPtr opened) { add(std::move(opened)); });
}

void Workspace::openTogether(const QStringList& paths) {
    if (!paths.isEmpty()) enqueue(utf8(paths), [this](DocumentPtr opened) { add(std::move(opened)); });
}

void Workspace::load(const QStringList& paths, QObject* context, Use use) {
    if (paths.isEmpty()) return;
    enqueue(utf8(paths), [context = QPointer(context), use = std::move(use)](DocumentPtr opened) {
        if (context) use(std::move(opened));
    });
}

void Workspace::enqueue(std::vector<std::string> paths, Use use) {
    waiting_.push_back({std::move(paths), std::move(use)});
    if (!opener_.running()) openNext();
}

void Workspace::cancelOpening() {
    waiting_.clear();
    opener_.cancel();
    emit openingChanged({}, -1);
}

void Workspace::openNext() {
    if (waiting_.empty()) {
        emit openingChanged({}, -1);
        return;
    }
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    const QString path = QString::fromStdString(job.paths.front());
    opener_.start(
        [this, path, paths = std::move(job.paths), catalogs = catalogs_](std::stop_token stop) {
            const auto progress = [this, path](double share) {
                QMetaObject::invokeMethod(this, [this, path, share] {
                    if (opener_.running()) emit openingChanged(path, share);
                }, Qt::QueuedConnection);
            };
            return openDocument(paths, *catalogs, progress, stop);
        },
        [this, use = std::move(job.use)](Result<DocumentPtr> answer) {
            if (answer) use(std::move(*answer));
            else emit failed(answer.error());
            if (!opener_.running()) openNext();  // whoever was told may have asked for the next
        });
    emit openingChanged(path, 0);
}

}  // namespace ringside::gui
