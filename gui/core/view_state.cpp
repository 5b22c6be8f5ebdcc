#include "gui/core/view_state.h"

#include <algorithm>
#include <utility>

namespace ringside::gui {

void ViewState::reset(const TimeRange& trace) {
    trace_ = trace;
    slice_.reset();
    selection_.reset();
    tracks_.clear();
    instant_.reset();
    markers_.clear();
    trackOptions_ = {};
    hits_.clear();
    path_.clear();
    history_.clear(wholeTrace(trace));
    show(wholeTrace(trace));
    emit selectionChanged();
    emit sliceChanged();
    emit instantChanged();
    emit markersChanged();
    emit trackOptionsChanged();
    emit hitsChanged();
    emit pathChanged();
}

void ViewState::renew(const TimeRange& trace) {
    const bool whole = window_ == wholeTrace(trace_);
    trace_ = trace;
    slice_.reset();
    if (selection_) {
        const TimeRange cut = clamp(*selection_, trace);
        if (cut.empty()) selection_.reset();
        else selection_ = cut;
    }
    if (instant_) instant_ = std::clamp(*instant_, trace.begin, trace.end);
    hits_.clear();
    path_.clear();
    show(whole ? wholeTrace(trace) : keepInside(window_, trace));
    emit selectionChanged();
    emit sliceChanged();
    emit instantChanged();
    emit trackOptionsChanged();
    emit hitsChanged();
    emit pathChanged();
}

void ViewState::show(const TimeRange& window) {
    window_ = window;
    emit windowChanged();
}

void ViewState::setWindow(const TimeRange& window, Move move) {
    const TimeRange inside = keepInside(window, trace_);
    if (inside == window_) return;
    history_.visit(inside, move == Move::Continuous);
    show(inside);
}

void ViewState::goBack() {
    if (history_.canGoBack()) show(history_.back());
}

void ViewState::goForward() {
    if (history_.canGoForward()) show(history_.forward());
}

void ViewState::select(const TimeRange& range, std::vector<std::uint32_t> tracks) {
    if (range.empty()) return clearSelection();
    std::sort(tracks.begin(), tracks.end());
    if (selection_ == range && tracks_ == tracks) return;
    selection_ = range;
    tracks_ = std::move(tracks);
    emit selectionChanged();
}

void ViewState::clearSelection() {
    if (!selection_ && tracks_.empty()) return;
    selection_.reset();
    tracks_.clear();
    emit selectionChanged();
}

void ViewState::selectSlice(std::optional<std::uint32_t> slice) {
    if (slice == slice_) return;
    slice_ = slice;
    emit sliceChanged();
}

void ViewState::setInstant(std::optional<Time> at) {
    if (at == instant_) return;
    instant_ = at;
    emit instantChanged();
}

void ViewState::addMarker(Time at, QString label) {
    if (label.isEmpty()) label = QString(QChar('A' + static_cast<int>(markers_.size() % 26)));
    markers_.push_back({at, std::move(label)});
    emit markersChanged();
}

void ViewState::setMarkers(std::vector<TimeMarker> markers) {
    markers_ = std::move(markers);
    emit markersChanged();
}

void ViewState::removeMarkers() {
    markers_.clear();
    emit markersChanged();
}

void ViewState::reveal(std::uint32_t slice) {
    selectSlice(slice);
    emit revealRequested(slice);
}

void ViewState::setTrackOptions(TrackOptions options) {
    if (options == trackOptions_) return;
    trackOptions_ = std::move(options);
    emit trackOptionsChanged();
}

void ViewState::setHits(std::vector<std::uint32_t> hits) {
    hits_ = std::move(hits);
    emit hitsChanged();
}

void ViewState::setPath(std::vector<PathPiece> path) {
    path_ = std::move(path);
    emit pathChanged();
}

}  // namespace ringside::gui
