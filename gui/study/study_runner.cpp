#include "gui/study/study_runner.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

namespace ringside::gui {

StudyRunner::StudyRunner(QWidget* parent) : QWidget(parent) {
    start_ = new QPushButton("Run");
    start_->setObjectName("run");
    stop_ = new QPushButton("Cancel");
    stop_->setObjectName("cancel");
    stop_->setEnabled(false);
    bar_ = new QProgressBar;
    bar_->setRange(0, 1000);
    bar_->setFixedWidth(160);
    bar_->setTextVisible(false);
    bar_->setValue(0);
    bar_->hide();
    text_ = new QLabel;
    text_->setObjectName("said");
    text_->setForegroundRole(QPalette::PlaceholderText);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(start_);
    row->addWidget(stop_);
    row->addWidget(bar_);
    row->addWidget(text_, 1);
    connect(start_, &QPushButton::clicked, this, [this] {
        if (started) started();
    });
    connect(stop_, &QPushButton::clicked, this, &StudyRunner::cancel);
}

StudyRunner::~StudyRunner() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
}

int StudyRunner::threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1); }

void StudyRunner::cancel() {
    if (!running_) return;
    thread_.request_stop();
    stop_->setEnabled(false);
    say("Stopping…");
}

void StudyRunner::begin() {
    if (thread_.joinable()) thread_.join();
    running_ = true;
    shown_ = -1;
    start_->setEnabled(false);
    stop_->setEnabled(true);
    bar_->setValue(0);
    bar_->show();
    say("Predicting…");
}

void StudyRunner::end() {
    running_ = false;
    bar_->hide();
    start_->setEnabled(true);
    stop_->setEnabled(false);
}

void StudyRunner::tell(std::size_t done, std::size_t all) {
    const int perMille = all == 0 ? 0 : static_cast<int>(done * 1000 / all);
    if (shown_.exchange(perMille) == perMille) return;
    QMetaObject::invokeMethod(this, [this, perMille, done, all] {
        bar_->setValue(perMille);
        if (running_ && stop_->isEnabled()) say(QString("%1 of %2 predicted").arg(done).arg(all));
    }, Qt::QueuedConnection);
}

void StudyRunner::say(const QString& text) { text_->setText(text); }
QString StudyRunner::said() const { return text_->text(); }

}  // namespace ringside::gui
