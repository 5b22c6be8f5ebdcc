#include "traces/import/nccl_tests.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

constexpr const char* kText = R"(# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on     hostA device  0 [0000:07:00] NVIDIA Test GPU
#  Rank  1 Group  0 Pid   1002 on     hostA device  1 [0000:0f:00] NVIDIA Test GPU
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    12.34    0.00    0.00      0    11.20    0.00    0.00      0
          16             4     float     sum      -1    12.50    0.00    0.00      0    11.30    0.00    0.00    N/A
          32             8     float     sum      -1    broken  0.00    0.00      0    11.30    0.00    0.00      0
          64            16     float     sum      -1    12.50
   134217728      33554432     float     sum      -1     1234  108.77  108.77      0     1233  108.85  108.85      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 20.1
#
)";

TEST(NcclTestsText, RowsAndHeaderAreRead) {
    const NcclTestsTable table = parseNcclTests(kText, "a.txt").value();
    EXPECT_EQ(table.op, "all_reduce");
    EXPECT_EQ(table.ranks, 2);
    EXPECT_EQ(table.ncclVersion, "22703");
    EXPECT_EQ(table.device, "NVIDIA Test GPU");
    ASSERT_EQ(table.rows.size(), 3U);
    EXPECT_EQ(table.rows[0].bytes, 8);
    EXPECT_EQ(table.rows[0].type, "float");
    EXPECT_DOUBLE_EQ(table.rows[0].outOfPlace->timeUs, 12.34);
    EXPECT_DOUBLE_EQ(table.rows[0].inPlace->timeUs, 11.20);
    EXPECT_FALSE(table.rows[1].inPlace->wrong.has_value());
    EXPECT_DOUBLE_EQ(table.rows[2].outOfPlace->timeUs, 1234) << "long times are printed without decimals";
    EXPECT_DOUBLE_EQ(table.rows[2].outOfPlace->busbwGbPerS, 108.77);
}

TEST(NcclTestsText, BrokenRowsAreCountedAndLocated) {
    const NcclTestsTable table = parseNcclTests(kText, "a.txt").value();
    EXPECT_EQ(table.notes.total(), 2);
    ASSERT_EQ(table.notes.all().size(), 2U);
    EXPECT_EQ(table.notes.all()[0].where, "a.txt:14");
    EXPECT_EQ(table.notes.all()[1].where, "a.txt:15");
}

TEST(NcclTestsText, ColumnsAreThoseOfTheHeader) {
    // With -I there are four more columns on each side; older releases call the check "error".
    const NcclTestsTable table = parseNcclTests(
        "# Collective test starting: alltoall_perf\n"
        "#  size  count  type  redop  root  time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%  time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%\n"
        "  1024  256  float  none  -1  10.0  0.1  0.05  0  9.0  11.0  11.0  3.0  20.0  0.1  0.05  N/A  9.0  11.0  11.0  3.0\n", "a.txt").value();
    EXPECT_EQ(table.op, "all_to_all");
    EXPECT_DOUBLE_EQ(table.rows.at(0).inPlace->timeUs, 20);
    const NcclTestsTable old = parseNcclTests("#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n"
                                              "  8  2  float  sum  5.1  0.0  0.0  1e-07  5.2  0.0  0.0  1e-07\n", "b.txt").value();
    EXPECT_DOUBLE_EQ(old.rows.at(0).outOfPlace->timeUs, 5.1);
}

TEST(NcclTestsText, WithoutRankLinesThreadsAndGpusCount) {
    const NcclTestsTable table = parseNcclTests("# nThread 1 nGpus 8 minBytes 8\n  8  2  float  sum  -1  5.1  0.0  0.0  0  5.2  0.0  0.0  0\n", "a.txt").value();
    EXPECT_EQ(table.ranks, 8);
    EXPECT_EQ(table.op, "");
}

TEST(NcclTestsText, NothingUsableIsAnError) {
    EXPECT_FALSE(parseNcclTests("", "a.txt"));
    EXPECT_FALSE(parseNcclTests("hello\n", "a.txt"));
    EXPECT_FALSE(readNcclTests("/nonexistent/file.txt"));
}

TEST(NcclTestsJson, ResultsAreRead) {
    const NcclTestsTable table = parseNcclTests(R"({"version": 3, "args": ["./build/all_gather_perf", "-b", "8"], "env": ["SECRET=1"], "nccl_version": "2.28.3",
        "config": {"validation": "true"}, "devices": [{"rank": 0, "device_info": "NVIDIA Test GPU"}, {"rank": 1}],
        "results": [{"size": 1024, "count": 256, "type": "float", "redop": "none", "root": -1,
                     "out_of_place": {"time": 10.5, "alg_bw": 0.1, "bus_bw": 0.05, "nwrong": "N/A"}, "in_place": {"time": "nan"}},
                    {"size": 2048, "out_of_place": {"time": "nan"}}, {"count": 3}]})", "a.json").value();
    EXPECT_EQ(table.op, "all_gather");
    EXPECT_EQ(table.ranks, 2);
    EXPECT_EQ(table.ncclVersion, "2.28.3");
    ASSERT_EQ(table.rows.size(), 1U);
    EXPECT_DOUBLE_EQ(table.rows[0].outOfPlace->timeUs, 10.5);
    EXPECT_FALSE(table.rows[0].inPlace);
    EXPECT_EQ(table.notes.total(), 2);
    EXPECT_EQ(table.notes.all()[0].where, "a.json: results[1]");
}

TEST(NcclTestsJson, OtherJsonIsRefused) {
    EXPECT_FALSE(parseNcclTests("{\"a\": 1}", "a.json"));
    EXPECT_FALSE(parseNcclTests("{broken", "a.json"));
}

TEST(NcclTestsNames, ProgramsAndCollectivesAreOneWord) {
    EXPECT_EQ(collectiveOfNcclTests("reduce_scatter_perf"), "reduce_scatter");
    EXPECT_EQ(collectiveOfNcclTests("/opt/x/sendrecv_perf"), "send_recv");
    EXPECT_EQ(collectiveOfNcclTests("AllReduce"), "all_reduce");
    EXPECT_EQ(collectiveOfNcclTests("hypercube_perf"), "");
}

}  // namespace
}  // namespace ringside
