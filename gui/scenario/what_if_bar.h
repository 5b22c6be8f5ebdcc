// WhatIfBar: the questions people ask of a finished picture: a faster network, faster devices, more latency, one slow rank.
#pragma once

#include <functional>
#include <vector>

#include <QWidget>

#include "gui/core/theme.h"
#include "gui/scenario/field_row.h"

class QDoubleSpinBox;
class QSlider;
class QSpinBox;
class QToolButton;

namespace ringside::gui {

/// The first straggler of a scenario document; compute 1 means none.
struct StragglerQuestion {
    std::int64_t rank = 0;
    double compute = 1;
};
StragglerQuestion stragglerIn(const Json& document);
/// The value for perturbation.stragglers that asks it; other stragglers of the document stay. Null: none is left.
Json stragglersWith(const Json& document, const StragglerQuestion& question);

class WhatIfBar : public QWidget {
    Q_OBJECT
public:
    WhatIfBar(const ScenarioForm& form, const Theme& theme, QWidget* parent = nullptr);

    void show(const ScenarioForm& form);

    std::function<void(const std::string& path, const Json& value)> edited;

private:
    void tellStraggler();

    std::vector<FieldRow*> rows_;
    QSpinBox* rank_;
    QDoubleSpinBox* factor_;
    QSlider* slider_;
    QToolButton* asItIs_;
    Json document_;
};

}  // namespace ringside::gui
