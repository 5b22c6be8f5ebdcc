// LinkedViews: two view states that move together. What one shows, the other shows too, shifted so that steps stand under each other.
#pragma once

#include <QObject>

#include "gui/core/view_state.h"

namespace ringside::gui {

class LinkedViews : public QObject {
    Q_OBJECT
public:
    /// Both outlive the link.
    LinkedViews(ViewState& upper, ViewState& lower, QObject* parent = nullptr);

    /// The instant of the lower trace that stands under `upper`'s time zero. Windows follow at once: the upper one leads.
    void setShift(Time shift);
    Time shift() const { return shift_; }
    bool linked() const { return linked_; }
    void setLinked(bool linked);

private:
    void follow(ViewState& from, ViewState& to, Time shift);

    ViewState &upper_, &lower_;
    Time shift_;
    bool linked_ = true;
    bool moving_ = false;  ///< the other one's answer to our own move
};

}  // namespace ringside::gui
