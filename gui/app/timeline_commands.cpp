// The commands of the timeline in front.
#include <algorithm>

#include <QApplication>
#include <QFileDialog>
#include <QInputDialog>
#include <QKeySequence>

#include <fmt/format.h>

#include "gui/app/main_window.h"
#include "gui/app/palette_dialog.h"
#include "gui/canvas/document_view.h"
#include "gui/canvas/search_bar.h"
#include "gui/canvas/timeline_widget.h"
#include "gui/core/table_view.h"
#include "traces/export/atomic_file.h"
#include "traces/export/chrome_json.h"

namespace ringside::gui {
namespace {

TimeRange rangeOf(const Trace& trace, std::uint32_t slice) { return {trace.start[slice], trace.start[slice] + trace.duration[slice]}; }

/// The slice beside another on its row; kNoSlice at an end.
std::uint32_t neighbour(const Document& document, std::uint32_t slice, bool next) {
    for (const SliceRow& row : document.index.rows(document.trace.track[slice]))
        if (const std::optional<std::size_t> at = row.positionOf(slice)) {
            if (next) return *at + 1 < row.size() ? row.slice(*at + 1) : kNoSlice;
            return *at > 0 ? row.slice(*at - 1) : kNoSlice;
        }
    return kNoSlice;
}

}  // namespace

void MainWindow::addTimelineCommands() {
    // Each runs on the document in front, and not at all where there is none.
    const auto on = [this](auto act) {
        return [this, act] {
            if (DocumentView* view = currentView()) act(*view);
        };
    };
    const auto onSlice = [on](auto act) {
        return on([act](DocumentView& view) {
            const std::optional<std::uint32_t> slice = view.session().view().slice();
            if (slice && *slice < view.session().document().trace.size()) act(view.session(), *slice);
        });
    };
    const auto keysOnly = [this](const char* id, const char* keys, const char* help) {
        commands_.add({.id = id, .menu = "Timeline", .title = help, .help = help, .keys = {}, .run = {}, .shownKeys = keys});
    };
    keysOnly("keys.zoom", "W  S", "Zoom in and out at the cursor (by place on the keyboard; faster while held)");
    keysOnly("keys.pan", "A  D", "Pan left and right");
    keysOnly("keys.wheel", "Wheel", "Scroll; with Ctrl zoom at the cursor, with Shift pan");
    keysOnly("keys.drag", "Drag", "Select a range; across rows, of those tracks");
    keysOnly("keys.pan-drag", "Shift+drag", "Pan; the middle button too");
    keysOnly("keys.click", "Click", "Select a slice; on a counter, an instant");
    keysOnly("keys.double", "Double-click", "Zoom to a slice");
    keysOnly("keys.header", "Click a name", "Collapse or open a rank, fold a track; the right button has more");
    keysOnly("keys.order", "Drag a name", "Put a rank, a track of a rank or a pinned track in another place");

    commands_.add({"view.fit", "Timeline", "Centre, then fit", "Centres the selected slice or range; once more fits it", {QKeySequence("F")}, on([](DocumentView& shown) {
                       ViewState& view = shown.session().view();
                       const Document& document = shown.session().document();
                       if (view.slice() && *view.slice() < document.trace.size()) view.setWindow(centreThenFit(view.window(), rangeOf(document.trace, *view.slice()), view.trace()));
                       else if (view.selection()) view.setWindow(centreThenFit(view.window(), *view.selection(), view.trace()));
                       else view.showWhole();
                   })});
    commands_.add({"view.next", "Timeline", "Next slice on the track", "The next slice on the same row", {QKeySequence(".")}, onSlice([](Session& session, std::uint32_t slice) {
                       if (const std::uint32_t next = neighbour(session.document(), slice, true); next != kNoSlice) session.view().reveal(next);
                   })});
    commands_.add({"view.previous", "Timeline", "Slice before on the track", "The slice before it on the same row", {QKeySequence(",")}, onSlice([](Session& session, std::uint32_t slice) {
                       if (const std::uint32_t next = neighbour(session.document(), slice, false); next != kNoSlice) session.view().reveal(next);
                   })});
    commands_.add({"view.flow-next", "Timeline", "Along the flow", "Follows the arrow out of the slice", {QKeySequence("]")}, onSlice([](Session& session, std::uint32_t slice) {
                       if (const std::uint32_t next = nextAlongFlow(session.document().trace, session.document().flows, slice); next != kNoSlice) session.view().reveal(next);
                   })});
    commands_.add({"view.flow-previous", "Timeline", "Back along the flow", "Follows the arrow into the slice backwards", {QKeySequence("[")}, onSlice([](Session& session, std::uint32_t slice) {
                       if (const std::uint32_t next = previousAlongFlow(session.document().trace, session.document().flows, slice); next != kNoSlice) session.view().reveal(next);
                   })});
    commands_.add({"view.slice-range", "Timeline", "Slice to range", "Selects the range of the slice", {QKeySequence("R")}, onSlice([](Session& session, std::uint32_t slice) {
                       session.view().select(rangeOf(session.document().trace, slice));
                   })});
    commands_.add({"view.all", "Timeline", "Select everything", "Selects the whole trace as a range", {QKeySequence("Ctrl+A")}, on([](DocumentView& shown) { shown.session().view().select(shown.session().view().trace()); })});
    commands_.add({"view.marker", "Timeline", "Set a marker", "Marks the instant under the cursor", {QKeySequence("M")}, on([](DocumentView& shown) {
                       shown.session().view().addMarker(shown.timeline().cursorTime());
                   })});
    commands_.add({"view.note", "Timeline", "Set a marker with a note…", "Marks the instant under the cursor and says what is there", {QKeySequence("N")}, on([this](DocumentView& shown) {
                       const Time at = shown.timeline().cursorTime();
                       bool ok = false;
                       const QString note = QInputDialog::getText(this, "Set a marker", "What is at " + QString::fromStdString(formatTime(at)) + ":", QLineEdit::Normal, {}, &ok).trimmed();
                       if (ok) shown.session().view().addMarker(at, note);
                   })});
    commands_.add({"view.no-markers", "Timeline", "Remove markers", "Removes all markers", {QKeySequence("Shift+M")}, on([](DocumentView& shown) { shown.session().view().removeMarkers(); })});
    commands_.add({.id = "view.search", .menu = "Timeline", .title = "Search slices…", .help = "Finds slices by name; Enter and Shift+Enter go from hit to hit", .keys = {QKeySequence("/"), QKeySequence::Find},
                   .run = on([](DocumentView& shown) { shown.search().begin(); }), .shownKeys = {}, .separatorBefore = true});
    commands_.add({"view.find-track", "Timeline", "Go to a track…", "Finds a track by name", {QKeySequence("Ctrl+P")}, [this] { showTrackFinder(); }});
    commands_.add({"view.filter", "Timeline", "Filter tracks…", "Shows only tracks whose name holds a word", {QKeySequence("Ctrl+Shift+F")}, on([this](DocumentView& shown) {
                       TrackOptions options = shown.session().view().trackOptions();
                       bool ok = false;
                       const QString filter = QInputDialog::getText(this, "Filter tracks", "Part of a track's name, or \"rank 3\"; empty shows all:", QLineEdit::Normal, QString::fromStdString(options.filter), &ok);
                       if (!ok) return;
                       options.filter = filter.toStdString();
                       shown.session().view().setTrackOptions(options);
                   })});
    commands_.add({"view.collapse", "Timeline", "Collapse or open all ranks", "One density row per rank, or all tracks", {QKeySequence("C")}, on([](DocumentView& shown) {
                       ViewState& view = shown.session().view();
                       TrackOptions options = view.trackOptions();
                       const std::vector<std::int64_t> ranks = ranksOf(shown.session().document().trace);
                       const bool open = std::any_of(ranks.begin(), ranks.end(), [&](std::int64_t rank) { return !isCollapsed(options, rank, ranks.size()); });
                       options.collapsed.clear();
                       options.expanded.clear();
                       (open ? options.collapsed : options.expanded).insert(ranks.begin(), ranks.end());
                       view.setTrackOptions(options);
                   })});
    commands_.add({"view.flows", "Timeline", "Show or hide flow arrows", "Arrows of the selected slice: what it waited for and what waits for it", {QKeySequence("Shift+F")},
                   on([](DocumentView& shown) { shown.timeline().setFlowsShown(!shown.timeline().flowsShown()); })});

    commands_.add({.id = "go.save-picture", .menu = "File", .title = "Save the view as a picture…", .help = "PNG, or SVG for print", .keys = {QKeySequence("Ctrl+Shift+S")},
                   .run = [this] {
                       QWidget* shown = tabs_->currentWidget();
                       if (!shown) return;
                       const QString path = QFileDialog::getSaveFileName(this, "Save the view", "timeline.png", "Pictures (*.png *.svg)");
                       if (path.isEmpty()) return;
                       if (const Result<void> saved = savePicture(*shown, path); !saved) showError(saved.error());
                       else workspace_.say("Wrote " + path);
                   }, .shownKeys = {}, .separatorBefore = true});
    commands_.add({"go.save-table", "File", "Save the table as CSV…", "The table one works in, or else the largest one shown", {QKeySequence("Ctrl+Alt+S")}, [this] {
                       if (TableView* table = tableInFront()) table->saveCsv();
                       else workspace_.say("No table is shown");
                   }});
    commands_.add({"go.save-trace", "File", "Save as Chrome trace…", "For Perfetto and everything else that reads PyTorch's traces", {}, on([this](DocumentView& shown) {
                       const QString path = QFileDialog::getSaveFileName(this, "Save the trace", "trace.json", "Chrome traces (*.json)");
                       if (path.isEmpty()) return;
                       if (const Result<void> saved = writeChromeTrace(shown.session().document().trace, path.toStdString()); !saved) showError(saved.error());
                       else workspace_.say("Wrote " + path);
                   })});
    commands_.add({"go.save-scenario", "File", "Save the scenario in full…", "The scenario as used, with every default filled in", {}, on([this](DocumentView& shown) {
                       const Document& document = shown.session().document();
                       if (!document.scenario) return showError({ErrorCode::AnswerIsNo, "this trace was not predicted here, so there is no scenario to save", document.title});
                       saveText("Save the scenario", "scenario.json", toJson(*document.scenario).dump(2) + "\n");
                   })});
}

TableView* MainWindow::tableInFront() const {
    const QWidget* focus = QApplication::focusWidget();
    TableView* largest = nullptr;
    const auto area = [](const QWidget& widget) { return widget.width() * widget.height(); };
    for (TableView* table : findChildren<TableView*>()) {
        if (table->visibleRegion().isEmpty() || table->model()->rowCount() == 0) continue;
        if (focus && (table == focus || table->isAncestorOf(focus))) return table;
        if (!largest || area(*table) > area(*largest)) largest = table;
    }
    return largest;
}

void MainWindow::saveText(const QString& title, const QString& suggested, const std::string& text) {
    const QString path = QFileDialog::getSaveFileName(this, title, suggested);
    if (path.isEmpty()) return;
    if (const Result<void> saved = atomicWriteFile(path.toStdString(), text); !saved) showError(saved.error());
    else workspace_.say("Wrote " + path);
}

void MainWindow::showTrackFinder() {
    DocumentView* view = currentView();
    if (!view) return;
    auto* dialog = new PaletteDialog("Go to a track", [this](const QString& typed) {
        std::vector<std::pair<int, PaletteDialog::Entry>> found;
        DocumentView* shown = currentView();
        if (!shown) return std::vector<PaletteDialog::Entry>();
        const Trace& trace = shown->session().document().trace;
        for (std::uint32_t t = 0; t < trace.tracks.size(); ++t) {
            const QString title = QString::fromStdString(fmt::format("rank {}: {}", trace.tracks[t].rank, trace.tracks[t].name));
            const int score = matchScore(title, typed);
            if (score < 0) continue;
            found.emplace_back(score, PaletteDialog::Entry{title, QString::fromStdString(formatCount(static_cast<std::int64_t>(trace.firstSlice(t + 1) - trace.firstSlice(t))) + " slices"), [this, t] {
                DocumentView* front = currentView();
                if (!front) return;
                TrackOptions options = front->session().view().trackOptions();
                const std::int64_t rank = front->session().document().trace.tracks[t].rank;
                options.collapsed.erase(rank);
                options.expanded.insert(rank);
                options.filter.clear();
                front->session().view().setTrackOptions(options);
                front->timeline().scrollToTrack(t);
            }});
        }
        std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        if (found.size() > 200) found.resize(200);
        std::vector<PaletteDialog::Entry> entries;
        for (auto& [score, entry] : found) entries.push_back(std::move(entry));
        return entries;
    }, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->show();
}

}  // namespace ringside::gui
