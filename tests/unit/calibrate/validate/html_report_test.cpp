#include "calibrate/validate/html_report.h"

#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/validate/timeline_svg.h"
#include "traces/trace_builder.h"

namespace ringside {
namespace {

using testing::HasSubstr;
using testing::Not;

/// What is not closed in order; "" when all is. Comments and CDATA do not occur in our pages.
std::string unbalancedTag(const std::string& html) {
    static const std::set<std::string> empty = {"meta", "br", "hr", "img"};
    static const std::regex tag(R"(<(/?)([a-zA-Z0-9]+)([^<>]*)>)");
    std::vector<std::string> open;
    for (std::sregex_iterator it(html.begin(), html.end(), tag), end; it != end; ++it) {
        const std::string name = (*it)[2], rest = (*it)[3];
        if (empty.contains(name) || rest.ends_with("/")) continue;
        if ((*it)[1] == "/") {
            if (open.empty() || open.back() != name) return "</" + name + ">";
            open.pop_back();
        } else {
            open.push_back(name);
        }
    }
    return open.empty() ? "" : "<" + open.back() + ">";
}

Trace smallTrace(double scale) {
    TraceBuilder builder;
    builder.setWorldSize(2);
    const std::uint32_t host = builder.addTrack(0, 0, TrackKind::Host, "host");
    const std::uint32_t compute = builder.addTrack(0, 1, TrackKind::Compute, "compute");
    const std::uint32_t wire = builder.addTrack(0, 2, TrackKind::Communication, "communication");
    const auto at = [&](double ms) { return Time::fromSeconds(ms * scale * 1e-3); };
    builder.addSlice(host, at(0), at(1), SliceCategory::Host, builder.internName("cudaLaunchKernel"));
    builder.addSlice(compute, at(1), at(5), SliceCategory::Compute, builder.internName("forward a<b & \"c\""), 3);
    builder.addSlice(wire, at(6), at(4), SliceCategory::Communication, builder.internName("all_reduce bucket 0"), 4);
    builder.addSlice(compute, at(10), at(2), SliceCategory::Optimizer, builder.internName("adam"), 5);
    return builder.build();
}

StepValidation madeUp() {
    StepValidation validation;
    validation.device = "a processor";
    ValidationRow& row = validation.rows.emplace_back();
    row.model = "tiny <model>";
    row.strategy = "ddp:bucket_mb=1";
    row.ranks = 2;
    row.predicted = 0.012;
    row.p10 = 0.011;
    row.p90 = 0.013;
    row.measured = 0.0125;
    row.rounds = {0.0124, 0.0125, 0.0126};
    row.steps = 5;
    row.phases = {{"forward", 0.005, 0.0055}};
    row.classes = {{"matmul", 0.004, 0.0041}, {"all_reduce", 0.004, 0}};
    row.predictedPeak = row.measuredPeak = 12345;
    row.predictedTrace = smallTrace(1);
    row.measuredTrace = smallTrace(1.1);
    validation.skipped = {{"hsdp", "tiny", 2, "needs <two> nodes"}};
    return validation;
}

TEST(HtmlReport, IsBalancedAndNeedsNothingFromOutside) {
    Holdout holdout;
    holdout.groups = {{"all kernels", 3, 0.1, 0.1, 0.2, 0.2, 0.01}};
    const std::string html = htmlReport({"a profile & more", "2 ranks over loopback"}, madeUp(), holdout);
    EXPECT_EQ(unbalancedTag(html), "");
    for (const char* outside : {"http", "src=", "@import", "url(", "<script", "<link"}) EXPECT_THAT(html, Not(HasSubstr(outside)));
    for (const char* escaped : {"tiny &lt;model&gt;", "a profile &amp; more", "needs &lt;two&gt; nodes"}) EXPECT_THAT(html, HasSubstr(escaped));
    EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
    EXPECT_THAT(html, HasSubstr("Held-out points"));
}

TEST(HtmlReport, HoldsBothTimelinesOfARowOnOneAxis) {
    const std::string html = htmlReport({"p", "w"}, madeUp(), {});
    const std::size_t predicted = html.find("predicted — 12.000 ms"), measured = html.find("measured — 13.200 ms");
    ASSERT_NE(predicted, std::string::npos);
    ASSERT_NE(measured, std::string::npos);
    EXPECT_LT(predicted, measured);
    EXPECT_THAT(html, HasSubstr("forward a&lt;b &amp; &quot;c&quot;\nstart 1.000 ms, duration 5.000 ms, task 3"));
    EXPECT_THAT(html, HasSubstr("rank 0 communication"));
    EXPECT_THAT(html, Not(HasSubstr("cudaLaunchKernel")));  // what the host does is not drawn
}

TEST(HtmlReport, GoesWithoutTimelinesWhereNoneWereKept) {
    StepValidation validation = madeUp();
    validation.rows.front().predictedTrace = {};
    validation.rows.front().measuredTrace = {};
    const std::string html = htmlReport({"p", "w"}, validation, {});
    EXPECT_EQ(unbalancedTag(html), "");
    EXPECT_THAT(html, Not(HasSubstr("rank 0 communication")));
}

TEST(TimelineSvg, DrawsManyNarrowSlicesAsFew) {
    TraceBuilder builder;
    const std::uint32_t compute = builder.addTrack(0, 1, TrackKind::Compute, "compute");
    const std::uint32_t name = builder.internName("tiny");
    for (int i = 0; i < 100'000; ++i) builder.addSlice(compute, Time::fromSeconds(i * 1e-6), Time::fromSeconds(1e-6), SliceCategory::Compute, name, i);
    const Trace trace = builder.build();
    const std::string svg = timelinesSvg(trace, trace);
    EXPECT_LT(svg.size(), 1'000'000U);
    EXPECT_THAT(svg, HasSubstr("tasks, the first: tiny"));
    EXPECT_EQ(unbalancedTag(svg), "");
}

}  // namespace
}  // namespace ringside
