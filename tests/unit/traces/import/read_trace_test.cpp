#include "traces/import/read_trace.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <zlib.h>

#include "tests/support/trace_equality.h"
#include "traces/export/chrome_json.h"
#include "traces/trace_builder.h"

namespace ringside {
namespace {

using testing::HasSubstr;

Time us(double microseconds) { return Time::fromMicroseconds(microseconds); }
Time ns(std::int64_t nanoseconds) { return Time::fromNanoseconds(nanoseconds); }

class ReadTrace : public testing::Test {
protected:
    void SetUp() override {
        folder_ = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string plain(const std::string& text, const std::string& name = "trace.json") const {
        const std::string path = folder_ / name;
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }
    std::string gzipped(const std::string& text, const std::string& name = "trace.json.gz") const {
        const std::string path = folder_ / name;
        gzFile file = gzopen(path.c_str(), "wb1");
        gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
        gzclose(file);
        return path;
    }
    ImportedTrace read(const std::string& text) const { return readPath(plain(text)); }
    static ImportedTrace readPath(const std::string& path) {
        Result<ImportedTrace> imported = readTrace({path});
        EXPECT_TRUE(imported) << (imported ? "" : imported.error().toString());
        return imported ? std::move(*imported) : ImportedTrace{};
    }

    std::filesystem::path folder_;
};

std::string nameOfSlice(const Trace& trace, std::size_t i) { return trace.names[trace.name[i]]; }

/// The one slice of that name.
std::size_t find(const Trace& trace, const std::string& name) {
    std::size_t found = trace.size();
    for (std::size_t i = 0; i < trace.size(); ++i)
        if (nameOfSlice(trace, i) == name) {
            EXPECT_EQ(found, trace.size()) << name << " is there twice";
            found = i;
        }
    EXPECT_LT(found, trace.size()) << "no slice " << name;
    return found < trace.size() ? found : 0;
}

std::int64_t countOf(const ImportNotes& notes, const std::string& part) {
    std::int64_t count = 0;
    for (const ImportNote& note : notes.all())
        if (note.what.find(part) != std::string::npos) count += note.count;
    return count;
}

bool hasFlow(const Trace& trace, const std::string& from, const std::string& to, Flow::Kind kind) {
    for (const Flow& flow : trace.flows)
        if (nameOfSlice(trace, flow.from) == from && nameOfSlice(trace, flow.to) == to && flow.kind == kind) return true;
    return false;
}

std::string kineto(const std::string& events, const std::string& info = R"("distributedInfo": {"backend": "nccl", "rank": "3", "world_size": 4},)") {
    return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A100", "totalGlobalMem": 85}], )" + info + R"( "traceEvents": [)" + events + "]}";
}

TEST_F(ReadTrace, KeepsTheNanosecondsOfTimesSince1970) {
    // In a double 1.7e15 µs has a grain of 0.25 µs: the 1 ns between these two would be lost.
    const ImportedTrace in = read(kineto(R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1700000000000000.001, "dur": 5.25},
                                            {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": 1700000000000010.002, "dur": 0.001})"));
    ASSERT_EQ(in.trace.size(), 2U);
    EXPECT_EQ(in.trace.start[0], Time{});
    EXPECT_EQ(in.trace.start[1], ns(10001));
    EXPECT_EQ(in.trace.duration[0], ns(5250));
    EXPECT_EQ(in.trace.duration[1], ns(1));
    EXPECT_EQ(in.metadata.baseTimeNanoseconds, 1700000000000000001);
}

TEST_F(ReadTrace, AddsRelativeTimesToTheBaseTheyAreCountedFrom) {
    const ImportedTrace in = read(R"({"baseTimeNanoseconds": 1700000000000000000, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 2.5, "dur": 1}]})");
    EXPECT_EQ(in.metadata.baseTimeNanoseconds, 1700000000000002500);
}

TEST_F(ReadTrace, TakesRankAndWorldFromStringsToo) {
    const ImportedTrace in = read(kineto(R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 1, "args": {"stream": 7}})"));
    EXPECT_EQ(in.format, TraceFormat::Kineto);
    EXPECT_EQ(in.trace.tracks.at(0).rank, 3);
    EXPECT_EQ(in.trace.worldSize, 4);
    EXPECT_EQ(in.metadata.backend, "nccl");
    ASSERT_EQ(in.metadata.devices.size(), 1U);
    EXPECT_EQ(in.metadata.devices[0].name, "A100");
    EXPECT_EQ(in.metadata.devices[0].memory, 85);
}

TEST_F(ReadTrace, TakesTheRankFromTheFilesNameIfTheFileDoesNotSayIt) {
    const std::string text = kineto(R"({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 1})", "");
    EXPECT_EQ(readPath(plain(text, "trace_rank12.json")).trace.tracks.at(0).rank, 12);
    EXPECT_EQ(readPath(plain(text, "ddp_r5.json")).trace.tracks.at(0).rank, 5);
    const ImportedTrace in = readPath(plain(text, "Rank-2.pt.trace.json"));
    EXPECT_EQ(in.trace.tracks.at(0).rank, 2);
    EXPECT_EQ(countOf(in.notes, "its name says 2"), 1);
}

TEST_F(ReadTrace, TakesPidsAndTidsThatAreWords) {
    // Old Kineto: a tid in quotes and the same as a number, and streams as words.
    const ImportedTrace in = read(kineto(R"({"ph": "X", "cat": "Runtime", "name": "call", "pid": 5, "tid": "55", "ts": 0, "dur": 2},
                                            {"ph": "X", "cat": "Operator", "name": "op", "pid": 5, "tid": 55, "ts": 4, "dur": 2},
                                            {"ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 5, "dur": 2},
                                            {"ph": "X", "cat": "Trace", "name": "span", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0, "dur": 9})"));
    const Trace& trace = in.trace;
    ASSERT_EQ(trace.tracks.size(), 3U);
    EXPECT_EQ(trace.track[find(trace, "call")], trace.track[find(trace, "op")]);
    const Track& stream = trace.tracks[trace.track[find(trace, "gemm")]];
    EXPECT_EQ(stream.stream, 7);
    EXPECT_EQ(stream.kind, TrackKind::Compute);
    EXPECT_EQ(trace.category[find(trace, "span")], SliceCategory::Marker);
    EXPECT_EQ(trace.track[find(trace, "span")], 2U);
}

TEST_F(ReadTrace, SortsEventsIntoCategories) {
    const ImportedTrace in = read(kineto(R"~({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 0, "dur": 9},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1, "dur": 2, "args": {"correlation": 11}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 9, "tid": 9, "ts": 20, "dur": 2, "args": {"correlation": 12}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5, "dur": 3, "args": {"stream": 7, "correlation": 11}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 8, "ts": 5, "dur": 3, "args": {"stream": 8}},
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 20, "ts": 6, "dur": 3},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 9, "tid": 9, "ts": 0, "dur": 30},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "nccl:all_reduce", "pid": 0, "tid": 20, "ts": 5.999, "dur": 3.002})~"));
    const Trace& trace = in.trace;
    const auto category = [&](const char* name) { return trace.category[find(trace, name)]; };
    const auto kind = [&](const char* name) { return trace.tracks[trace.track[find(trace, name)]].kind; };
    EXPECT_EQ(category("aten::mm"), SliceCategory::Host);
    EXPECT_EQ(category("cudaLaunchKernel"), SliceCategory::Host);
    EXPECT_EQ(category("cudaDeviceSynchronize"), SliceCategory::Wait);
    EXPECT_EQ(category("gemm"), SliceCategory::Compute);
    EXPECT_EQ(category("Memcpy HtoD"), SliceCategory::Copy);
    EXPECT_EQ(category("ProfilerStep#4"), SliceCategory::Marker);
    EXPECT_EQ(kind("aten::mm"), TrackKind::Host);
    EXPECT_EQ(kind("gemm"), TrackKind::Compute);
    EXPECT_EQ(kind("Memcpy HtoD"), TrackKind::Copy);
    EXPECT_EQ(kind("nccl:all_reduce"), TrackKind::Communication);
    EXPECT_TRUE(hasFlow(trace, "cudaLaunchKernel", "gemm", Flow::Kind::Launch));
    const std::size_t reduce = find(trace, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
    EXPECT_EQ(trace.category[reduce], SliceCategory::Communication);
    const CollectiveDetails& details = trace.collectives.at(static_cast<std::size_t>(trace.collective[reduce]));
    EXPECT_EQ(details.op, "AllReduce");
    EXPECT_EQ(details.algorithm, "RING");
    EXPECT_EQ(details.protocol, "LL");
    EXPECT_EQ(details.dtype, "Float");
    EXPECT_EQ(countOf(in.notes, "does not say what it moves"), 1);
}

TEST_F(ReadTrace, JoinsACollectivesKernelWithWhatAnnouncedIt) {
    // The kernel says nothing; its launch lies within record_param_comms. An all-gather moves its output: 4096 × 2 bytes.
    const ImportedTrace in = read(kineto(R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": 0, "dur": 9, "args": {"Collective name": "_allgather_base",
          "In msg nelems": 1024, "Out msg nelems": 4096, "Group size": 4, "dtype": "BFloat16", "Process Group Name": "2", "Process Group Ranks": "[0, 2, 4, 6]", "Seq": 17}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 9, "tid": 9, "ts": 1, "dur": 2, "args": {"correlation": 11}},
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL", "pid": 0, "tid": 20, "ts": 6, "dur": 3, "args": {"correlation": 11}})"));
    const CollectiveDetails& details = in.trace.collectives.at(static_cast<std::size_t>(in.trace.collective[find(in.trace, "ncclDevKernel_AllGather_RING_LL")]));
    EXPECT_EQ(details.bytes, 8192);
    EXPECT_EQ(details.groupSize, 4);
    EXPECT_EQ(details.sequence, 17);
    EXPECT_EQ(details.ranks, (std::vector<std::int64_t>{0, 2, 4, 6}));
    EXPECT_EQ(details.protocol, "LL");
    EXPECT_EQ(in.notes.total(), 0);
}

TEST_F(ReadTrace, KnowsGroupsFromDistributedInfoAfterTheEvents) {
    const ImportedTrace in = read(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float", "pid": 0, "tid": 20, "ts": 6, "dur": 3, "args": {
          "Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float", "Process Group Name": "5"}}],
        "distributedInfo": {"rank": 1, "world_size": 8, "pg_config": "[{\"pg_name\": \"5\", \"pg_desc\": \"tp\", \"ranks\": [1, 3]}]"}})");
    EXPECT_EQ(in.trace.tracks.at(0).rank, 1);
    ASSERT_EQ(in.trace.collectives.size(), 1U);
    EXPECT_EQ(in.trace.collectives[0].group, "tp");
    EXPECT_EQ(in.trace.collectives[0].groupSize, 2);
    EXPECT_EQ(in.trace.collectives[0].bytes, 40);
    EXPECT_EQ(in.trace.collectives[0].sequence, -1);
}

TEST_F(ReadTrace, TakesGlooRangesAsCommunicationAndTheCpuAsTheDevice) {
    const ImportedTrace in = read(kineto(R"~({"ph": "M", "name": "thread_name", "pid": 9, "tid": 10, "args": {"name": "thread 10 (pt_gloo_runloop)"}},
        {"ph": "M", "name": "thread_name", "pid": 9, "tid": 10, "args": {"name": "thread 10 (python)"}},
        {"ph": "X", "cat": "user_annotation", "name": "gloo:all_gather", "pid": 9, "tid": 10, "ts": 0, "dur": 9, "args": {"Input type": ["float"], "Input Dims": [[2, 50]]}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::view", "pid": 9, "tid": 10, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 9, "tid": 9, "ts": 10, "dur": 10},
        {"ph": "X", "cat": "cpu_op", "name": "aten::add_", "pid": 9, "tid": 9, "ts": 12, "dur": 2},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 3, "dur": 4})~", R"("distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2},)"));
    const Trace& trace = in.trace;
    const std::size_t gather = find(trace, "gloo:all_gather");
    EXPECT_EQ(trace.category[gather], SliceCategory::Communication);
    EXPECT_EQ(trace.tracks[trace.track[gather]].kind, TrackKind::Communication);
    EXPECT_EQ(trace.tracks[trace.track[gather]].name, "thread 10 (pt_gloo_runloop)");
    // 100 floats from each of 2 ranks: 800 bytes.
    EXPECT_EQ(trace.collectives.at(static_cast<std::size_t>(trace.collective[gather])).bytes, 800);
    EXPECT_EQ(trace.category[find(trace, "aten::view")], SliceCategory::Host) << "work of Gloo's thread is no compute that could hide it";
    EXPECT_EQ(trace.category[find(trace, "aten::mm")], SliceCategory::Compute);
    EXPECT_EQ(trace.category[find(trace, "aten::add_")], SliceCategory::Optimizer);
    EXPECT_EQ(countOf(in.notes, "operators on the CPU count as compute"), 1);
}

TEST_F(ReadTrace, CallsKernelsThatTheOptimizersStepLaunchedItsOwn) {
    const ImportedTrace in = read(kineto(R"({"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#AdamW.step", "pid": 9, "tid": 9, "ts": 10, "dur": 10},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 12, "dur": 2, "args": {"correlation": 3}},
        {"ph": "X", "cat": "kernel", "name": "adam", "pid": 0, "tid": 7, "ts": 50, "dur": 4, "args": {"correlation": 3}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 12, "dur": 4, "args": {"correlation": 2}})"));
    EXPECT_EQ(in.trace.category[find(in.trace, "adam")], SliceCategory::Optimizer);
    EXPECT_EQ(in.trace.category[find(in.trace, "gemm")], SliceCategory::Compute);
}

TEST_F(ReadTrace, ReadsEveryPhaseOfChromesFormat) {
    const ImportedTrace in = read(R"([{"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 0}, {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 5}, {"ph": "E", "pid": 1, "tid": 1, "ts": 10},
        {"ph": "b", "cat": "net", "id": "0x1", "name": "send", "pid": 1, "tid": 1, "ts": 1}, {"ph": "b", "cat": "net", "id": "0x2", "name": "send 2", "pid": 1, "tid": 1, "ts": 3},
        {"ph": "n", "cat": "net", "id": "0x1", "name": "half", "pid": 1, "tid": 1, "ts": 4},
        {"ph": "e", "cat": "net", "id": "0x1", "name": "send", "pid": 1, "tid": 1, "ts": 6}, {"ph": "e", "cat": "net", "id": "0x2", "name": "send 2", "pid": 1, "tid": 1, "ts": 8},
        {"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 7, "s": "t"},
        {"ph": "C", "name": "queue", "pid": 1, "ts": 0, "args": {"a": 1, "b": 2}}, {"ph": "C", "name": "queue", "pid": 1, "ts": 3, "args": {"a": 4, "b": 0}},
        {"ph": "X", "name": "two", "pid": 2, "tid": 1, "ts": 20, "dur": 5},
        {"ph": "s", "cat": "x", "id": 1, "name": "f", "pid": 1, "tid": 1, "ts": 3}, {"ph": "f", "cat": "x", "id": 1, "name": "f", "pid": 2, "tid": 1, "ts": 19},
        {"ph": "N", "name": "object", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "browser"}})");
    const Trace& trace = in.trace;
    EXPECT_EQ(in.format, TraceFormat::Chrome);
    const std::size_t inner = find(trace, "inner"), send = find(trace, "send"), send2 = find(trace, "send 2");
    EXPECT_EQ(trace.start[inner], us(2));
    EXPECT_EQ(trace.duration[inner], us(3));
    EXPECT_EQ(trace.duration[find(trace, "outer")], us(10));
    EXPECT_EQ(trace.duration[send], us(5));
    EXPECT_EQ(trace.track[send], trace.track[send2]) << "both stay on their track, though they overlap";
    ASSERT_EQ(trace.instants.size(), 2U);
    ASSERT_EQ(trace.counters.size(), 1U);
    EXPECT_EQ(trace.counters[0].series, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(trace.counters[0].values, (std::vector<Bytes>{1, 2, 4, 0}));
    // Without `bp: e` a flow ends at the next slice to start.
    EXPECT_TRUE(hasFlow(trace, "inner", "two", Flow::Kind::Dependency));
    EXPECT_EQ(trace.rankNames.at(0), "browser");
    EXPECT_EQ(countOf(in.notes, "of a kind that is not shown"), 1);
}

TEST_F(ReadTrace, BindsAFlowToTheSliceAroundItsTimestamp) {
    const ImportedTrace in = read(R"([{"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 0, "dur": 10}, {"ph": "X", "name": "call", "pid": 1, "tid": 1, "ts": 2, "dur": 2},
        {"ph": "X", "name": "k1", "pid": 1, "tid": 2, "ts": 5, "dur": 5}, {"ph": "X", "name": "k2", "pid": 1, "tid": 2, "ts": 10, "dur": 5}, {"ph": "X", "name": "k3", "pid": 1, "tid": 2, "ts": 15, "dur": 5},
        {"ph": "s", "cat": "x", "id": 1, "pid": 1, "tid": 1, "ts": 2}, {"ph": "t", "cat": "x", "id": 1, "pid": 1, "tid": 2, "ts": 7, "bp": "e"}, {"ph": "f", "cat": "x", "id": 1, "bp": "e", "pid": 1, "tid": 2, "ts": 10},
        {"ph": "f", "cat": "x", "id": 2, "bp": "e", "pid": 1, "tid": 2, "ts": 10}, {"ph": "s", "cat": "x", "id": 3, "pid": 1, "tid": 1, "ts": 50}])");
    EXPECT_TRUE(hasFlow(in.trace, "call", "k1", Flow::Kind::Dependency));
    EXPECT_TRUE(hasFlow(in.trace, "k1", "k2", Flow::Kind::Dependency));
    EXPECT_EQ(in.trace.flows.size(), 2U);
    EXPECT_EQ(countOf(in.notes, "that never started"), 1);
    EXPECT_EQ(countOf(in.notes, "where no slice is"), 1);
}

TEST_F(ReadTrace, KeepsOverlappingSlicesOfOneStream) {
    const ImportedTrace in = read(kineto(R"({"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 0, "dur": 10}, {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 8, "dur": 10})"));
    EXPECT_EQ(in.trace.size(), 2U);
}

TEST_F(ReadTrace, MakesAllocationsOfMemoryEvents) {
    const ImportedTrace in = read(kineto(R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 0, "dur": 9},
        {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 9, "tid": 9, "ts": 1, "dur": 2},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5, "dur": 3},
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 9, "tid": 9, "ts": 20, "args": {"Device Type": 1, "Device Id": 0, "Addr": 64, "Bytes": -512, "Total Allocated": 488, "Total Reserved": 2000}},
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 9, "tid": 9, "ts": 2, "args": {"Device Type": 1, "Device Id": 0, "Addr": 64, "Bytes": 512, "Total Allocated": 1000, "Total Reserved": 2000}},
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 9, "tid": 9, "ts": 21, "args": {"Device Type": 1, "Device Id": 0, "Addr": 96, "Bytes": -8, "Total Allocated": 480, "Total Reserved": 2000}})"));
    const Trace& trace = in.trace;
    ASSERT_EQ(trace.allocations.size(), 1U);
    EXPECT_EQ(trace.allocations[0].begin, us(2));
    EXPECT_EQ(trace.allocations[0].end, us(20));
    EXPECT_EQ(trace.allocations[0].bytes, 512);
    EXPECT_EQ(trace.names[trace.allocations[0].name], "aten::mm") << "aten::empty only hands memory out";
    ASSERT_EQ(trace.counters.size(), 2U);
    EXPECT_EQ(trace.counters[0].values, (std::vector<Bytes>{1000, 488, 480}));
    EXPECT_EQ(trace.counters[1].name, "memory reserved");
    EXPECT_EQ(trace.counters[1].limit, 85) << "the capacity of the one device that was used";
    EXPECT_EQ(countOf(in.notes, "before the trace began"), 1);
}

// ---- broken files -------------------------------------------------------------------------------------------------------

const char* const kGood = R"({"ph": "X", "name": "good", "pid": 1, "tid": 1, "ts": 1, "dur": 1})";

TEST_F(ReadTrace, StepsOverWhatIsBrokenAndSaysWhere) {
    const std::vector<std::pair<const char*, const char*>> cases = {
        {R"({"ph": "X", "name": "a quote " in it", "pid": 1, "tid": 1, "ts": 1, "dur": 1})", "no JSON"},
        {R"({"ph": "X", "name": "no closing quote, "pid": 1, "tid": 1, "ts": 1, "dur": 1})", "no JSON"},
        {R"({"ph": "X", "name": "open list", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"Input Dims": [[1, 2]})", "no JSON"},
        {R"({"ph": "X", "name": "open object", "pid": 1, "tid": 1, "ts": 1, "args": {"a": 1)", "no JSON"},
        {R"(junk)", "none"},
        {R"({"ph": "X", "name": "bad ts", "pid": 1, "tid": 1, "ts": 1..2, "dur": 1})", "without a time"},
        {R"({"ph": "X", "name": "no ts", "pid": 1, "tid": 1, "dur": 1})", "without a time"},
        {R"({"ph": "X", "name": "NaN", "pid": 1, "tid": 1, "ts": NaN, "dur": 1})", "without a time"},
        {R"({"name": "no phase", "ts": 1})", "without a phase"},
        {R"({"ph": "E", "pid": 1, "tid": 1, "ts": 1})", "without a begin"},
    };
    for (const auto& [broken, note] : cases) {
        const ImportedTrace in = read(std::string("{\"traceEvents\": [") + kGood + ",\n" + broken + ",\n" + kGood + "]}");
        EXPECT_EQ(in.trace.size(), 2U) << broken;
        EXPECT_EQ(countOf(in.notes, note), 1) << broken;
        ASSERT_FALSE(in.notes.all().empty());
        EXPECT_THAT(in.notes.all()[0].where, HasSubstr("event 1 (byte ")) << broken;
    }
}

TEST_F(ReadTrace, ShowsSlicesWhoseLengthIsOff) {
    const ImportedTrace in = read(R"([{"ph": "X", "name": "none", "pid": 1, "tid": 1, "ts": 1}, {"ph": "X", "name": "negative", "pid": 1, "tid": 1, "ts": 2, "dur": -4}, {"ph": "B", "name": "open", "pid": 1, "tid": 1, "ts": 1}])");
    EXPECT_EQ(in.trace.size(), 3U);
    EXPECT_EQ(in.trace.duration[find(in.trace, "negative")], Time{});
    EXPECT_EQ(in.trace.duration[find(in.trace, "open")], us(1)) << "up to the end of the trace";
    EXPECT_EQ(in.notes.total(), 3);
}

TEST_F(ReadTrace, TakesControlCharactersAndEscapesInNames) {
    const ImportedTrace in = read(std::string("[{\"ph\": \"X\", \"name\": \"a\nb\x01\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1},") +
                                  R"({"ph": "X", "name": "q\"\\\u00e9\ud83d\ude00", "pid": 1, "tid": 1, "ts": 5, "dur": 1}])");
    EXPECT_EQ(nameOfSlice(in.trace, 0), "a\nb\x01");
    EXPECT_EQ(nameOfSlice(in.trace, 1), "q\"\\é😀");
}

TEST_F(ReadTrace, UsesATruncatedFileUpToItsEnd) {
    std::string text = "{\"traceEvents\": [";
    for (int i = 0; i < 1000; ++i) text += std::string(i == 0 ? "" : ",") + kGood;
    const ImportedTrace cut = read(text.substr(0, text.size() - 10));
    EXPECT_EQ(cut.trace.size(), 999U);
    EXPECT_EQ(countOf(cut.notes, "the file ends within an event"), 1);
    const ImportedTrace open = read(text);
    EXPECT_EQ(open.trace.size(), 1000U);
    EXPECT_EQ(countOf(open.notes, "the file ends within its events"), 1);
}

TEST_F(ReadTrace, UsesATruncatedGzipUpToItsEnd) {
    std::string text = "{\"traceEvents\": [";
    for (int i = 0; i < 20000; ++i) text += std::string(i == 0 ? "" : ",") + R"({"ph": "X", "name": "k)" + std::to_string(i * 7919 % 1000) + R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(i) + R"(, "dur": 1})";
    const std::string path = gzipped(text + "]}");
    ASSERT_EQ(readPath(path).trace.size(), 20000U);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    const ImportedTrace in = readPath(path);
    EXPECT_GT(in.trace.size(), 5000U);
    EXPECT_LT(in.trace.size(), 15000U);
    EXPECT_EQ(countOf(in.notes, "the compressed data ends too early"), 1);
}

TEST_F(ReadTrace, RefusesWhatHoldsNoTraceAndSaysWhatItIs) {
    const std::vector<std::pair<std::string, const char*>> cases = {
        {"", "is empty"},
        {"  \n", "white space"},
        {"hello", "is no JSON"},
        {"{\"a\": 1}", "without 'traceEvents'"},
        {"[]", "no slice"},
        {"{\"traceEvents\": [{\"ph\": \"X\"}]}", "without a time"},
        {std::string("SQLite format 3\0", 16), "SQLite"},
        {"<html>", "HTML"},
    };
    for (const auto& [text, message] : cases) {
        const Result<ImportedTrace> in = readTrace({plain(text)});
        ASSERT_FALSE(in) << text;
        EXPECT_EQ(in.error().code, ErrorCode::BadInput);
        EXPECT_THAT(in.error().toString(), HasSubstr(message));
        EXPECT_THAT(in.error().toString(), HasSubstr("trace.json"));
    }
    EXPECT_THAT(readTrace({folder_ / "missing.json"}).error().toString(), HasSubstr("cannot be opened"));
    EXPECT_THAT(readTrace({folder_.string()}).error().toString(), HasSubstr("folder"));
}

TEST_F(ReadTrace, NeverFailsOnAFileThatLostABlock) {
    // Any piece may be missing: what is left is read, or refused with a reason; slices keep sane times.
    const std::string text = chromeTraceJson([] {
        TraceBuilder builder;
        const auto track = builder.addTrack(0, 7, TrackKind::Compute, "compute");
        for (int i = 0; i < 50; ++i) builder.addSlice(track, us(i * 10), us(5), SliceCategory::Compute, builder.internName("k" + std::to_string(i % 5)), i);
        return builder.build();
    }());
    EXPECT_TRUE(rc::check("a piece is cut out of a file", [&] {
        const auto begin = *rc::gen::inRange<std::size_t>(0, text.size());
        const auto length = *rc::gen::inRange<std::size_t>(1, 400);
        std::string cut = text;
        cut.erase(begin, length);
        const Result<ImportedTrace> in = readTrace({plain(cut)});
        if (!in) return;
        RC_ASSERT(in->trace.size() >= 40U);
        for (std::size_t i = 0; i < in->trace.size(); ++i) RC_ASSERT(in->trace.duration[i] >= Time{});
    }));
}

// ---- details, progress ---------------------------------------------------------------------------------------------------

TEST_F(ReadTrace, GivesTheArgsOfASliceAgain) {
    const std::string text = kineto(R"({"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 0, "dur": 10, "args": {"grid": [1, 2, 3], "note": "say \"x\"", "stream": 7}},
                                       {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 20, "dur": 10})");
    for (const std::string& path : {plain(text), gzipped(text)}) {
        const ImportedTrace in = readPath(path);
        const auto args = in.argsOf(find(in.trace, "a"));
        ASSERT_TRUE(args);
        EXPECT_EQ(*args, (std::vector<std::pair<std::string, std::string>>{{"grid", "[1, 2, 3]"}, {"note", "say \"x\""}, {"stream", "7"}}));
        EXPECT_TRUE(in.argsOf(find(in.trace, "b"))->empty());
        EXPECT_THAT(*in.eventOf(find(in.trace, "b")), HasSubstr("\"name\": \"b\""));
    }
}

TEST_F(ReadTrace, FindsEventsFarBehindInACompressedFile) {
    // 45 MB in two gzip members: later events are reached from marks on the way, and across the border of the members.
    std::string half, text = "[";
    const std::string filler(4000, 'x');
    int number = 0;
    const auto more = [&](int events) {
        std::string out;
        for (int i = 0; i < events; ++i, ++number)
            out += fmt::format("{}{{\"ph\": \"X\", \"name\": \"e\", \"pid\": 1, \"tid\": 1, \"ts\": {}, \"dur\": 1, \"args\": {{\"n\": {}, \"pad{}\": \"{}\"}}}}", number == 0 ? "" : ",", number * 10,
                               number, number * 31 % 977, filler.substr(static_cast<std::size_t>(number * 37 % 1000)));
        return out;
    };
    const std::string first = gzipped("[" + more(8000), "first.gz"), second = gzipped(more(3000) + "]", "second.gz");
    const std::string both = folder_ / "both.json.gz";
    std::ofstream(both, std::ios::binary) << std::ifstream(first, std::ios::binary).rdbuf() << std::ifstream(second, std::ios::binary).rdbuf();
    const ImportedTrace in = readPath(both);
    ASSERT_EQ(in.trace.size(), 11000U);
    for (const std::size_t slice : {0UL, 1UL, 3999UL, 4000UL, 7000UL, 7999UL, 8000UL, 8001UL, 10999UL}) {
        const auto args = in.argsOf(slice);
        ASSERT_TRUE(args) << args.error().toString();
        EXPECT_EQ(args->at(0).second, std::to_string(slice));
    }
}

TEST_F(ReadTrace, ReportsProgressAndStopsWhenAsked) {
    std::string text = "[";
    for (int i = 0; i < 60000; ++i) text += std::string(i == 0 ? "" : ",") + kGood;
    const std::string path = plain(text + "]");
    double last = 0;
    int calls = 0;
    ReadTraceOptions options;
    options.progress = [&](double fraction) {
        EXPECT_GE(fraction, last);
        last = fraction;
        ++calls;
    };
    ASSERT_TRUE(readTrace({path}, options));
    EXPECT_GT(calls, 2);
    EXPECT_DOUBLE_EQ(last, 1);

    std::atomic<bool> cancel = false;
    options.cancel = &cancel;
    options.progress = [&](double) { cancel = true; };
    const Result<ImportedTrace> stopped = readTrace({path}, options);
    ASSERT_FALSE(stopped);
    EXPECT_THAT(stopped.error().message, HasSubstr("cancelled"));
}

// ---- our own export ------------------------------------------------------------------------------------------------------

/// Any trace: overlapping slices, slices of no length at one instant, shared collectives, flows between anything.
Trace anyTrace() {
    using namespace rc;
    TraceBuilder builder;
    builder.setTitle("any \"trace\"");
    const int ranks = *gen::inRange(1, 4);
    builder.setWorldSize(ranks);
    std::vector<std::uint32_t> tracks;
    for (int rank = 0; rank < ranks; ++rank)
        for (int s = 0, streams = *gen::inRange(1, 4); s < streams; ++s)
            tracks.push_back(builder.addTrack(rank, *gen::inRange<std::int64_t>(0, 30), static_cast<TrackKind>(*gen::inRange(0, 4)), "track \t" + std::to_string(s)));
    std::vector<std::int32_t> collectives = {-1};
    for (int c = 0, n = *gen::inRange(0, 4); c < n; ++c) {
        const bool whole = *gen::arbitrary<bool>();
        const std::int64_t groupSize = whole ? ranks : 2, elements = groupSize * *gen::inRange<std::int64_t>(1, 1000);
        collectives.push_back(builder.addCollective({*gen::element<std::string>("allreduce", "_allgather_base", "_reduce_scatter_base", "broadcast"), elements, "Float", elements * 4, groupSize,
                                                     *gen::inRange<std::int64_t>(-1, 9), "ring", "LL128", whole ? "" : "tp", whole ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{0, 1}}));
    }
    std::vector<std::uint32_t> slices;
    for (int i = 0, n = *gen::inRange(1, 40); i < n; ++i)
        slices.push_back(builder.addSlice(*gen::elementOf(tracks), Time::fromPicoseconds(*gen::inRange<std::int64_t>(0, 5000) * 250), Time::fromPicoseconds(*gen::inRange<std::int64_t>(0, 3000) * 500),
                                          static_cast<SliceCategory>(*gen::inRange(0, 7)), builder.internName(*gen::element<std::string>("a", "b/c", "ünïcode", "")),
                                          *gen::inRange<std::int64_t>(-1, 100), *gen::elementOf(collectives)));
    for (int i = 0, n = *gen::inRange(0, 20); i < n; ++i)
        builder.addFlow(*gen::elementOf(slices), *gen::elementOf(slices), static_cast<Flow::Kind>(*gen::inRange(0, 3)));
    for (int i = 0, n = *gen::inRange(0, 3); i < n; ++i) {
        CounterSeries counter{*gen::inRange<std::int64_t>(0, ranks), "counter " + std::to_string(i), {"x", "y"}, {}, {}, *gen::inRange<std::int64_t>(0, 5)};
        for (int r = 0; r < 3; ++r) {
            counter.at.push_back(us(r));
            counter.values.insert(counter.values.end(), {*gen::inRange<Bytes>(0, 1 << 30), r});
        }
        builder.addCounter(std::move(counter));
    }
    for (int i = 0, n = *gen::inRange(0, 3); i < n; ++i) builder.addInstant(*gen::elementOf(tracks), us(*gen::inRange(0, 50)), builder.internName("instant"));
    for (int i = 0, n = *gen::inRange(0, 5); i < n; ++i) {
        const std::int64_t begin = *gen::inRange(0, 50);
        builder.addAllocation({*gen::inRange<std::int64_t>(0, ranks), us(static_cast<double>(begin)), *gen::arbitrary<bool>() ? Time::max() : us(static_cast<double>(begin + *gen::inRange(0, 9))), 512 * (i + 1),
                               builder.internName("tensor " + std::to_string(i)), builder.internName("activations")});
    }
    return builder.build();
}

TEST_F(ReadTrace, ReadsWhatWasExportedAsItWas) {
    EXPECT_TRUE(rc::check("import of an export is the identity", [&] {
        const Trace trace = anyTrace();
        const Result<ImportedTrace> in = readTrace({plain(chromeTraceJson(trace))});
        RC_ASSERT(in.has_value());
        RC_ASSERT(in->format == TraceFormat::Ringside);
        RC_ASSERT(in->notes.total() == 0);
        RC_ASSERT(describe(in->trace) == describe(trace));
    }));
}

}  // namespace
}  // namespace ringside
