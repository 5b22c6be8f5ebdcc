#include "gui/panels/memory_panel.h"

#include <algorithm>
#include <set>

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include <fmt/format.h>

#include "gui/timeline/time_axis.h"
#include "traces/analysis/memory_at.h"

namespace ringside::gui {

MemoryPanel::MemoryPanel(const GuiContext& context, QWidget* parent) : Panel(context, parent) {
    rank_ = new QComboBox;
    title_ = new QLabel;
    title_->setWordWrap(true);
    auto* peak = new QPushButton("Go to the peak");
    peak->setObjectName("memory.peak");
    categories_ = new TableView;
    tensors_ = new TableView;
    auto* top = new QHBoxLayout;
    top->setContentsMargins(12, 6, 12, 6);
    top->addWidget(rank_);
    top->addWidget(title_, 1);
    top->addWidget(peak);
    auto* tables = new QHBoxLayout;
    tables->setSpacing(1);
    tables->addWidget(categories_, 2);
    tables->addWidget(tensors_, 3);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(top);
    layout->addLayout(tables, 1);
    connect(peak, &QPushButton::clicked, this, &MemoryPanel::goToPeak);
    connect(rank_, &QComboBox::currentIndexChanged, this, &MemoryPanel::outdated);
}

void MemoryPanel::goToPeak() {
    if (!session() || rank_->count() == 0) return;
    session()->view().setInstant(memoryPeak(session()->document().trace, rank_->currentData().toLongLong()));
}

void MemoryPanel::refresh() {
    const std::vector<TableColumn> byCategory = {{"Category"}, {"Bytes", {}, true, "bytes"}, {"Share", "of what is allocated", true, "share"}},
                                   byTensor = {{"Tensor alive"}, {"Category"}, {"Bytes", {}, true, "bytes"}, {"Alive from", {}, true, "from_s"}, {"for", {}, true, "for_s"}};
    std::set<std::int64_t> ranks;
    if (session()) {
        for (const CounterSeries& counter : session()->document().trace.counters)
            if (counter.name.find("emory") != std::string::npos || counter.name.find("allocated") != std::string::npos) ranks.insert(counter.rank);
        for (const Allocation& allocation : session()->document().trace.allocations) ranks.insert(allocation.rank);
    }
    {
        const QSignalBlocker quiet(rank_);
        const QVariant chosen = rank_->currentData();
        rank_->clear();
        for (const std::int64_t rank : ranks) rank_->addItem(QString("rank %1").arg(rank), QVariant::fromValue<qlonglong>(rank));
        rank_->setCurrentIndex(std::max(0, rank_->findData(chosen)));
        rank_->setVisible(ranks.size() > 1);
    }
    if (ranks.empty()) {
        title_->setText(session() ? "<span style='color:gray'>This trace has no memory in it. PyTorch's profiler records it with profile_memory=True.</span>" : "Nothing is open.");
        categories_->setTable(byCategory, {});
        return tensors_->setTable(byTensor, {});
    }
    const Document& document = session()->document();
    const Trace& trace = document.trace;
    const std::int64_t rank = rank_->currentData().toLongLong();
    const bool peak = !session()->view().instant();
    const Time at = session()->view().instant().value_or(memoryPeak(trace, rank));
    const MemoryAt memory = memoryAt(trace, rank, at);
    const Bytes capacity = memory.capacity > 0 ? memory.capacity : document.capacity;
    std::string title = fmt::format("<b>{}</b> {} {}", formatBytes(memory.allocated), peak ? "at the peak," : "at", formatInstant(at - document.range.begin));
    if (memory.reserved > 0) title += fmt::format(" · reserved {}", formatBytes(memory.reserved));
    if (capacity > 0) title += fmt::format(" · capacity {}", formatBytes(capacity));
    if (peak) title += "<br><span style='color:gray'>Click the counter on the timeline for another instant.</span>";
    title_->setText(QString::fromStdString(title));

    // The colours are those of the counter's series.
    const auto colorOf = [&](const std::string& category) {
        for (const CounterSeries& counter : trace.counters)
            for (std::size_t s = 0; counter.series.size() > 1 && s < counter.series.size(); ++s)
                if (counter.series[s] == category) return colors().seriesColor(s);
        return colors().muted;
    };
    std::vector<TableRow> rows;
    for (const auto& [category, bytes] : memory.categories) {
        if (bytes == 0) continue;
        TableCell name = {QString::fromStdString(category).replace('_', ' '), std::numeric_limits<double>::quiet_NaN(), colorOf(category)};
        rows.push_back({{name, TableCell::ofBytes(bytes), TableCell::ofPercent(memory.allocated > 0 ? static_cast<double>(bytes) / static_cast<double>(memory.allocated) : 0)}});
    }
    std::stable_sort(rows.begin(), rows.end(), [](const TableRow& a, const TableRow& b) { return a.cells[1].value > b.cells[1].value; });
    categories_->setTable(byCategory, std::move(rows));
    std::vector<TableRow> alive;
    for (const std::uint32_t i : memory.alive) {
        const Allocation& allocation = trace.allocations[i];
        const bool always = allocation.end == Time::max();
        alive.push_back({{TableCell::ofText(trace.names[allocation.name]), {QString::fromStdString(trace.names[allocation.category]).replace('_', ' '), std::numeric_limits<double>::quiet_NaN(), colorOf(trace.names[allocation.category])},
                          TableCell::ofBytes(allocation.bytes), TableCell::of(allocation.begin - document.range.begin), always ? TableCell{"always", 1e12, {}} : TableCell::of(allocation.end - allocation.begin)}});
        if (alive.size() == 5000) break;
    }
    tensors_->setTable(byTensor, std::move(alive));
}

}  // namespace ringside::gui
