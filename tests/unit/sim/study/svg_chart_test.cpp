// Charts: ticks are round and cover, what is drawn stands where it should, text is escaped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/study/svg_chart.h"

namespace ringside {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RoundTicks, AreRound) {
    EXPECT_THAT(roundTicks(1.0, 6), ElementsAre(0, 0.2, 0.4, ::testing::DoubleEq(0.6), 0.8, 1.0));
    EXPECT_THAT(roundTicks(47, 5), ElementsAre(0, 10, 20, 30, 40, 50));
    EXPECT_THAT(roundTicks(100, 4), ElementsAre(0, 25, 50, 75, 100));
}

TEST(RoundTicks, CoverTheLargestValueInAtMostSoManySteps) {
    const bool held = rc::check("last tick ≥ max, the one before < max, at most `most` intervals", [] {
        const double max = *rc::gen::inRange(1, 1000000000) / 1000.0;
        const int most = *rc::gen::inRange(1, 12);
        const auto ticks = roundTicks(max, most);
        RC_ASSERT(ticks.back() >= max * (1 - 1e-9));
        RC_ASSERT(ticks[ticks.size() - 2] < max);
        RC_ASSERT(static_cast<int>(ticks.size()) - 1 <= most);
    });
    EXPECT_TRUE(held);
}

Chart small() {
    Chart chart;
    chart.title = "A < B & \"C\"";
    chart.xLabel = "devices";
    chart.yLabel = "efficiency";
    chart.hollowMeans = "does not fit";
    chart.log2X = true;
    chart.percentY = true;
    chart.series.push_back({"ddp", {{1, 1.0, false, "one"}, {8, 0.5, true, "eight"}}, true, false});
    chart.series.push_back({"ideal", {{1, 1, false, {}}, {8, 1, false, {}}}, true, true});
    return chart;
}

TEST(SvgChart, EscapesWhatPeopleWrote) {
    const std::string svg = svgOf(small());
    EXPECT_THAT(svg, HasSubstr("A &lt; B &amp; &quot;C&quot;"));
    EXPECT_THAT(svg, Not(HasSubstr("A < B")));
}

TEST(SvgChart, HasPowersOfTwoOnALogarithmicAxisAndPercentOnTheOther) {
    const std::string svg = svgOf(small());
    for (const char* tick : {">1</text>", ">2</text>", ">4</text>", ">8</text>", ">100 %</text>", ">0 %</text>"}) EXPECT_THAT(svg, HasSubstr(tick));
    EXPECT_THAT(svg, Not(HasSubstr(">16</text>")));
}

TEST(SvgChart, DrawsOnePointHollowAndNamesItInTheLegend) {
    std::string svg = svgOf(small());
    EXPECT_THAT(svg, HasSubstr("fill=\"#ffffff\" stroke=\"#0072b2\""));
    EXPECT_THAT(svg, HasSubstr(">does not fit</text>"));
    Chart full = small();
    full.series[0].points[1].hollow = false;
    svg = svgOf(full);
    EXPECT_THAT(svg, Not(HasSubstr("fill=\"#ffffff\" stroke=\"#0072b2\"")));
    EXPECT_THAT(svg, Not(HasSubstr("does not fit")));
}

TEST(SvgChart, DrawsTheReferenceDashed) {
    EXPECT_THAT(svgOf(small()), HasSubstr("stroke-dasharray"));
    Chart without = small();
    without.series.pop_back();
    EXPECT_THAT(svgOf(without), Not(HasSubstr("stroke-dasharray")));
}

TEST(SvgChart, TakesPointsWithoutALineASinglePointAndNone) {
    Chart chart = small();
    chart.series = {{"plans", {{3, 0.5, false, {}}}, false, false}};
    EXPECT_THAT(svgOf(chart), HasSubstr("<circle"));
    EXPECT_THAT(svgOf(chart), Not(HasSubstr("nan")));
    chart.series.clear();
    EXPECT_THAT(svgOf(chart), HasSubstr("</svg>"));
    EXPECT_THAT(svgOf(chart), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace ringside
