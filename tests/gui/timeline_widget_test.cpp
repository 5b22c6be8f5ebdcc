// The timeline: keys, wheel and mouse become calls of the view state.
#include <QApplication>
#include <QImage>
#include <QPainter>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include <gtest/gtest.h>

#include "gui/canvas/navigation_keys.h"
#include "gui/canvas/timeline_widget.h"
#include "traces/trace_builder.h"

namespace ringside::gui {
namespace {

Time us(double t) { return Time::fromMicroseconds(t); }

DocumentPtr documentOf(Trace trace) {
    Document parts;
    parts.trace = std::move(trace);
    return makeDocument(std::move(parts));
}

/// Ten slices of 60 µs every 100 µs on a compute track, and a collective below.
Trace simple() {
    TraceBuilder builder;
    const std::uint32_t compute = builder.addTrack(0, 1, TrackKind::Compute, "compute"), nccl = builder.addTrack(0, 2, TrackKind::Communication, "nccl");
    for (int i = 0; i < 10; ++i) builder.addSlice(compute, us(100.0 * i), us(60), SliceCategory::Compute, builder.internName("kernel"));
    builder.addSlice(nccl, us(300), us(400), SliceCategory::Communication, builder.internName("all-reduce"));
    return builder.build();
}

struct Fixture {
    Session session;
    Theme theme;
    TimelineWidget timeline{session, theme};

    explicit Fixture(Trace trace = simple()) : session(documentOf(std::move(trace))) {
        timeline.resize(1210, 400);
        timeline.show();
    }
    ViewState& view() { return session.view(); }
    QPoint middleOf(std::uint32_t slice) { return timeline.rectOfSlice(slice)->center().toPoint(); }
};

TEST(TimelineWidget, AClickSelectsTheSliceUnderIt) {
    Fixture f;
    QTest::mouseClick(&f.timeline, Qt::LeftButton, {}, f.middleOf(3));
    EXPECT_EQ(f.view().slice(), 3U);
    EXPECT_FALSE(f.view().selection());
    // The gap after it belongs to nobody.
    QTest::mouseClick(&f.timeline, Qt::LeftButton, {}, f.timeline.rectOfSlice(3)->topRight().toPoint() + QPoint(20, 5));
    EXPECT_EQ(f.view().slice(), std::nullopt);
}

TEST(TimelineWidget, ADragSelectsARangeAndZoomingLeavesItAlone) {
    Fixture f;
    const QPoint from = f.timeline.rectOfSlice(2)->topLeft().toPoint() + QPoint(0, 5), to = f.timeline.rectOfSlice(5)->topLeft().toPoint() + QPoint(0, 5);
    QTest::mousePress(&f.timeline, Qt::LeftButton, {}, from);
    QTest::mouseMove(&f.timeline, (from + to) / 2);
    QTest::mouseMove(&f.timeline, to);
    QTest::mouseRelease(&f.timeline, Qt::LeftButton, {}, to);
    ASSERT_TRUE(f.view().selection());
    // From 200 to 500 µs, give or take two of the pixels, which are about a microsecond.
    EXPECT_NEAR(f.view().selection()->begin.microseconds(), 200, 2.5);
    EXPECT_NEAR(f.view().selection()->end.microseconds(), 500, 2.5);
    const TimeRange selected = *f.view().selection();
    QTest::keyClick(&f.timeline, Qt::Key_W);
    EXPECT_EQ(f.view().selection(), selected);
}

TEST(TimelineWidget, ADoubleClickZoomsToTheSlice) {
    Fixture f;
    QTest::mouseDClick(&f.timeline, Qt::LeftButton, {}, f.middleOf(4));
    EXPECT_EQ(f.view().window(), fitTo({us(400), us(460)}, f.view().trace()));
}

TEST(TimelineWidget, CtrlAndWheelZoomAtTheCursor) {
    Fixture f;
    const QPoint at = f.middleOf(3);
    QWheelEvent wheel(at, f.timeline.mapToGlobal(at), {}, QPoint(0, 120), Qt::NoButton, Qt::ControlModifier, Qt::NoScrollPhase, false);
    const Time before = f.view().window().length();
    QApplication::sendEvent(&f.timeline, &wheel);
    EXPECT_LT(f.view().window().length(), before);
    EXPECT_NEAR(f.timeline.rectOfSlice(3)->center().x(), at.x(), 1.5) << "what is under the cursor stays there";
}

TEST(TimelineWidget, KeysZoomAndPan) {
    Fixture f;
    const TimeRange whole = f.view().window();
    QTest::keyClick(&f.timeline, Qt::Key_W);
    EXPECT_LT(f.view().window().length(), whole.length());
    const TimeRange zoomed = f.view().window();
    QTest::keyClick(&f.timeline, Qt::Key_D);
    EXPECT_GT(f.view().window().begin, zoomed.begin);
    EXPECT_EQ(f.view().window().length(), zoomed.length());
    QTest::keyClick(&f.timeline, Qt::Key_A);
    QTest::keyClick(&f.timeline, Qt::Key_S);
    EXPECT_GT(f.view().window().length(), zoomed.length());
}

TEST(TimelineWidget, KeysGoByTheirPlaceOnTheKeyboard) {
    // On a French keyboard the key right of Tab's right neighbour (X11 code 25) says Z, and the one below Tab (38) says Q.
    EXPECT_EQ(navigationKey(25, Qt::Key_Z), NavigationKey::ZoomIn);
    EXPECT_EQ(navigationKey(38, Qt::Key_Q), NavigationKey::Left);
    EXPECT_EQ(navigationKey(52, Qt::Key_W), NavigationKey::None) << "W is where Z is elsewhere";
    EXPECT_EQ(navigationKey(0, Qt::Key_S), NavigationKey::ZoomOut) << "without a code the letter decides";
}

TEST(TimelineWidget, RevealOpensACollapsedRankAndMovesTheWindow) {
    Fixture f;
    TrackOptions options;
    options.collapsed = {0};
    f.view().setTrackOptions(options);
    f.view().setWindow({us(0), us(50)});
    f.view().reveal(9);
    EXPECT_EQ(f.view().slice(), 9U);
    EXPECT_TRUE(f.view().window().contains(us(930)));
    EXPECT_EQ(f.timeline.layout().rowOfTrack(0)->kind, RowKind::Track);
}

TEST(TimelineWidget, AClickOnARanksNameCollapsesIt) {
    Fixture f;
    QTest::mouseClick(&f.timeline, Qt::LeftButton, {}, QPoint(20, f.timeline.metrics().top() + 5));
    ASSERT_EQ(f.timeline.layout().rows.size(), 1U);
    EXPECT_EQ(f.timeline.layout().rows[0].kind, RowKind::Density);
    QTest::mouseClick(&f.timeline, Qt::LeftButton, {}, QPoint(20, f.timeline.metrics().top() + 5));
    EXPECT_EQ(f.timeline.layout().rows.size(), 3U);
}

TEST(TimelineWidget, PaintsSlicesInTheirCategorysColourAndTellsHowLongItTook) {
    Fixture f;
    QSignalSpy frames(&f.timeline, &TimelineWidget::frameTime);
    const QImage image = f.timeline.grab().toImage();
    EXPECT_GE(frames.count(), 1);
    const QColor painted = image.pixelColor(f.timeline.rectOfSlice(10)->bottomRight().toPoint() + QPoint(-6, -3));
    // One of the shades of the category.
    bool known = false;
    for (int shade = 0; shade < kShades; ++shade) known = known || f.theme.colors().shadeOf(SliceCategory::Communication, shade).rgb() == painted.rgb();
    EXPECT_TRUE(known) << painted.name().toStdString();
}

TEST(TimelineWidget, OddTracesArePainted) {
    const auto paint = [](Trace trace) {
        Fixture f(std::move(trace));
        f.view().selectSlice(f.session.document().trace.size() ? std::optional<std::uint32_t>(0) : std::nullopt);
        f.timeline.grab();
        for (const double zoom : {0.001, 0.5, 1000.0}) {
            f.view().setWindow(zoomAt(f.view().window(), f.view().window().middle(), zoom, f.view().trace()));
            f.timeline.grab();
        }
    };
    paint(Trace());
    TraceBuilder one;
    one.addSlice(one.addTrack(0, 0, TrackKind::Host, ""), us(5), us(0), SliceCategory::Host, one.internName(""));
    paint(one.build());
    TraceBuilder overlapping;
    const std::uint32_t track = overlapping.addTrack(0, 7, TrackKind::Compute, "stream 7");
    for (int i = 0; i < 50; ++i) overlapping.addSlice(track, us(i), us(20), SliceCategory::Compute, overlapping.internName("late"));
    paint(overlapping.build());
}

TEST(TimelineWidget, TheSameTraceAsShapesGivesTheSameRectangles) {
    Fixture f;
    QImage picture(f.timeline.size(), QImage::Format_RGB32);
    QPainter painter(&picture);
    f.timeline.paintInto(painter, f.timeline.size(), true);
    painter.end();
    const QPoint at = f.timeline.rectOfSlice(10)->bottomRight().toPoint() + QPoint(-6, -3);
    EXPECT_EQ(picture.pixelColor(at).rgb(), f.timeline.grab().toImage().pixelColor(at).rgb());
}

}  // namespace
}  // namespace ringside::gui
