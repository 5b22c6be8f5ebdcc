#include "gui/panels/range_panel.h"

#include <QLabel>

#include "gui/panels/share_bar.h"
#include "gui/panels/side_column.h"
#include "gui/timeline/time_axis.h"

namespace ringside::gui {

RangePanel::RangePanel(const GuiContext& context, QWidget* parent) : Panel(context, parent) {
    title_ = new QLabel;
    title_->setWordWrap(true);
    note_ = new QLabel;
    note_->setEnabled(false);
    note_->setWordWrap(true);
    bar_ = new ShareBar(context.theme);
    table_ = new TableView;
    putBeside(this, {title_, bar_, note_}, table_);
    connect(table_, &TableView::activatedTag, this, [this](std::uint32_t slice) {
        if (session()) session()->view().reveal(slice);
    });
}

void RangePanel::refresh() {
    if (!session()) {
        title_->setText("Nothing is open.");
        table_->setTable({}, {});
        bar_->setShares({}, {});
        return;
    }
    const TimeRange range = session()->view().focus();
    background_.start([document = session()->shared(), range, tracks = session()->view().tracks()](std::stop_token) { return rangeStatistics(document->trace, range.begin, range.end, tracks); },
                      [this, document = session()->shared()](RangeStatistics statistics) { show(document, statistics); });
}

void RangePanel::show(const DocumentPtr& document, const RangeStatistics& statistics) {
    if (!session()) return;
    const Trace& trace = document->trace;
    const ViewState& view = session()->view();
    const auto text = [](const std::string& utf8) { return QString::fromStdString(utf8); };
    const QString which = view.selection() ? QString("<b>Selected range</b>: %1 from %2").arg(text(formatTime(statistics.end - statistics.begin)), text(formatInstant(statistics.begin - view.trace().begin)))
                                           : QString("<b>Whole trace</b>: %1").arg(text(formatTime(statistics.end - statistics.begin)));
    title_->setText(QString("%1<br>%2 slices%3").arg(which, text(formatCount(statistics.slices)), view.tracks().empty() ? QString() : QString(" on %1 selected tracks").arg(view.tracks().size())));
    // The mean over ranks; a single one mostly.
    Breakdown sum{};
    for (const auto& [rank, b] : statistics.ranks) {
        sum.compute += b.compute, sum.optimizer += b.optimizer, sum.communicationExposed += b.communicationExposed, sum.communicationHidden += b.communicationHidden;
        sum.host += b.host, sum.idle += b.idle, sum.copyExposed += b.copyExposed;
    }
    const auto ranks = static_cast<std::int64_t>(std::max<std::size_t>(1, statistics.ranks.size()));
    const auto mean = [&](Time t) { return Time::fromPicoseconds(t.picoseconds() / ranks); };
    const ThemeColors& c = colors();
    bar_->setShares("Where the time goes",
                    {{"compute", mean(sum.compute), c.of(SliceCategory::Compute)},
                     {"optimizer", mean(sum.optimizer), c.of(SliceCategory::Optimizer)},
                     {"exposed communication", mean(sum.communicationExposed), c.of(SliceCategory::Communication)},
                     {"host-bound", mean(sum.host), c.of(SliceCategory::Host)},
                     {"idle", mean(sum.idle), c.grid.darker(c.dark ? 80 : 108)}},
                    ranks > 1 ? QString("mean of %1 ranks").arg(ranks) : QString());
    const Time communication = mean(sum.communication());
    note_->setText(communication.picoseconds() == 0 ? QString("No communication in this range.")
                                                    : QString("Communication %1, of which %2 (%3 %) is hidden behind compute.")
                                                          .arg(text(formatTime(communication)), text(formatTime(mean(sum.communicationHidden))), QString::number(sum.overlapPercent(), 'f', 1)));
    std::vector<TableColumn> columns = {{"Name"}, {"Category"}, {"Count", "slices in the range", true}, {"Total", "time within the range", true, "total_s"}, {"Self", "total without what nests in it", true, "self_s"},
                                        {"Mean", "of whole slices", true, "mean_s"}, {"Min", {}, true, "min_s"}, {"P50", {}, true, "p50_s"}, {"P90", {}, true, "p90_s"}, {"P99", {}, true, "p99_s"}, {"Max", {}, true, "max_s"}};
    // The longest slice of each name in the range is what its row leads to.
    std::vector<std::uint32_t> longest(trace.names.size(), kNoSlice);
    for (std::uint32_t i = 0; i < trace.size(); ++i) {
        if (trace.start[i] >= statistics.end || trace.start[i] + trace.duration[i] <= statistics.begin) continue;
        std::uint32_t& best = longest[trace.name[i]];
        if (best == kNoSlice || trace.duration[i] > trace.duration[best]) best = i;
    }
    std::vector<TableRow> rows;
    rows.reserve(statistics.names.size());
    for (const NameStatistics& s : statistics.names) {
        TableCell name = TableCell::ofText(trace.names[s.name]);
        name.color = c.of(s.category);
        rows.push_back({{name, TableCell::ofText(std::string(nameOf(s.category))), TableCell::ofCount(s.count), TableCell::of(s.total), TableCell::of(s.self), TableCell::of(s.mean), TableCell::of(s.least),
                         TableCell::of(s.p50), TableCell::of(s.p90), TableCell::of(s.p99), TableCell::of(s.most)}, longest[s.name]});
    }
    table_->setTable(std::move(columns), std::move(rows));
}

}  // namespace ringside::gui
