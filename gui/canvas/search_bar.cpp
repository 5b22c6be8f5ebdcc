#include "gui/canvas/search_bar.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QTimer>
#include <QToolButton>

#include "traces/analysis/slice_search.h"

namespace ringside::gui {

SearchBar::SearchBar(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
    typed_ = new QLineEdit;
    typed_->setObjectName("search");
    typed_->setPlaceholderText("Search slices by name: a regular expression; Enter for the next hit, Shift+Enter for the one before");
    typed_->setClearButtonEnabled(true);
    typed_->installEventFilter(this);
    status_ = new QLabel;
    status_->setMinimumWidth(110);
    const auto button = [&](const QString& text, const QString& tip, auto run) {
        auto* made = new QToolButton;
        made->setText(text);
        made->setToolTip(tip);
        made->setAutoRaise(true);
        connect(made, &QToolButton::clicked, this, run);
        return made;
    };
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(10, 4, 6, 4);
    layout->addWidget(typed_, 1);
    layout->addWidget(status_);
    layout->addWidget(button("▲", "The hit before (Shift+Enter)", [this] { step(false); }));
    layout->addWidget(button("▼", "The next hit (Enter)", [this] { step(true); }));
    layout->addWidget(button("✕", "Close (Esc)", [this] { hide(); }));
    timer_ = new QTimer(this);
    timer_->setSingleShot(true);
    timer_->setInterval(120);
    connect(timer_, &QTimer::timeout, this, &SearchBar::search);
    connect(typed_, &QLineEdit::textChanged, timer_, qOverload<>(&QTimer::start));
    connect(&session_, &Session::documentChanged, this, [this] {
        hits_.clear();
        at_ = -1;
        if (isVisible()) timer_->start();
    });
    hide();
}

void SearchBar::begin() {
    show();
    typed_->setFocus();
    typed_->selectAll();
    if (!typed_->text().isEmpty() && hits_.empty()) timer_->start();
}

void SearchBar::setPattern(const QString& pattern) { typed_->setText(pattern); }

QString SearchBar::status() const { return status_->text(); }

void SearchBar::search() {
    background_.start([document = session_.shared(), pattern = typed_->text().toStdString()](std::stop_token) { return searchSlices(document->trace, pattern); },
                      [this](Result<SearchHits> found) {
                          error_ = found ? QString() : QString::fromStdString(found.error().message);
                          hits_ = found ? std::move(found->slices) : std::vector<std::uint32_t>();
                          at_ = -1;
                          std::vector<std::uint32_t> sorted = hits_;
                          std::sort(sorted.begin(), sorted.end());
                          session_.view().setHits(std::move(sorted));
                          showStatus();
                      });
}

void SearchBar::showStatus() {
    status_->setToolTip(error_);
    if (!error_.isEmpty()) status_->setText("no regular expression");
    else if (typed_->text().isEmpty()) status_->clear();
    else if (hits_.empty()) status_->setText("no hit");
    else if (at_ < 0) status_->setText(QString("%1 hit%2").arg(QString::fromStdString(formatCount(static_cast<std::int64_t>(hits_.size()))), hits_.size() == 1 ? "" : "s"));
    else status_->setText(QString("%1 of %2").arg(QString::fromStdString(formatCount(at_ + 1)), QString::fromStdString(formatCount(static_cast<std::int64_t>(hits_.size())))));
}

void SearchBar::step(bool forward) {
    if (hits_.empty()) return;
    const auto count = static_cast<std::ptrdiff_t>(hits_.size());
    const Trace& trace = session_.document().trace;
    if (at_ < 0) {
        // From where one looks.
        const Time from = session_.view().slice() ? trace.start[*session_.view().slice()] : session_.view().window().begin;
        at_ = std::partition_point(hits_.begin(), hits_.end(), [&](std::uint32_t s) { return trace.start[s] < from; }) - hits_.begin();
        if (!forward) at_ -= 1;
    } else {
        at_ += forward ? 1 : -1;
    }
    at_ = (at_ % count + count) % count;
    session_.view().reveal(hits_[static_cast<std::size_t>(at_)]);
    showStatus();
}

bool SearchBar::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            step(!(key->modifiers() & Qt::ShiftModifier));
            return true;
        }
        if (key->key() == Qt::Key_Escape) {
            hide();
            return true;
        }
    }
    // Esc is a shortcut of the window too; here it closes the bar.
    if (event->type() == QEvent::ShortcutOverride && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        event->accept();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void SearchBar::hideEvent(QHideEvent*) {
    session_.view().setHits({});
    hits_.clear();
    at_ = -1;
    if (parentWidget()) parentWidget()->setFocus();
}

}  // namespace ringside::gui
