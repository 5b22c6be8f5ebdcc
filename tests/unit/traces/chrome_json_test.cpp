#include "traces/export/chrome_json.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include "small_trace.h"
#include "traces/collective_names.h"
#include "traces/export/atomic_file.h"

namespace ringside {
namespace {

using nlohmann::json;

json exported(const Trace& trace, const ChromeTraceOptions& options = {}) { return json::parse(chromeTraceJson(trace, options)); }

std::vector<json> eventsOf(const json& file, const std::string& phase, const std::string& category = {}) {
    std::vector<json> result;
    for (const json& event : file.at("traceEvents"))
        if (event.at("ph") == phase && (category.empty() || event.value("cat", "") == category)) result.push_back(event);
    return result;
}

/// On every row, slices in file order start in order and each pair is disjoint or nested. Exact, in picoseconds.
void expectNested(const json& file) {
    const auto picoseconds = [](const json& value) { return std::llround(value.get<double>() * 1e6); };
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> rows;
    for (const json& event : eventsOf(file, "X")) {
        const auto begin = picoseconds(event.at("ts")), end = begin + picoseconds(event.at("dur"));
        auto& open = rows[{event.at("pid").get<std::int64_t>(), event.at("tid").get<std::int64_t>()}];
        if (!open.empty()) {
            EXPECT_LE(open.back().first, begin);
        }
        while (!open.empty() && open.back().second <= begin) open.pop_back();
        if (!open.empty()) {
            EXPECT_LE(end, open.back().second) << event.dump();
        }
        open.emplace_back(begin, end);
    }
}

TEST(ChromeTrace, HasKinetosTopLevel) {
    const json file = exported(smallTrace());
    EXPECT_EQ(file.at("schemaVersion"), 1);
    EXPECT_EQ(file.at("displayTimeUnit"), "ms");
    EXPECT_EQ(file.at("baseTimeNanoseconds"), 0);
    EXPECT_EQ(file.at("traceName"), "small");
    EXPECT_EQ(file.at("deviceProperties").size(), 2U);
    const json& info = file.at("distributedInfo");
    EXPECT_EQ(info.at("backend"), "nccl");
    EXPECT_EQ(info.at("rank"), 0);
    EXPECT_EQ(info.at("world_size"), 2);
    EXPECT_EQ(info.at("pg_count"), 1);
    EXPECT_EQ(info.at("pg_config").at(0).at("ranks"), json::array({0, 1}));
}

TEST(ChromeTrace, SlicesOfARowNestAndStartInOrder) { expectNested(exported(smallTrace())); }

TEST(ChromeTrace, EverySliceHasTheFieldsReadersNeed) {
    for (const json& event : eventsOf(exported(smallTrace()), "X")) {
        for (const char* field : {"cat", "name", "pid", "tid", "ts", "dur", "args"}) EXPECT_TRUE(event.contains(field)) << event.dump();
        EXPECT_TRUE(event.at("args").contains("External id")) << event.dump();
    }
}

TEST(ChromeTrace, KernelsCarryStreamDeviceAndCorrelation) {
    const auto kernels = eventsOf(exported(smallTrace()), "X", "kernel");
    ASSERT_EQ(kernels.size(), 8U);  // forward, backward, optimizer and the all-reduce of two ranks
    for (const json& kernel : kernels) {
        EXPECT_EQ(kernel.at("args").at("stream"), kernel.at("tid"));
        EXPECT_EQ(kernel.at("args").at("device"), kernel.at("pid"));
        EXPECT_TRUE(kernel.at("args").contains("correlation"));
        EXPECT_TRUE(kernel.at("args").contains("task"));
    }
}

TEST(ChromeTrace, EveryKernelHasOneRuntimeCallWithItsCorrelationAndAnOpWithItsExternalId) {
    const json file = exported(smallTrace());
    std::set<std::int64_t> launched, ops;
    for (const json& call : eventsOf(file, "X", "cuda_runtime")) {
        EXPECT_EQ(call.at("name"), "cudaLaunchKernel");
        EXPECT_TRUE(launched.insert(call.at("args").at("correlation").get<std::int64_t>()).second);
    }
    for (const json& op : eventsOf(file, "X", "cpu_op")) ops.insert(op.at("args").at("External id").get<std::int64_t>());
    for (const json& kernel : eventsOf(file, "X", "kernel")) {
        EXPECT_TRUE(launched.contains(kernel.at("args").at("correlation").get<std::int64_t>()));
        EXPECT_TRUE(ops.contains(kernel.at("args").at("External id").get<std::int64_t>()));
    }
}

TEST(ChromeTrace, CollectivesCarryNcclsNameAndKinetosArguments) {
    for (const json& kernel : eventsOf(exported(smallTrace()), "X", "kernel")) {
        if (!kernel.at("args").contains("Collective name")) continue;
        EXPECT_EQ(kernel.at("name"), "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        const json& args = kernel.at("args");
        EXPECT_EQ(args.at("Collective name"), "allreduce");
        EXPECT_EQ(args.at("In msg nelems"), 1000);
        EXPECT_EQ(args.at("Out msg nelems"), 1000);
        EXPECT_EQ(args.at("Group size"), 2);
        EXPECT_EQ(args.at("dtype"), "Float");
        EXPECT_EQ(args.at("Process Group Name"), "0");
        EXPECT_EQ(args.at("Process Group Description"), "default_pg");
        EXPECT_EQ(args.at("Process Group Ranks"), "[0, 1]");
        EXPECT_EQ(args.at("Seq"), 3);
        EXPECT_EQ(args.at("label"), "bucket 0");
        return;
    }
    FAIL() << "no collective was written";
}

TEST(ChromeTrace, AGatherCountsItsShareInAndTheWholeOut) {
    TraceBuilder builder;
    builder.setWorldSize(8);
    const auto track = builder.addTrack(0, 1, TrackKind::Communication, "nccl");
    const auto gather = builder.addCollective({.op = "_allgather_base", .elements = 800, .dtype = "BFloat16", .bytes = 1600, .groupSize = 4, .sequence = 0,
                                               .algorithm = "RING", .protocol = "SIMPLE", .group = "shard", .ranks = {0, 2, 4, 6}});
    builder.addSlice(track, us(0), us(1), SliceCategory::Communication, builder.internName("gather"), -1, gather);
    const json file = exported(builder.build());
    const json kernel = eventsOf(file, "X", "kernel").at(0);
    EXPECT_EQ(kernel.at("name"), "ncclDevKernel_AllGather_RING_SIMPLE");
    EXPECT_EQ(kernel.at("args").at("In msg nelems"), 200);  // 800 / 4
    EXPECT_EQ(kernel.at("args").at("Out msg nelems"), 800);
    EXPECT_EQ(kernel.at("args").at("Process Group Name"), "1");
    EXPECT_EQ(kernel.at("args").at("Process Group Ranks"), "[0, 2, 4, 6]");
    EXPECT_EQ(file.at("distributedInfo").at("pg_count"), 2);
}

TEST(ChromeTrace, FlowsComeInPairsFromInsideASliceToTheStartOfAnother) {
    const json file = exported(smallTrace());
    std::map<std::int64_t, json> begins, ends;
    for (const json& e : eventsOf(file, "s")) EXPECT_TRUE(begins.emplace(e.at("id").get<std::int64_t>(), e).second);
    for (const json& e : eventsOf(file, "f")) EXPECT_TRUE(ends.emplace(e.at("id").get<std::int64_t>(), e).second);
    ASSERT_EQ(begins.size(), 10U);  // four launches and one dependency for each of two ranks
    ASSERT_EQ(ends.size(), begins.size());
    const auto slices = eventsOf(file, "X");
    const auto within = [&](const json& flow) {
        for (const json& s : slices)
            if (s.at("pid") == flow.at("pid") && s.at("tid") == flow.at("tid") && s.at("ts") <= flow.at("ts") &&
                flow.at("ts").get<double>() < s.at("ts").get<double>() + s.at("dur").get<double>())
                return true;
        return false;
    };
    for (const auto& [id, begin] : begins) {
        ASSERT_TRUE(ends.contains(id));
        EXPECT_EQ(begin.at("cat"), ends[id].at("cat"));
        EXPECT_EQ(ends[id].at("bp"), "e");
        EXPECT_TRUE(within(begin)) << begin.dump();
        EXPECT_TRUE(within(ends[id])) << ends[id].dump();
    }
}

TEST(ChromeTrace, NamesEveryRowItUses) {
    const json file = exported(smallTrace());
    std::set<std::tuple<json, json>> named;
    for (const json& e : eventsOf(file, "M"))
        if (e.at("name") == "thread_name") named.emplace(e.at("pid"), e.at("tid"));
    for (const json& e : eventsOf(file, "X")) EXPECT_TRUE(named.contains({e.at("pid"), e.at("tid")})) << e.dump();
}

TEST(ChromeTrace, MarksTheStepOncePerRankAndKeepsMarksThatAreThere) {
    std::size_t steps = 0;
    for (const json& e : eventsOf(exported(smallTrace()), "X", "user_annotation")) {
        EXPECT_EQ(e.at("name"), "ProfilerStep#0");
        EXPECT_DOUBLE_EQ(e.at("dur").get<double>(), 82);
        ++steps;
    }
    EXPECT_EQ(steps, 2U);

    TraceBuilder builder;
    const auto host = builder.addTrack(0, 0, TrackKind::Host, "host");
    builder.addSlice(host, us(0), us(5), SliceCategory::Marker, builder.internName("ProfilerStep#17"));
    const auto marks = eventsOf(exported(builder.build()), "X", "user_annotation");
    ASSERT_EQ(marks.size(), 1U);
    EXPECT_EQ(marks[0].at("name"), "ProfilerStep#17");
}

TEST(ChromeTrace, WritesMemoryCountersBySeries) {
    const auto counters = eventsOf(exported(smallTrace()), "C");
    ASSERT_EQ(counters.size(), 6U);
    EXPECT_EQ(counters[1].at("args"), (json{{"parameters", 100}, {"activations", 50}}));
    EXPECT_DOUBLE_EQ(counters[1].at("ts").get<double>(), 22);
}

TEST(ChromeTrace, TimesAreExactToThePicosecond) {
    TraceBuilder builder;
    const auto track = builder.addTrack(0, 1, TrackKind::Compute, "c");
    builder.addSlice(track, Time::fromPicoseconds(1234567891), Time::fromPicoseconds(5), SliceCategory::Compute, builder.internName("x"));
    builder.addSlice(track, Time::fromNanoseconds(3), Time::fromNanoseconds(40), SliceCategory::Compute, builder.internName("x"));
    const std::string text = chromeTraceJson(builder.build());
    EXPECT_NE(text.find("\"ts\": 1234.567891, \"dur\": 0.000005"), std::string::npos);
    EXPECT_NE(text.find("\"ts\": 0.003, \"dur\": 0.040"), std::string::npos);
}

TEST(ChromeTrace, EscapesNamesAndReplacesBytesThatAreNotUtf8) {
    TraceBuilder builder;
    builder.setTitle("a \"title\"\n");
    const auto track = builder.addTrack(0, 1, TrackKind::Compute, "tr\\ack");
    builder.addSlice(track, us(0), us(1), SliceCategory::Compute, builder.internName("tab\t\x01 quote\" \xff µ"));
    const json file = exported(builder.build());
    EXPECT_EQ(file.at("traceName"), "a \"title\"\n");
    EXPECT_EQ(eventsOf(file, "X", "kernel").at(0).at("name"), "tab\t\x01 quote\" \xEF\xBF\xBD µ");
}

TEST(ChromeTrace, ARankOfItsOwnHasNothingOfOthers) {
    const json file = exported(smallTrace(), {.rank = 1, .deviceName = "H100", .deviceMemory = 80, .backend = "nccl", .firstStep = 4});
    EXPECT_EQ(file.at("distributedInfo").at("rank"), 1);
    EXPECT_EQ(file.at("deviceProperties").at(0).at("name"), "H100");
    for (const json& e : file.at("traceEvents")) EXPECT_EQ(e.at("pid"), 1);
    EXPECT_EQ(eventsOf(file, "X", "user_annotation").at(0).at("name"), "ProfilerStep#4");
}

TEST(ChromeTrace, AnEmptyTraceIsStillAFile) { EXPECT_EQ(exported(Trace{}).at("traceEvents").size(), 0U); }

TEST(ChromeTrace, AnySlicesNestOnceWritten) {
    ASSERT_TRUE(rc::check([] {
        TraceBuilder builder;
        for (const TrackKind kind : {TrackKind::Host, TrackKind::Compute, TrackKind::Communication}) builder.addTrack(0, 0, kind, "same stream");
        const auto slices = *rc::gen::container<std::vector<std::tuple<std::uint32_t, int, int, int>>>(
            rc::gen::tuple(rc::gen::inRange<std::uint32_t>(0, 3), rc::gen::inRange(0, 7), rc::gen::inRange(0, 50), rc::gen::inRange(0, 20)));
        for (const auto& [track, category, start, length] : slices)
            builder.addSlice(track, Time::fromPicoseconds(start), Time::fromPicoseconds(length), static_cast<SliceCategory>(category), builder.internName("x"));
        for (std::uint32_t i = 1; i < slices.size(); ++i) builder.addFlow(i - 1, i, Flow::Kind::Launch);
        expectNested(exported(builder.build()));
        RC_ASSERT(!::testing::Test::HasFailure());
    }));
}

TEST(CollectiveNames, AreUnderstoodInEverySpelling) {
    EXPECT_EQ(collectiveKindOf("all_reduce"), CollectiveKind::AllReduce);
    EXPECT_EQ(collectiveKindOf("AllReduce"), CollectiveKind::AllReduce);
    EXPECT_EQ(collectiveKindOf("_reduce_scatter_base"), CollectiveKind::ReduceScatter);
    EXPECT_EQ(collectiveKindOf("allgather_into_tensor_coalesced"), CollectiveKind::AllGather);
    EXPECT_EQ(collectiveKindOf("reduce"), CollectiveKind::Reduce);
    EXPECT_EQ(collectiveKindOf("send"), CollectiveKind::SendRecv);
    EXPECT_EQ(collectiveKindOf("barrier"), CollectiveKind::Other);
}

// ---- atomic files --------------------------------------------------------------------------------------------------------

class AtomicFile : public ::testing::Test {
protected:
    void SetUp() override {
        directory_ = std::filesystem::path(::testing::TempDir()) / ("ringside_atomic_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
        std::filesystem::remove_all(directory_);
        std::filesystem::create_directory(directory_);
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    std::string read(const std::filesystem::path& path) {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    std::size_t files() { return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_), {})); }

    std::filesystem::path directory_;
};

TEST_F(AtomicFile, ReplacesAFileAndLeavesNothingBeside) {
    const auto path = directory_ / "out.json";
    ASSERT_TRUE(atomicWriteFile(path, "one"));
    ASSERT_TRUE(atomicWriteFile(path, "two"));
    EXPECT_EQ(read(path), "two");
    EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, NamesThePathWhenTheDirectoryIsMissing) {
    const auto result = atomicWriteFile(directory_ / "missing" / "out.json", "x");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::RuntimeFailure);
    EXPECT_NE(result.error().toString().find("missing/out.json"), std::string::npos);
    EXPECT_EQ(files(), 0U);
}

TEST_F(AtomicFile, RefusesADirectoryAsTarget) {
    EXPECT_FALSE(atomicWriteFile(directory_, "x"));
    EXPECT_EQ(files(), 0U);
}

TEST_F(AtomicFile, TraceIsWrittenWhole) {
    const auto path = directory_ / "trace.json";
    ASSERT_TRUE(writeChromeTrace(smallTrace(), path));
    EXPECT_EQ(read(path), chromeTraceJson(smallTrace()));
}

}  // namespace
}  // namespace ringside
