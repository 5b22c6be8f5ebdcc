#include "gui/scenario/what_if_bar.h"

#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QSlider>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

namespace ringside::gui {
namespace {

constexpr double kMostSlowdown = 10, kSliderSteps = 90;  // a tenth each

const Json* stragglersOf(const Json& document) {
    const auto section = document.find("perturbation");
    if (section == document.end() || !section->is_object()) return nullptr;
    const auto list = section->find("stragglers");
    return list != section->end() && list->is_array() ? &*list : nullptr;
}

}  // namespace

StragglerQuestion stragglerIn(const Json& document) {
    const Json* list = stragglersOf(document);
    if (!list || list->empty() || !list->front().is_object()) return {};
    const Json& first = list->front();
    StragglerQuestion question;
    if (first.contains("rank") && first["rank"].is_number_integer()) question.rank = first["rank"].get<std::int64_t>();
    if (first.contains("compute") && first["compute"].is_number()) question.compute = first["compute"].get<double>();
    return question;
}

Json stragglersWith(const Json& document, const StragglerQuestion& question) {
    const Json* old = stragglersOf(document);
    Json list = old ? *old : Json::array();
    const bool keeps = !list.empty() && list.front().is_object() && list.front().value("link", 1.0) != 1.0;
    if (list.empty()) list.push_back(Json::object());
    if (!list.front().is_object()) list.front() = Json::object();
    list.front()["rank"] = question.rank;
    list.front()["compute"] = question.compute;
    if (question.compute == 1 && !keeps) list.erase(list.begin());
    return list.empty() ? Json(nullptr) : list;
}

WhatIfBar::WhatIfBar(const ScenarioForm& form, const Theme& theme, QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 4, 0, 6);
    column->setSpacing(0);
    auto* top = new QHBoxLayout;
    top->setContentsMargins(12, 0, 6, 2);
    auto* title = new QLabel("What if");
    QFont bold = title->font();
    bold.setBold(true);
    title->setFont(bold);
    asItIs_ = new QToolButton;
    asItIs_->setObjectName("asItIs");
    asItIs_->setText("As it is");
    asItIs_->setToolTip("Takes every what-if back");
    asItIs_->setAutoRaise(true);
    top->addWidget(title);
    top->addStretch(1);
    top->addWidget(asItIs_);
    column->addLayout(top);
    for (const char* path : {"what_if.network", "what_if.compute", "what_if.latency_us"}) {
        const FormField* field = form.find(path);
        auto* row = new FieldRow(*field, Json(1.0), theme, this);
        row->edited = [this](const std::string& key, const Json& value) {
            // As fast as it is, is no question.
            const bool neutral = value.is_number() && value.get<double>() == (key == "what_if.latency_us" ? 0 : 1);
            if (edited) edited(key, neutral ? Json(nullptr) : value);
        };
        rows_.push_back(row);
        column->addWidget(row);
    }

    auto* line = new QHBoxLayout;
    line->setContentsMargins(10, 2, 34, 2);
    line->setSpacing(6);
    auto* caption = new QLabel("Slow rank");
    caption->setFixedWidth(132);
    rank_ = new QSpinBox;
    rank_->setObjectName("stragglerRank");
    rank_->setPrefix("rank ");
    rank_->setToolTip("Which rank is slow");
    factor_ = new QDoubleSpinBox;
    factor_->setObjectName("stragglerFactor");
    factor_->setRange(1, 100);
    factor_->setSingleStep(0.1);
    factor_->setDecimals(2);
    factor_->setSuffix(" ×");
    factor_->setToolTip("Its kernels take so many times as long; 1: it is like the others");
    slider_ = new QSlider(Qt::Horizontal);
    slider_->setRange(0, static_cast<int>(kSliderSteps));
    line->addWidget(caption);
    for (QWidget* number : {static_cast<QWidget*>(rank_), static_cast<QWidget*>(factor_)}) number->setMaximumWidth(92);
    line->addWidget(rank_);
    line->addWidget(factor_);
    line->addWidget(slider_, 1);
    column->addLayout(line);
    connect(rank_, &QSpinBox::valueChanged, this, [this] {
        if (factor_->value() != 1) tellStraggler();
    });
    connect(factor_, &QDoubleSpinBox::valueChanged, this, [this](double value) {
        const QSignalBlocker quiet(slider_);
        slider_->setValue(static_cast<int>((value - 1) / (kMostSlowdown - 1) * kSliderSteps));
        tellStraggler();
    });
    connect(slider_, &QSlider::valueChanged, this, [this](int at) { factor_->setValue(1 + at * (kMostSlowdown - 1) / kSliderSteps); });
    connect(asItIs_, &QToolButton::clicked, this, [this] {
        if (!edited) return;
        edited("what_if", nullptr);
        edited("perturbation.stragglers", nullptr);
    });
    show(form);
}

void WhatIfBar::tellStraggler() {
    if (edited) edited("perturbation.stragglers", stragglersWith(document_, {rank_->value(), factor_->value()}));
}

void WhatIfBar::show(const ScenarioForm& form) {
    document_ = form.document();
    const auto& error = form.error();
    for (FieldRow* row : rows_) {
        const std::string& path = row->field().path;
        const Json shown = form.isGiven(path) ? form.shown(path) : path == "what_if.latency_us" ? Json(0) : Json(1);
        row->show(shown, form.isGiven(path), error && error->path == path ? QString::fromStdString(error->message) : QString());
    }
    const StragglerQuestion question = stragglerIn(document_);
    const QSignalBlocker quietRank(rank_), quietFactor(factor_), quietSlider(slider_);
    if (form.scenario()) rank_->setMaximum(static_cast<int>(form.scenario()->cluster.deviceCount() - 1));
    if (question.compute != 1) {
        rank_->setValue(static_cast<int>(question.rank));
    }
    factor_->setValue(question.compute);
    slider_->setValue(static_cast<int>((question.compute - 1) / (kMostSlowdown - 1) * kSliderSteps));
    asItIs_->setEnabled(form.isGiven("what_if") || form.isGiven("perturbation.stragglers"));
}

}  // namespace ringside::gui
