// ringside trace: inspect, convert, diff, as a shell sees them.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/cli/schema_check.h"

namespace ringside {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

json schema(const char* name) {
    std::ifstream file(std::filesystem::path(RINGSIDE_SOURCE_DIR) / "docs" / "reference" / name);
    return json::parse(file);
}

/// Two steps of one rank of two; the all-reduce ends at 100 and 200 µs. `offset`: of its clock, in µs. `early`: when the rank got there.
std::string rankTrace(int rank, double offset, double early, double gemm = 40) {
    std::string events;
    for (int step = 0; step < 2; ++step) {
        const double begin = step * 100 + offset;
        const auto event = [&](const char* category, const std::string& name, int pid, int tid, double ts, double dur, const std::string& args) {
            events += (events.empty() ? "" : ",") + std::string("{\"ph\": \"X\", \"cat\": \"") + category + "\", \"name\": \"" + name + "\", \"pid\": " + std::to_string(pid) + ", \"tid\": " + std::to_string(tid) +
                      ", \"ts\": " + std::to_string(ts) + ", \"dur\": " + std::to_string(dur) + ", \"args\": {" + args + "}}";
        };
        event("user_annotation", "ProfilerStep#" + std::to_string(step), 9, 9, begin, 100, "");
        event("kernel", "gemm", 0, 7, begin + 10, gemm, "\"stream\": 7");
        event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 20, begin + 100 - early, early,
              "\"Collective name\": \"allreduce\", \"In msg nelems\": 1000, \"Out msg nelems\": 1000, \"Group size\": 2, \"dtype\": \"Float\", \"Seq\": " + std::to_string(step));
    }
    return "{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " + std::to_string(rank) + ", \"world_size\": 2}, \"traceEvents\": [" + events + "]}";
}

TEST(TraceInspect, ReportsOverlapCollectivesAndHowClocksWereAligned) {
    const WorkDir dir;
    dir.write("r0.json", rankTrace(0, 0, 60));
    dir.write("r1.json", rankTrace(1, 5000, 20));
    const ProgramRun text = dir.ringside("trace inspect r0.json r1.json");
    EXPECT_EQ(text.exitCode, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("2 of 2 ranks"));
    EXPECT_THAT(text.out, HasSubstr("rank 1 was moved by"));
    const json report = json::parse(dir.ringside("trace inspect r0.json r1.json --json").out);
    EXPECT_EQ(report.at("format"), "ringside-trace-report");
    EXPECT_THAT(schemaFaults(schema("trace-report.schema.json"), report), IsEmpty());
    ASSERT_EQ(report.at("steps").size(), 4U);
    // Rank 0: gemm [10, 50), all-reduce [40, 100): 10 µs hidden, 50 exposed.
    EXPECT_NEAR(report.at("steps")[0].at("communication_hidden_s").get<double>(), 10e-6, 1e-12);
    EXPECT_NEAR(report.at("steps")[0].at("communication_exposed_s").get<double>(), 50e-6, 1e-12);
    ASSERT_EQ(report.at("collectives").size(), 1U);
    const json& reduce = report.at("collectives")[0];
    EXPECT_EQ(reduce.at("count"), 2);
    EXPECT_EQ(reduce.at("seen_on_all_ranks"), 2);
    EXPECT_NEAR(reduce.at("transfer_p50_s").get<double>(), 20e-6, 1e-12);
    EXPECT_NEAR(reduce.at("wait_mean_s").get<double>(), 20e-6, 1e-12);  // 40 on rank 0, 0 on rank 1
    EXPECT_EQ(report.at("alignment")[1].at("anchors"), 2);
    EXPECT_EQ(report.at("alignment")[1].at("method"), "collectives");
    const ProgramRun csv = dir.ringside("trace inspect r0.json --format csv");
    EXPECT_THAT(csv.out, HasSubstr("rank,step,begin_s,length_s"));
}

TEST(TraceInspect, ReadsABrokenFileWithAReportAndRefusesNone) {
    const WorkDir dir;
    const std::string whole = rankTrace(0, 0, 60);
    dir.write("cut.json", whole.substr(0, whole.size() - 100));
    const ProgramRun cut = dir.ringside("trace inspect cut.json");
    EXPECT_EQ(cut.exitCode, 0);
    EXPECT_THAT(cut.out, HasSubstr("the file ends within an event"));
    dir.write("none.json", "not a trace");
    const ProgramRun none = dir.ringside("trace inspect none.json");
    EXPECT_EQ(none.exitCode, 3);
    EXPECT_THAT(none.err, HasSubstr("none.json: is no JSON"));
    EXPECT_EQ(dir.ringside("trace inspect").exitCode, 2);
    EXPECT_EQ(dir.ringside("trace look none.json").exitCode, 2);
    EXPECT_EQ(dir.ringside("trace inspect none.json --out x.json").exitCode, 2);
}

TEST(TraceConvert, WritesOneTraceThatIsReadAgain) {
    const WorkDir dir;
    dir.write("r0.json", rankTrace(0, 0, 60));
    dir.write("r1.json", rankTrace(1, 5000, 20));
    EXPECT_EQ(dir.ringside("trace convert r0.json r1.json --out both.json").exitCode, 0);
    const json report = json::parse(dir.ringside("trace inspect both.json --json").out);
    EXPECT_EQ(report.at("read_as"), "Ringside");
    EXPECT_EQ(report.at("ranks"), (std::vector<int>{0, 1}));
    EXPECT_EQ(report.at("steps").size(), 4U);
    EXPECT_EQ(dir.ringside("trace convert r0.json r1.json --out one.json --rank 7").exitCode, 2);
    EXPECT_EQ(dir.ringside("trace convert r0.json").exitCode, 2);
}

TEST(TraceDiff, EndsWithOneWhereStepsDifferByMoreThanTheLimit) {
    const WorkDir dir;
    dir.write("a.json", rankTrace(0, 0, 60));
    dir.write("b.json", rankTrace(0, 0, 60, 48));
    const ProgramRun text = dir.ringside("trace diff a.json b.json");
    EXPECT_EQ(text.exitCode, 0);
    EXPECT_THAT(text.out, HasSubstr("gemm"));
    EXPECT_THAT(text.out, HasSubstr("+20.0 %"));
    const json diff = json::parse(dir.ringside("trace diff a.json b.json --json").out);
    EXPECT_EQ(diff.at("joined_by"), "names");
    EXPECT_THAT(schemaFaults(schema("trace-diff.schema.json"), diff), IsEmpty());
    EXPECT_EQ(diff.at("steps_aligned"), 2);
    EXPECT_EQ(dir.ringside("trace diff a.json b.json --fail-above 5%").exitCode, 0) << "marked steps are as long as before";
    // Predictions: the same step with a slower network.
    EXPECT_EQ(dir.ringside("predict --model gpt2 --device a100-80gb-sxm --devices 16 --network ib-hdr --trace fast.json -o f.txt").exitCode, 0);
    EXPECT_EQ(dir.ringside("predict --model gpt2 --device a100-80gb-sxm --devices 16 --network ethernet-25g --trace slow.json -o s.txt").exitCode, 0);
    EXPECT_EQ(dir.ringside("trace diff fast.json slow.json --fail-above 5%").exitCode, 1);
    const json predicted = json::parse(dir.ringside("trace diff fast.json slow.json --json").out);
    EXPECT_EQ(predicted.at("joined_by"), "task ids");
    EXPECT_THAT(schemaFaults(schema("trace-diff.schema.json"), predicted), IsEmpty());
    EXPECT_THAT(schemaFaults(schema("trace-report.schema.json"), json::parse(dir.ringside("trace inspect fast.json --json").out)), IsEmpty());
    EXPECT_EQ(dir.ringside("trace diff fast.json fast.json --fail-above 0%").exitCode, 0);
    EXPECT_EQ(dir.ringside("trace diff fast.json --fail-above 5%").exitCode, 2);
    EXPECT_EQ(dir.ringside("trace diff fast.json slow.json --fail-above much").exitCode, 2);
}

}  // namespace
}  // namespace ringside
