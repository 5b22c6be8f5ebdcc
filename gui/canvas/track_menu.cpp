#include "gui/canvas/track_menu.h"

#include <algorithm>
#include <utility>

#include <QMenu>

namespace ringside::gui {

TrackOptions toggled(TrackOptions options, const SliceIndex& index, const LayoutRow& row) {
    if (row.kind == RowKind::Rank) {
        options.collapsed.insert(row.rank);
        options.expanded.erase(row.rank);
    } else if (row.kind == RowKind::Density) {
        options.collapsed.erase(row.rank);
        options.expanded.insert(row.rank);
    } else if (row.kind == RowKind::Track && index.rowCount(row.track) > 1) {
        if (!options.folded.erase(row.track)) options.folded.insert(row.track);
    }
    return options;
}

void fillTrackMenu(QMenu& menu, Session& session, const LayoutRow& row) {
    const TrackOptions before = session.view().trackOptions();
    const auto add = [&](const QString& title, auto change) {
        menu.addAction(title, &session, [&session, before, change] {
            TrackOptions options = before;
            change(options);
            session.view().setTrackOptions(options);
        });
    };
    if (row.kind == RowKind::Track) {
        const bool pinned = std::find(before.pinned.begin(), before.pinned.end(), row.track) != before.pinned.end();
        if (pinned) add("Unpin track", [track = row.track](TrackOptions& options) { std::erase(options.pinned, track); });
        else add("Pin track to the top", [track = row.track](TrackOptions& options) { options.pinned.push_back(track); });
        if (session.document().index.rowCount(row.track) > 1)
            add(row.folded ? "Show nested slices" : "Show the outermost slices only", [&session, row](TrackOptions& options) { options = toggled(std::move(options), session.document().index, row); });
        menu.addSeparator();
    }
    const std::vector<std::int64_t> ranks = ranksOf(session.document().trace);
    add(QString("Move rank %1 to the top").arg(row.rank), [rank = row.rank](TrackOptions& options) {
        std::erase(options.order, rank);
        options.order.insert(options.order.begin(), rank);
    });
    add("Collapse all ranks", [ranks](TrackOptions& options) {
        options.expanded.clear();
        options.collapsed.insert(ranks.begin(), ranks.end());
    });
    add("Open all ranks", [ranks](TrackOptions& options) {
        options.collapsed.clear();
        options.expanded.insert(ranks.begin(), ranks.end());
    });
    add("All tracks as they were", [](TrackOptions& options) { options = {}; });
}

}  // namespace ringside::gui
