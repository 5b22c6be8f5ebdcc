// ViewState: what one document's views look at. Named ranges (trace, window, selection), the chosen slice, tracks, instant and
// markers. Every panel listens to it; nobody keeps a copy. Zooming never filters: panels talk about focus(), not window().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QObject>
#include <QString>

#include "gui/timeline/navigation.h"
#include "gui/timeline/track_layout.h"

namespace ringside::gui {

struct TimeMarker {
    Time at;
    QString label;
};

/// A stretch of a slice that is on the critical path.
struct PathPiece {
    std::uint32_t slice = 0;
    TimeRange range;
};

class ViewState : public QObject {
    Q_OBJECT
public:
    /// How a window came to be: a jump is remembered by itself, steps of one movement together.
    enum class Move { Jump, Continuous };

    explicit ViewState(QObject* parent = nullptr) : QObject(parent) {}

    /// Another trace: shown whole, nothing selected.
    void reset(const TimeRange& trace);
    /// A new version of what is shown (an edited scenario): the window stays if the whole trace was not shown, slices are forgotten.
    void renew(const TimeRange& trace);

    const TimeRange& trace() const { return trace_; }
    const TimeRange& window() const { return window_; }
    const std::optional<TimeRange>& selection() const { return selection_; }
    /// What panels talk about: the selection, or the whole trace without one.
    TimeRange focus() const { return selection_.value_or(trace_); }
    /// Into Trace's columns.
    const std::optional<std::uint32_t>& slice() const { return slice_; }
    /// Tracks that the selection covers, sorted; empty: all.
    const std::vector<std::uint32_t>& tracks() const { return tracks_; }
    /// The instant that panels about an instant (memory) show.
    const std::optional<Time>& instant() const { return instant_; }
    const std::vector<TimeMarker>& markers() const { return markers_; }
    /// Which tracks are shown, and how.
    const TrackOptions& trackOptions() const { return trackOptions_; }
    /// What a search found, sorted; empty: nothing, or no search.
    const std::vector<std::uint32_t>& hits() const { return hits_; }
    /// Drawn over the timeline, in order of time; empty: not shown.
    const std::vector<PathPiece>& path() const { return path_; }
    bool canGoBack() const { return history_.canGoBack(); }
    bool canGoForward() const { return history_.canGoForward(); }

public slots:
    void setWindow(const ringside::gui::TimeRange& window, Move move = Move::Jump);
    void showWhole() { setWindow(wholeTrace(trace_)); }
    void goBack();
    void goForward();
    /// An empty range clears the selection. `tracks`: those it covers; empty: all.
    void select(const ringside::gui::TimeRange& range, std::vector<std::uint32_t> tracks = {});
    void clearSelection();
    void selectSlice(std::optional<std::uint32_t> slice);
    /// Selects the slice and asks the timeline to bring it into view: for rows of tables.
    void reveal(std::uint32_t slice);
    void setInstant(std::optional<ringside::Time> at);
    void addMarker(ringside::Time at, QString label = {});
    void removeMarkers();
    void setMarkers(std::vector<ringside::gui::TimeMarker> markers);
    void setTrackOptions(ringside::gui::TrackOptions options);
    void setHits(std::vector<std::uint32_t> hits);
    void setPath(std::vector<ringside::gui::PathPiece> path);

signals:
    void windowChanged();
    void selectionChanged();  ///< the range or its tracks: focus() changed
    void sliceChanged();
    void instantChanged();
    void markersChanged();
    void trackOptionsChanged();
    void hitsChanged();
    void pathChanged();
    void revealRequested(std::uint32_t slice);  ///< by reveal()

private:
    void show(const TimeRange& window);

    TimeRange trace_, window_;
    std::optional<TimeRange> selection_;
    std::optional<std::uint32_t> slice_;
    std::vector<std::uint32_t> tracks_;
    std::optional<Time> instant_;
    std::vector<TimeMarker> markers_;
    TrackOptions trackOptions_;
    std::vector<std::uint32_t> hits_;
    std::vector<PathPiece> path_;
    WindowHistory history_;
};

}  // namespace ringside::gui
