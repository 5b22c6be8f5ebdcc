#include "gui/panels/collectives_panel.h"

#include <algorithm>

#include <QVBoxLayout>

namespace ringside::gui {
namespace {

/// nccl-tests' unit.
TableCell gigabytesPerSecond(double bytesPerSecond) {
    if (bytesPerSecond <= 0) return {"–", -1, {}};
    return {QString::number(bytesPerSecond / 1e9, 'f', 2), bytesPerSecond / 1e9, {}};
}

}  // namespace

CollectivesPanel::CollectivesPanel(const GuiContext& context, QWidget* parent) : Panel(context, parent) {
    table_ = new TableView;
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(table_);
    connect(table_, &TableView::activatedTag, this, [this](std::uint32_t slice) {
        if (session()) session()->view().reveal(slice);
    });
}

void CollectivesPanel::refresh() {
    if (!session()) return table_->setTable({}, {});
    if (matchedOf_ == session()->shared()) return fill();
    background_.start([document = session()->shared()](std::stop_token) { return matchCollectives(document->trace); },
                      [this, document = session()->shared()](std::vector<MatchedCollective> matched) {
                          matchedOf_ = document;
                          matched_ = std::move(matched);
                          fill();
                      });
}

void CollectivesPanel::fill() {
    if (!session() || session()->shared() != matchedOf_) return;
    const Trace& trace = matchedOf_->trace;
    const TimeRange range = session()->view().focus();
    std::vector<TableColumn> columns = {{"Operation"}, {"Start", {}, true, "start_s"}, {"Bytes", "of the whole buffer", true, "bytes"}, {"Ranks", "in the group", true},
                                        {"Algorithm", "and protocol; a hint where it was read from a kernel's name"}, {"Duration", "from the first arrival to the last end", true, "duration_s"},
                                        {"Wait", "the longest of a rank for the slowest", true, "wait_s"}, {"Transfer", "the shortest slice: of the rank that came last", true, "transfer_s"},
                                        {"algbw GB/s", "bytes / transfer", true, "algbw_gb_per_s"}, {"busbw GB/s", "algbw × the operation's factor, as nccl-tests has it", true, "busbw_gb_per_s"}, {"Type"}, {"Group"}, {"Seen", "ranks of this trace that took part", true}};
    std::vector<TableRow> rows;
    for (const MatchedCollective& matched : matched_) {
        if (matched.end <= range.begin || matched.begin >= range.end || matched.slices.empty()) continue;
        const CollectiveDetails& details = trace.collectives[static_cast<std::size_t>(matched.collective)];
        Time wait;
        for (const std::uint32_t slice : matched.slices) wait = std::max(wait, waitOf(trace, matched, slice));
        TableCell name = TableCell::ofText(details.op);
        name.color = colors().of(SliceCategory::Communication);
        rows.push_back({{name, TableCell::of(matched.begin - matchedOf_->range.begin), details.bytes > 0 ? TableCell::ofBytes(details.bytes) : TableCell{"–", -1, {}, {}}, TableCell::ofCount(details.groupSize), TableCell::ofText(details.algorithm.empty() ? "–" : details.algorithm + " " + details.protocol),
                         TableCell::of(matched.end - matched.begin), TableCell::of(wait), TableCell::of(matched.transfer), gigabytesPerSecond(matched.algbw), gigabytesPerSecond(matched.busbw),
                         TableCell::ofText(details.dtype), TableCell::ofText(details.group.empty() ? "all" : details.group), TableCell::ofCount(static_cast<std::int64_t>(matched.slices.size()))}, matched.slices.front()});
    }
    table_->setTable(std::move(columns), std::move(rows));
}

}  // namespace ringside::gui
