// Every key and gesture that the help lists, in the window that a person sees.
#include <QApplication>
#include <QCheckBox>
#include <QDockWidget>
#include <QInputDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QTest>
#include <QTimer>

#include <gtest/gtest.h>

#include "gui/app/help_dialog.h"
#include "gui/app/main_window.h"
#include "gui/app/palette_dialog.h"
#include "gui/app/screenshot.h"
#include "gui/canvas/document_view.h"
#include "gui/canvas/timeline_widget.h"
#include "gui/canvas/track_menu.h"
#include "gui/compare/compare_view.h"
#include "gui/core/table_view.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }

/// Two ranks, each: a launch at [0, 10), its kernel at [20, 60), another at [70, 90), an all-reduce at [100, 200), the optimizer at
/// [210, 250).
DocumentPtr twoRanks() {
    TraceBuilder builder;
    builder.setWorldSize(2);
    CollectiveDetails details;
    details.op = "allreduce";
    details.bytes = 1000;
    details.groupSize = 2;
    const std::int32_t collective = builder.addCollective(details);
    for (const std::int64_t rank : {0, 1}) {
        const auto host = builder.addTrack(rank, 0, TrackKind::Host, "host"), compute = builder.addTrack(rank, 1, TrackKind::Compute, "compute"), nccl = builder.addTrack(rank, 2, TrackKind::Communication, "nccl");
        const auto launch = builder.addSlice(host, us(0), us(10), SliceCategory::Host, builder.internName("launch"));
        const auto kernel = builder.addSlice(compute, us(20), us(40), SliceCategory::Compute, builder.internName("backward"));
        const auto ready = builder.addSlice(compute, us(70), us(20), SliceCategory::Compute, builder.internName("gradient ready"));
        const auto optimizer = builder.addSlice(compute, us(210), us(40), SliceCategory::Optimizer, builder.internName("optimizer"));
        const auto reduce = builder.addSlice(nccl, us(100), us(100), SliceCategory::Communication, builder.internName("all-reduce"), -1, collective);
        builder.addFlow(launch, kernel, Flow::Kind::Launch);
        builder.addFlow(ready, reduce);
        builder.addFlow(reduce, optimizer);
    }
    Document parts;
    parts.trace = builder.build();
    parts.title = "two ranks";
    return makeDocument(std::move(parts));
}

std::uint32_t sliceNamed(const Document& document, const char* name, std::int64_t rank = 0) {
    const Trace& trace = document.trace;
    for (std::uint32_t i = 0; i < trace.size(); ++i)
        if (trace.names[trace.name[i]] == name && trace.tracks[trace.track[i]].rank == rank) return i;
    return kNoSlice;
}

struct Fixture {
    Workspace workspace{Catalogs::builtin().value()};
    Theme theme;
    MainWindow window{workspace, theme};
    Session* session = workspace.add(twoRanks());
    ViewState& view = session->view();

    Fixture() {
        window.resize(1200, 800);
        window.show();
        QApplication::setActiveWindow(&window);
        EXPECT_TRUE(settle(window));
    }
    TimelineWidget& timeline() { return window.currentView()->timeline(); }
    std::uint32_t slice(const char* name, std::int64_t rank = 0) const { return sliceNamed(session->document(), name, rank); }
    /// As from the keyboard: to whatever has the focus.
    void key(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : &window, key, modifiers); }
    QPoint middleOf(std::uint32_t slice) { return timeline().rectOfSlice(slice)->center().toPoint(); }
    QPoint headerOf(const LayoutRow& row) { return QPoint(30, static_cast<int>(timeline().metrics().top() + row.y - timeline().scroll() + row.height / 2)); }
    QDockWidget* dock(const char* id) { return window.findChild<QDockWidget*>(QString("panel.") + id); }
};

TEST(Keys, MoveTheTimelineAsSoonAsAFileIsOpen) {
    Fixture f;
    EXPECT_TRUE(f.timeline().hasFocus());
    const TimeRange whole = f.view.window();
    f.key(Qt::Key_W);
    EXPECT_LT(f.view.window().length(), whole.length());
    f.key(Qt::Key_0);
    EXPECT_EQ(f.view.window(), whole);
}

TEST(Keys, MoveTheTimelineAlsoFromATableButNotFromALineOfText) {
    Fixture f;
    f.window.showPanel("range");
    ASSERT_TRUE(settle(f.window));
    auto* table = f.dock("range")->findChild<TableView*>();
    table->setFocus();
    const TimeRange whole = f.view.window();
    f.key(Qt::Key_W);
    EXPECT_LT(f.view.window().length(), whole.length());
    EXPECT_TRUE(f.timeline().hasFocus());
    f.window.showPanel("scenario");
    f.window.commands().action("view.search")->trigger();
    ASSERT_TRUE(qobject_cast<QLineEdit*>(QApplication::focusWidget()));
    const TimeRange zoomed = f.view.window();
    QTest::keyClicks(QApplication::focusWidget(), "wasd");
    EXPECT_EQ(f.view.window(), zoomed);
    EXPECT_EQ(qobject_cast<QLineEdit*>(QApplication::focusWidget())->text(), "wasd");
}

TEST(Keys, FCentresThenFitsAndAltArrowsGoBackAndForward) {
    Fixture f;
    const TimeRange whole = f.view.window();
    f.view.setWindow({us(0), us(60)});
    f.view.selectSlice(f.slice("all-reduce"));
    f.key(Qt::Key_F);
    EXPECT_EQ(f.view.window().length(), us(60)) << "centred, not zoomed";
    EXPECT_EQ(f.view.window().middle(), us(150));
    f.key(Qt::Key_F);
    EXPECT_EQ(f.view.window(), fitTo({us(100), us(200)}, f.view.trace()));
    const TimeRange fitted = f.view.window();
    f.key(Qt::Key_Left, Qt::AltModifier);
    f.key(Qt::Key_Left, Qt::AltModifier);
    EXPECT_EQ(f.view.window(), (TimeRange{us(0), us(60)}));
    f.key(Qt::Key_Left, Qt::AltModifier);
    EXPECT_EQ(f.view.window(), whole);
    for (int i = 0; i < 3; ++i) f.key(Qt::Key_Right, Qt::AltModifier);
    EXPECT_EQ(f.view.window(), fitted);
}

TEST(Keys, FWithoutASliceFitsTheRange) {
    Fixture f;
    f.view.select({us(40), us(80)});
    f.key(Qt::Key_F);
    f.key(Qt::Key_F);
    EXPECT_EQ(f.view.window(), fitTo({us(40), us(80)}, f.view.trace()));
}

TEST(Keys, DotAndCommaGoToTheNeighboursOnTheRow) {
    Fixture f;
    f.view.selectSlice(f.slice("backward"));
    f.key(Qt::Key_Period);
    EXPECT_EQ(f.view.slice(), f.slice("gradient ready"));
    f.key(Qt::Key_Period);
    f.key(Qt::Key_Period);
    EXPECT_EQ(f.view.slice(), f.slice("optimizer")) << "there is no further one";
    f.key(Qt::Key_Comma);
    EXPECT_EQ(f.view.slice(), f.slice("gradient ready"));
}

TEST(Keys, BracketsWalkAlongFlowsAndThroughACollectiveToAnotherRank) {
    Fixture f;
    f.view.selectSlice(f.slice("launch"));
    f.key(Qt::Key_BracketRight);
    EXPECT_EQ(f.view.slice(), f.slice("backward")) << "launch → kernel";
    f.key(Qt::Key_BracketLeft);
    EXPECT_EQ(f.view.slice(), f.slice("launch"));
    // Gradient ready → all-reduce → the same collective on rank 1 → its optimizer.
    f.view.selectSlice(f.slice("gradient ready"));
    f.key(Qt::Key_BracketRight);
    EXPECT_EQ(f.view.slice(), f.slice("all-reduce"));
    f.key(Qt::Key_BracketRight);
    EXPECT_EQ(f.view.slice(), f.slice("all-reduce", 1));
    f.key(Qt::Key_BracketRight);
    EXPECT_EQ(f.view.slice(), f.slice("optimizer", 1));
}

TEST(Keys, RTakesTheSlicesRangeEscLetsGoAndCtrlATakesAll) {
    Fixture f;
    f.view.selectSlice(f.slice("optimizer"));
    f.key(Qt::Key_R);
    EXPECT_EQ(f.view.selection(), (TimeRange{us(210), us(250)}));
    f.key(Qt::Key_Escape);
    EXPECT_FALSE(f.view.selection());
    EXPECT_TRUE(f.view.slice()) << "the range first";
    f.key(Qt::Key_Escape);
    EXPECT_FALSE(f.view.slice());
    f.key(Qt::Key_A, Qt::ControlModifier);
    EXPECT_EQ(f.view.selection(), f.view.trace());
}

TEST(Keys, MMarksTheInstantUnderTheCursorAndShiftMForgets) {
    Fixture f;
    QTest::mouseMove(&f.timeline(), f.middleOf(f.slice("all-reduce")));
    f.key(Qt::Key_M);
    ASSERT_EQ(f.view.markers().size(), 1U);
    EXPECT_NEAR(f.view.markers()[0].at.microseconds(), 150, 1);
    f.key(Qt::Key_M, Qt::ShiftModifier);
    EXPECT_TRUE(f.view.markers().empty());
}

TEST(Keys, CCollapsesAllRanksAndOpensThemAgainAndShiftFHidesArrows) {
    Fixture f;
    f.key(Qt::Key_C);
    for (const LayoutRow& row : f.timeline().layout().rows) EXPECT_EQ(row.kind, RowKind::Density);
    f.key(Qt::Key_C);
    EXPECT_GT(f.timeline().layout().rows.size(), 2U);
    EXPECT_TRUE(f.timeline().flowsShown());
    f.key(Qt::Key_F, Qt::ShiftModifier);
    EXPECT_FALSE(f.timeline().flowsShown());
}

TEST(Keys, QHidesThePanelsAndBringsThemBack) {
    Fixture f;
    ASSERT_FALSE(f.dock("range")->isHidden());
    f.key(Qt::Key_Q);
    EXPECT_TRUE(f.dock("range")->isHidden());
    f.key(Qt::Key_Q);
    EXPECT_FALSE(f.dock("range")->isHidden());
}

TEST(Keys, TheFilterKeepsTracksThatHoldAWord) {
    Fixture f;
    const auto answer = [](const QString& text) {
        QTimer::singleShot(0, [text] {
            auto* dialog = qobject_cast<QInputDialog*>(QApplication::activeModalWidget());
            ASSERT_NE(dialog, nullptr);
            dialog->setTextValue(text);
            dialog->accept();
        });
    };
    answer("nccl");
    f.key(Qt::Key_F, Qt::ControlModifier | Qt::ShiftModifier);
    for (const LayoutRow& row : f.timeline().layout().rows) EXPECT_TRUE(row.kind == RowKind::Rank || f.session->document().trace.tracks[row.track].name == "nccl");
    QApplication::setActiveWindow(&f.window);
    answer("");
    f.key(Qt::Key_F, Qt::ControlModifier | Qt::ShiftModifier);
    EXPECT_EQ(f.view.trackOptions().filter, "");
}

TEST(Keys, ThePaletteRunsWhatWasTypedAndHelpListsWhatTheRegistryHas) {
    Fixture f;
    f.view.setWindow({us(0), us(60)});
    f.key(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    auto* palette = f.window.findChild<PaletteDialog*>();
    ASSERT_NE(palette, nullptr);
    auto* line = palette->findChild<QLineEdit*>();
    QTest::keyClicks(line, "whole trace");
    QTest::keyClick(line, Qt::Key_Return);
    EXPECT_EQ(f.view.window(), wholeTrace(f.view.trace()));
    f.window.activateWindow();
    f.key(Qt::Key_F1);
    EXPECT_NE(f.window.findChild<HelpDialog*>(), nullptr);
    const QString help = helpHtml(f.window.commands(), f.theme.colors());
    for (const Command& command : f.window.commands().all())
        EXPECT_TRUE(command.shownKeys().isEmpty() || help.contains(command.shownKeys().toHtmlEscaped())) << command.spec.id.toStdString();
}

TEST(Mouse, ShiftDragAndTheMiddleButtonPanAndTheWheelScrolls) {
    Fixture f;
    f.view.setWindow({us(50), us(150)});
    const QPoint from = f.middleOf(f.slice("gradient ready")), to = from + QPoint(80, 0);
    const auto drag = [&](Qt::MouseButton button, Qt::KeyboardModifiers modifiers) {
        const TimeRange before = f.view.window();
        QTest::mousePress(&f.timeline(), button, modifiers, from);
        QMouseEvent move(QEvent::MouseMove, to, f.timeline().mapToGlobal(to), Qt::NoButton, button, modifiers);
        QApplication::sendEvent(&f.timeline(), &move);
        QTest::mouseRelease(&f.timeline(), button, modifiers, to);
        EXPECT_LT(f.view.window().begin, before.begin) << "the view follows the hand";
        EXPECT_EQ(f.view.window().length(), before.length());
        EXPECT_FALSE(f.view.selection());
    };
    drag(Qt::LeftButton, Qt::ShiftModifier);
    drag(Qt::MiddleButton, {});
    f.window.resize(1200, 420);
    ASSERT_TRUE(settle(f.window));
    const double before = f.timeline().scroll();
    QWheelEvent wheel(from, f.timeline().mapToGlobal(from), {}, QPoint(0, -120), Qt::NoButton, {}, Qt::NoScrollPhase, false);
    QApplication::sendEvent(&f.timeline(), &wheel);
    EXPECT_GT(f.timeline().scroll(), before);
}

TEST(Mouse, ADragAcrossRowsSelectsTheirTracks) {
    Fixture f;
    const QPoint from = f.middleOf(f.slice("backward")), to = f.middleOf(f.slice("all-reduce")) + QPoint(0, 12);
    QTest::mousePress(&f.timeline(), Qt::LeftButton, {}, from);
    QTest::mouseMove(&f.timeline(), (from + to) / 2);
    QTest::mouseMove(&f.timeline(), to);
    QTest::mouseRelease(&f.timeline(), Qt::LeftButton, {}, to);
    ASSERT_TRUE(f.view.selection());
    const Trace& trace = f.session->document().trace;
    for (const std::uint32_t track : f.view.tracks()) EXPECT_EQ(trace.tracks[track].rank, 0);
    EXPECT_EQ(f.view.tracks().size(), 2U) << "compute and nccl of rank 0";
}

TEST(Mouse, AClickBringsTheSlicePanelAndADragTheRangePanelButOthersStay) {
    Fixture f;
    f.window.showPanel("range");
    QTest::mouseClick(&f.timeline(), Qt::LeftButton, {}, f.middleOf(f.slice("backward")));
    QTest::qWait(20);
    EXPECT_FALSE(f.dock("details")->visibleRegion().isEmpty());
    const QPoint from = f.middleOf(f.slice("backward"));
    QTest::mousePress(&f.timeline(), Qt::LeftButton, {}, from);
    QTest::mouseMove(&f.timeline(), from + QPoint(30, 0));
    QTest::mouseMove(&f.timeline(), from + QPoint(60, 0));
    QTest::mouseRelease(&f.timeline(), Qt::LeftButton, {}, from + QPoint(60, 0));
    QTest::qWait(20);
    EXPECT_FALSE(f.dock("range")->visibleRegion().isEmpty());
    f.window.showPanel("histogram");
    QTest::qWait(20);
    QTest::mouseClick(&f.timeline(), Qt::LeftButton, {}, f.middleOf(f.slice("backward")));
    QTest::qWait(20);
    EXPECT_FALSE(f.dock("histogram")->visibleRegion().isEmpty());
}

TEST(Mouse, NamesAreDraggedToAnotherPlaceAndAClickStaysAClick) {
    Fixture f;
    const auto drag = [&](QPoint from, QPoint to) {
        QTest::mousePress(&f.timeline(), Qt::LeftButton, {}, from);
        for (const QPoint at : {(from + to) / 2, to}) {
            QMouseEvent move(QEvent::MouseMove, at, f.timeline().mapToGlobal(at), Qt::NoButton, Qt::LeftButton, {});
            QApplication::sendEvent(&f.timeline(), &move);
        }
        f.timeline().grab();  // with the line that says where it goes
        QTest::mouseRelease(&f.timeline(), Qt::LeftButton, {}, to);
    };
    const auto rankHeader = [&](std::int64_t rank) {
        for (const LayoutRow& row : f.timeline().layout().rows)
            if (row.kind == RowKind::Rank && row.rank == rank) return f.headerOf(row);
        return QPoint();
    };
    drag(rankHeader(1), rankHeader(0));
    EXPECT_EQ(f.timeline().layout().rows.front().rank, 1);
    const auto& rows = f.timeline().layout().rows;
    ASSERT_EQ(f.session->document().trace.tracks[rows[1].track].name, "host");
    drag(f.headerOf(rows[1]), f.headerOf(rows[3]));
    EXPECT_EQ(f.session->document().trace.tracks[f.timeline().layout().rows[3].track].name, "host");
    QTest::mouseClick(&f.timeline(), Qt::LeftButton, {}, rankHeader(1));
    EXPECT_EQ(f.timeline().layout().rows.front().kind, RowKind::Density);
}

TEST(TrackMenu, PinsMovesCollapsesAndPutsAllBack) {
    Fixture f;
    const auto choose = [&](const QString& title) {
        QMenu menu;
        const LayoutRow* row = f.timeline().layout().rowOfTrack(f.session->document().trace.track[f.slice("all-reduce", 1)]);
        ASSERT_NE(row, nullptr);
        fillTrackMenu(menu, *f.session, *row);
        for (QAction* action : menu.actions())
            if (action->text() == title) return action->trigger();
        ADD_FAILURE() << "no " << title.toStdString();
    };
    choose("Pin track to the top");
    ASSERT_EQ(f.timeline().layout().pinned.size(), 1U);
    f.timeline().grab();
    choose("Unpin track");
    EXPECT_TRUE(f.timeline().layout().pinned.empty());
    choose("Move rank 1 to the top");
    EXPECT_EQ(f.timeline().layout().rows.front().rank, 1);
    choose("Collapse all ranks");
    EXPECT_EQ(f.timeline().layout().rows.size(), 2U);
    choose("All tracks as they were");
    EXPECT_EQ(f.view.trackOptions(), TrackOptions());
}

TEST(CompareKeys, ActOnTheSideOneWorksIn) {
    Fixture f;
    showComparison(f.window.context(), f.session->shared(), twoRanks());
    auto* view = f.window.findChild<CompareView*>();
    ASSERT_NE(view, nullptr);
    ASSERT_TRUE(settle(f.window));
    EXPECT_EQ(&f.window.currentView()->session(), &view->upper()) << "to begin with";
    const TimeRange behind = f.view.window(), before = view->upper().view().window();
    f.key(Qt::Key_W);
    EXPECT_LT(view->upper().view().window().length(), before.length());
    EXPECT_EQ(view->lower().view().window().length(), view->upper().view().window().length()) << "linked";
    EXPECT_EQ(f.view.window(), behind) << "the document behind stays as it is";
    EXPECT_EQ(f.workspace.current(), &view->upper()) << "panels speak of it too";
    view->lowerView().timeline().setFocus();
    EXPECT_EQ(&f.window.currentView()->session(), &view->lower());
    EXPECT_EQ(f.workspace.current(), &view->lower());
    view->lower().view().selectSlice(f.slice("backward"));
    f.key(Qt::Key_BracketLeft);
    EXPECT_EQ(view->lower().view().slice(), f.slice("launch"));
    f.window.commands().action("file.close")->trigger();
    EXPECT_EQ(f.workspace.current(), f.session) << "the tab that is left";
}

TEST(Keys, HeldOnesMoveOnUntilTheyAreLetGo) {
    Fixture f;
    f.key(Qt::Key_W);
    const double tap = f.view.window().length().seconds();
    f.key(Qt::Key_0);
    QTest::keyPress(&f.timeline(), Qt::Key_W);
    QTest::qWait(400);
    QTest::keyRelease(&f.timeline(), Qt::Key_W);
    const TimeRange held = f.view.window();
    EXPECT_LT(held.length().seconds(), 0.9 * tap);
    QTest::qWait(60);
    EXPECT_EQ(f.view.window(), held);
}

TEST(CompareRanges, AreEachSidesOwnWhileZoomIsNotLinked) {
    Fixture f;
    showComparison(f.window.context(), f.session->shared(), twoRanks());
    auto* view = f.window.findChild<CompareView*>();
    view->upper().view().select({us(0), us(65)});
    EXPECT_EQ(view->lower().view().selection(), (TimeRange{us(0), us(65)})) << "linked: the same on both sides";
    for (QCheckBox* box : view->findChildren<QCheckBox*>())
        if (box->text() == "Linked zoom") box->setChecked(false);
    view->lower().view().select({us(65), us(95)});
    EXPECT_EQ(view->upper().view().selection(), (TimeRange{us(0), us(65)}));
    // Above: launch and backward; below: the kernel at 70 alone.
    const std::string csv = view->findChild<TableView*>()->csv();
    EXPECT_NE(csv.find("launch,2,0"), std::string::npos) << csv;
    EXPECT_NE(csv.find("gradient ready,0,2"), std::string::npos) << csv;
    EXPECT_TRUE(view->summary().contains("65.0 µs above, 30.0 µs below")) << view->summary().toStdString();
}

}  // namespace
}  // namespace ringside::gui
