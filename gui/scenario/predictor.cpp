#include "gui/scenario/predictor.h"

#include <QMetaObject>

namespace ringside::gui {

Predictor::Predictor(QObject* parent)
    : QObject(parent),
      worker_([](const Question& question) { return predictDocument(question.scenario, question.path, question.asGiven); },
              [this](std::uint64_t ticket, Result<DocumentPtr> answer) {
                  QMetaObject::invokeMethod(this, [this, ticket, answer = std::move(answer)] { take(ticket, answer); }, Qt::QueuedConnection);
              }) {}

void Predictor::ask(std::shared_ptr<const Scenario> scenario, Json asGiven, std::string path) {
    const bool wasBusy = busy();
    latest_ = worker_.ask({std::move(scenario), std::move(asGiven), std::move(path)});
    if (!wasBusy) emit busyChanged(true);
}

void Predictor::take(std::uint64_t ticket, const Result<DocumentPtr>& answer) {
    answered_ = ticket;
    if (ticket >= wanted_) {
        if (answer) emit predicted(*answer);
        else emit failed(answer.error());
    }
    if (!busy()) emit busyChanged(false);
}

}  // namespace ringside::gui
