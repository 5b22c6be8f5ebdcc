#include "gui/panels/import_panel.h"

#include <QLabel>
#include <QVBoxLayout>

#include <fmt/format.h>

namespace ringside::gui {

ImportPanel::ImportPanel(const GuiContext& context, QWidget* parent) : Panel(context, parent) {
    about_ = new QLabel;
    about_->setWordWrap(true);
    about_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    about_->setContentsMargins(12, 8, 12, 6);
    table_ = new TableView;
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(about_);
    layout->addWidget(table_, 1);
}

void ImportPanel::refresh() {
    const std::vector<TableColumn> columns = {{"What"}, {"How often", {}, true}, {"Where first"}};
    if (!session()) {
        about_->setText("Nothing is open.");
        return table_->setTable(columns, {});
    }
    const Document& document = session()->document();
    std::string about = fmt::format("{} slices on {} tracks, {} flows, {} counters", formatCount(static_cast<std::int64_t>(document.trace.size())), document.trace.tracks.size(),
                                    formatCount(static_cast<std::int64_t>(document.trace.flows.size())), document.trace.counters.size());
    if (document.imported) {
        about = fmt::format("{}: {}", nameOf(document.imported->format), about);
        for (const TraceDevice& device : document.imported->metadata.devices) about += fmt::format(" · rank {}: {}{}", device.rank, device.name, device.memory > 0 ? ", " + formatBytes(device.memory) : "");
        if (!document.imported->metadata.backend.empty()) about += " · " + document.imported->metadata.backend;
    } else if (document.prediction) {
        about = "Predicted here: " + about;
    }
    if (!document.path.empty()) about += "\n" + document.path;
    if (document.notes.all().empty()) about += "\nEverything was understood: nothing was skipped or guessed.";
    about_->setText(QString::fromStdString(about));
    std::vector<TableRow> rows;
    for (const ImportNote& note : document.notes.all()) {
        TableCell what = TableCell::ofText(note.what);
        what.color = colors().warning;
        rows.push_back({{what, TableCell::ofCount(note.count), TableCell::ofText(note.where)}});
    }
    table_->setTable(columns, std::move(rows));
}

}  // namespace ringside::gui
