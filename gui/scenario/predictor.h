// Predictor: turns scenarios into documents off the GUI's thread. While it works only the newest question waits.
#pragma once

#include <cstdint>
#include <memory>

#include <QObject>

#include "gui/core/document.h"
#include "gui/scenario/latest_worker.h"

namespace ringside::gui {

class Predictor : public QObject {
    Q_OBJECT
public:
    explicit Predictor(QObject* parent = nullptr);

    /// Returns at once; predicted() or failed() follows, unless a newer question overtakes this one.
    void ask(std::shared_ptr<const Scenario> scenario, Json asGiven, std::string path = {});
    /// Forgets what is under way: neither signal comes for it.
    void forget() { wanted_ = latest_ + 1; }
    bool busy() const { return answered_ < latest_; }

signals:
    void predicted(ringside::gui::DocumentPtr document);
    void failed(const ringside::Error& error);
    void busyChanged(bool busy);

private:
    struct Question {
        std::shared_ptr<const Scenario> scenario;
        Json asGiven;
        std::string path;
    };
    void take(std::uint64_t ticket, const Result<DocumentPtr>& answer);

    std::uint64_t latest_ = 0, answered_ = 0;
    std::uint64_t wanted_ = 1;  ///< answers before this one are of no interest any more
    LatestWorker<Question, Result<DocumentPtr>> worker_;
};

}  // namespace ringside::gui
