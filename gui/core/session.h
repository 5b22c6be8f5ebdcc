// Session: one open document and how it is looked at. Editing a scenario gives the session a new document.
#pragma once

#include <memory>
#include <utility>

#include <QObject>

#include "gui/core/document.h"
#include "gui/core/view_state.h"

namespace ringside::gui {

class Session : public QObject {
    Q_OBJECT
public:
    explicit Session(DocumentPtr document, QObject* parent = nullptr) : QObject(parent), document_(std::move(document)) { view_.reset(document_->range); }

    const Document& document() const { return *document_; }
    /// To keep it alive in another thread, or after the session has a new one.
    const DocumentPtr& shared() const { return document_; }
    ViewState& view() { return view_; }
    const ViewState& view() const { return view_; }

    /// Another version of the same thing: the window, the selection and the markers stay.
    void replaceDocument(DocumentPtr document) {
        document_ = std::move(document);
        emit documentChanged();
        view_.renew(document_->range);
    }

signals:
    void documentChanged();  ///< slice ids of the old document mean nothing any more

private:
    DocumentPtr document_;
    ViewState view_;
};

}  // namespace ringside::gui
