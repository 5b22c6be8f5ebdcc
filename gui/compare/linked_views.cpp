#include "gui/compare/linked_views.h"

namespace ringside::gui {
namespace {

TimeRange shifted(const TimeRange& range, Time by) { return {range.begin + by, range.end + by}; }

}  // namespace

LinkedViews::LinkedViews(ViewState& upper, ViewState& lower, QObject* parent) : QObject(parent), upper_(upper), lower_(lower) {
    connect(&upper_, &ViewState::windowChanged, this, [this] { follow(upper_, lower_, shift_); });
    connect(&lower_, &ViewState::windowChanged, this, [this] { follow(lower_, upper_, Time() - shift_); });
    connect(&upper_, &ViewState::selectionChanged, this, [this] { follow(upper_, lower_, shift_); });
    connect(&lower_, &ViewState::selectionChanged, this, [this] { follow(lower_, upper_, Time() - shift_); });
}

void LinkedViews::setShift(Time shift) {
    shift_ = shift;
    follow(upper_, lower_, shift_);
}

void LinkedViews::setLinked(bool linked) {
    linked_ = linked;
    if (linked_) follow(upper_, lower_, shift_);
}

void LinkedViews::follow(ViewState& from, ViewState& to, Time shift) {
    if (moving_ || !linked_) return;
    moving_ = true;
    to.setWindow(shifted(from.window(), shift), ViewState::Move::Continuous);
    if (from.selection()) to.select(shifted(*from.selection(), shift));
    else if (to.selection()) to.clearSelection();
    moving_ = false;
}

}  // namespace ringside::gui
