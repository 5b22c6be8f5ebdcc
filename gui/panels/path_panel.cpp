#include "gui/panels/path_panel.h"

#include <algorithm>
#include <map>

#include <QCheckBox>
#include <QLabel>

#include "gui/panels/share_bar.h"
#include "gui/panels/side_column.h"
#include "traces/analysis/enclosing.h"

namespace ringside::gui {

PathPanel::PathPanel(const GuiContext& context, QWidget* parent) : Panel(context, parent) {
    overlay_ = new QCheckBox("Show it on the timeline");
    overlay_->setObjectName("path.overlay");
    bar_ = new ShareBar(context.theme);
    note_ = new QLabel;
    note_->setWordWrap(true);
    note_->setEnabled(false);
    table_ = new TableView;
    putBeside(this, {overlay_, bar_, note_}, table_);
    connect(overlay_, &QCheckBox::toggled, this, &PathPanel::showOnTimeline);
    connect(table_, &TableView::activatedTag, this, [this](std::uint32_t slice) {
        if (session()) session()->view().reveal(slice);
    });
    context.commands.add({"view.path", "Timeline", "Critical path", "Shows or hides the critical path of the range on the timeline", {QKeySequence("P")}, [this] {
                              refreshNow();
                              overlay_->toggle();
                          }});
}

/// What it draws on the timeline is seen also while the panel is behind others.
bool PathPanel::isWanted() const { return Panel::isWanted() || overlay_->isChecked(); }

void PathPanel::refresh() {
    if (!session()) {
        table_->setTable({}, {});
        return bar_->setShares("Critical path", {});
    }
    const TimeRange range = session()->view().focus();
    if (answeredOf_ == session()->shared() && answeredFor_ == range) return fill();
    background_.start([document = session()->shared(), range](std::stop_token) { return Answer{tracePath(document->trace, range.begin, range.end), sliceSlack(document->trace, range.begin, range.end)}; },
                      [this, document = session()->shared(), range](Answer answer) {
                          answeredOf_ = document;
                          answeredFor_ = range;
                          answer_ = std::move(answer);
                          fill();
                          showOnTimeline(overlay_->isChecked());
                      });
}

void PathPanel::showOnTimeline(bool shown) {
    if (!session()) return;
    std::vector<PathPiece> pieces;
    if (shown && answeredOf_ == session()->shared())
        for (const ringside::PathPiece& piece : answer_.path.pieces)
            if (piece.slice != kNoSlice) pieces.push_back({piece.slice, {piece.begin, piece.end}});
    session()->view().setPath(std::move(pieces));
}

void PathPanel::fill() {
    if (!session() || session()->shared() != answeredOf_) return;
    const Trace& trace = answeredOf_->trace;
    const TracePath& path = answer_.path;
    std::vector<Share> shares;
    for (std::size_t c = 0; c < path.byCategory.size(); ++c)
        if (path.byCategory[c].picoseconds() > 0) {
            const auto category = static_cast<SliceCategory>(c);
            shares.push_back({QString::fromStdString(std::string(nameOf(category))), path.byCategory[c], colors().of(category)});
        }
    if (path.idle.picoseconds() > 0) shares.push_back({"nothing seen", path.idle, colors().grid});
    bar_->setShares("Critical path", std::move(shares), QString::fromStdString(formatTime(path.end - path.begin)));

    struct OfName {
        Time time;
        std::int64_t pieces = 0, inferred = 0;
        std::uint32_t longest = kNoSlice;
        Time longestTime;
        SliceCategory category = SliceCategory::Compute;
    };
    std::map<std::uint32_t, OfName> names;
    std::int64_t inferred = 0;
    for (const ringside::PathPiece& piece : path.pieces) {
        if (piece.slice == kNoSlice) continue;
        OfName& name = names[trace.name[piece.slice]];
        name.time += piece.end - piece.begin;
        ++name.pieces;
        inferred += piece.isInferred;
        name.category = trace.category[piece.slice];
        if (name.longest == kNoSlice || piece.end - piece.begin > name.longestTime) name.longest = piece.slice, name.longestTime = piece.end - piece.begin;
    }
    note_->setText(inferred == 0 ? QString("Making a slice on the path shorter makes the range shorter; anything else does not. Slack: how much longer a slice could have taken.")
                                 : QString("%1 of %2 steps along the path are inferred: no flow says what waited for what, the last to end on the device counts.").arg(inferred).arg(path.pieces.size()));
    // The least slack of each name, to see what nearly decides.
    std::vector<Time> slack(trace.names.size(), Time::max());
    std::vector<std::uint32_t> tightest(trace.names.size(), kNoSlice);
    for (std::uint32_t i = 0; i < answer_.slack.size(); ++i)
        if (answer_.slack[i] < slack[trace.name[i]]) slack[trace.name[i]] = answer_.slack[i], tightest[trace.name[i]] = i;
    std::vector<TableRow> rows;
    const double whole = (path.end - path.begin).seconds();
    for (std::uint32_t n = 0; n < trace.names.size(); ++n) {
        const auto on = names.find(n);
        if (on == names.end() && tightest[n] == kNoSlice) continue;
        const Time time = on == names.end() ? Time() : on->second.time;
        const std::uint32_t leads = on == names.end() ? tightest[n] : on->second.longest;
        TableCell name = TableCell::ofText(trace.names[n]);
        name.color = colors().of(trace.category[leads]);
        rows.push_back({{name, TableCell::of(time), TableCell::ofPercent(whole > 0 ? time.seconds() / whole : 0), TableCell::ofCount(on == names.end() ? 0 : on->second.pieces),
                         slack[n] == Time::max() ? TableCell{"–", 1e12, {}} : TableCell::of(slack[n])}, leads});
    }
    std::stable_sort(rows.begin(), rows.end(), [](const TableRow& a, const TableRow& b) { return a.cells[1].value > b.cells[1].value; });
    table_->setTable({{"Name"}, {"On the path", "time of slices of this name on the critical path", true, "on_path_s"}, {"Share", "of the range", true, "share"}, {"Pieces", {}, true},
                      {"Least slack", "by how much the tightest slice of this name could end later", true, "least_slack_s"}}, std::move(rows));
}

}  // namespace ringside::gui
