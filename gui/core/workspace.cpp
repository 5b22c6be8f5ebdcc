#include "gui/core/workspace.h"

#include <algorithm>
#include <utility>

#include <QMetaObject>

namespace ringside::gui {

Workspace::Workspace(Catalogs catalogs, QObject* parent) : QObject(parent), catalogs_(std::make_shared<const Catalogs>(std::move(catalogs))) {}

Session* Workspace::add(DocumentPtr document) {
    auto* session = new Session(std::move(document), this);
    sessions_.push_back(session);
    emit added(session);
    setCurrent(session);
    return session;
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

void Workspace::open(const QStringList& paths) {
    waiting_ += paths;
    if (!opener_.running()) openNext();
}

void Workspace::cancelOpening() {
    waiting_.clear();
    opener_.cancel();
    emit openingChanged({}, -1);
}

void Workspace::openNext() {
    if (waiting_.isEmpty()) {
        emit openingChanged({}, -1);
        return;
    }
    const QString path = waiting_.takeFirst();
    emit openingChanged(path, 0);
    opener_.start(
        [this, path, catalogs = catalogs_](std::stop_token stop) {
            const auto progress = [this, path](double share) {
                QMetaObject::invokeMethod(this, [this, path, share] {
                    if (opener_.running()) emit openingChanged(path, share);
                }, Qt::QueuedConnection);
            };
            return openDocument(path.toStdString(), *catalogs, progress, stop);
        },
        [this](Result<DocumentPtr> answer) {
            if (answer) add(std::move(*answer));
            else emit failed(answer.error());
            openNext();
        });
}

}  // namespace ringside::gui
