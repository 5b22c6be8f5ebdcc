// StudyRunner: a long computation with a bar that says how far it is and a button that ends it. The window never waits for it,
// unless it is closed: then the work is told to stop and ends first.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>

#include <QMetaObject>
#include <QWidget>

#include "gui/study/study_figures.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace ringside::gui {

class StudyRunner : public QWidget {
    Q_OBJECT
public:
    explicit StudyRunner(QWidget* parent = nullptr);
    ~StudyRunner() override;

    bool running() const { return running_; }
    /// Runs work(watch) on another thread, then done(answer) here, also when it was stopped. Does nothing while one runs.
    template <class Work, class Done>
    void run(Work work, Done done) {
        if (running_) return;
        begin();
        thread_ = std::jthread([this, work = std::move(work), done = std::move(done)](const std::stop_token& stop) mutable {
            StudyWatch watch;
            watch.stop = [stop] { return stop.stop_requested(); };
            watch.progress = [this](std::size_t done_, std::size_t all) { tell(done_, all); };
            watch.threads = threads();
            auto answer = std::make_shared<decltype(work(watch))>(work(watch));
            QMetaObject::invokeMethod(this, [this, answer, done = std::move(done)]() mutable {
                end();
                done(std::move(*answer));
            }, Qt::QueuedConnection);
        });
    }
    /// Asks the work to end soon; done() still comes.
    void cancel();
    void say(const QString& text);
    QString said() const;

    std::function<void()> started;  ///< the button was pressed

private:
    static int threads();  ///< all cores but one, which draws
    void begin();
    void end();
    void tell(std::size_t done, std::size_t all);

    QPushButton *start_, *stop_;
    QProgressBar* bar_;
    QLabel* text_;
    bool running_ = false;
    std::atomic<int> shown_ = -1;  ///< per mille that the GUI's thread was told last
    std::jthread thread_;
};

}  // namespace ringside::gui
