#include "gui/panels/details_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include <fmt/format.h>

#include "gui/timeline/time_axis.h"

namespace ringside::gui {

DetailsPanel::DetailsPanel(const GuiContext& context, QWidget* parent) : Panel(context, parent) {
    title_ = new QLabel;
    title_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    title_->setWordWrap(true);
    title_->setContentsMargins(12, 8, 12, 4);
    facts_ = new TableView;
    facts_->setSortingEnabled(false);
    flows_ = new TableView;
    flows_->setSortingEnabled(false);
    auto* tables = new QHBoxLayout;
    tables->setSpacing(1);
    tables->addWidget(facts_, 3);
    tables->addWidget(flows_, 2);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(title_);
    layout->addLayout(tables, 1);
    connect(flows_, &TableView::activatedTag, this, [this](std::uint32_t slice) {
        if (session()) session()->view().reveal(slice);
    });
}

void DetailsPanel::refresh() {
    const std::vector<TableColumn> factColumns = {{"Field"}, {"Value"}}, flowColumns = {{"Flow"}, {"Slice"}, {"Gap", "from the end of one to the start of the other", true, "gap_s"}};
    if (!session() || !session()->view().slice() || *session()->view().slice() >= session()->document().trace.size()) {
        title_->setText("<span style='color:gray'>Click a slice to see what is known of it.</span>");
        facts_->setTable(factColumns, {}, 1);
        flows_->setTable(flowColumns, {}, 1);
        return;
    }
    const Document& document = session()->document();
    const Trace& trace = document.trace;
    const std::uint32_t slice = *session()->view().slice();
    const Track& track = trace.tracks[trace.track[slice]];
    title_->setText("<b>" + QString::fromStdString(trace.names[trace.name[slice]]).toHtmlEscaped() + "</b>");
    std::vector<TableRow> facts;
    const auto fact = [&](const std::string& field, const std::string& value) {
        if (!value.empty()) facts.push_back({{TableCell::ofText(field), TableCell::ofText(value)}});
    };
    fact("duration", formatTime(trace.duration[slice]));
    fact("start", formatInstant(trace.start[slice] - document.range.begin));
    fact("end", formatInstant(trace.start[slice] + trace.duration[slice] - document.range.begin));
    fact("category", std::string(nameOf(trace.category[slice])));
    fact("track", fmt::format("rank {} · {}", track.rank, track.name));
    if (trace.task[slice] >= 0) fact("task", std::to_string(trace.task[slice]));
    if (trace.collective[slice] >= 0) {
        const CollectiveDetails& details = trace.collectives[static_cast<std::size_t>(trace.collective[slice])];
        fact("collective", details.op);
        fact("bytes", fmt::format("{} ({} elements of {})", formatBytes(details.bytes), formatCount(details.elements), details.dtype));
        fact("group", fmt::format("{}{} ranks", details.group.empty() ? "" : details.group + ", ", details.groupSize));
        fact("algorithm", details.algorithm.empty() ? "" : details.algorithm + " " + details.protocol);
        if (details.sequence >= 0) fact("sequence", std::to_string(details.sequence));
    }
    if (document.imported) {
        if (const auto args = document.imported->argsOf(slice))
            for (const auto& [name, value] : *args) fact(name, value);
    }
    facts_->setTable(factColumns, std::move(facts), 1);

    std::vector<TableRow> flows;
    const auto flow = [&](std::uint32_t f, bool into) {
        const Flow& arrow = trace.flows[f];
        const std::uint32_t other = into ? arrow.from : arrow.to;
        const char* kind = arrow.kind == Flow::Kind::Launch ? "launch" : arrow.kind == Flow::Kind::Collective ? "collective" : "dependency";
        TableCell name = TableCell::ofText(trace.names[trace.name[other]]);
        name.color = colors().of(trace.category[other]);
        flows.push_back({{TableCell::ofText(into ? fmt::format("from ({})", kind) : fmt::format("to ({})", kind)), name, TableCell::of(trace.start[arrow.to] - (trace.start[arrow.from] + trace.duration[arrow.from]))}, other});
    };
    for (const std::uint32_t f : document.flows.into(slice)) flow(f, true);
    for (const std::uint32_t f : document.flows.outOf(slice)) flow(f, false);
    flows_->setTable(flowColumns, std::move(flows), 1);
}

}  // namespace ringside::gui
