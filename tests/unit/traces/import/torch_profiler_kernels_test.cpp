#include "traces/import/torch_profiler_kernels.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

namespace ringside {
namespace {

std::string trace(const std::string& events, const std::string& before = "") { return "{\"schemaVersion\": 1, " + before + "\"traceEvents\": [" + events + "], \"traceName\": \"x\"}"; }

const std::string kMm = R"({"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":7,"tid":7,"ts":100.0,"dur":50.0,
    "args":{"External id":11,"Input Dims":[[32],[16,64],[64,32],[],[]],"Input type":["float","float","float","",""]}})";

TEST(TorchProfile, OnACpuTheOperatorItselfIsTheSample) {
    const ProfiledKernels kernels = parseTorchProfile(trace(kMm), "t.json").value();
    EXPECT_FALSE(kernels.hasDevice);
    ASSERT_EQ(kernels.gemms.size(), 1U);
    const ProfiledGemm& gemm = kernels.gemms[0];
    EXPECT_EQ(gemm.op, "aten::addmm");
    EXPECT_EQ(gemm.dtype, "fp32");
    EXPECT_EQ(gemm.m, 16);
    EXPECT_EQ(gemm.k, 64);
    EXPECT_EQ(gemm.n, 32);
    EXPECT_DOUBLE_EQ(gemm.seconds, 50e-6);
}

TEST(TorchProfile, OnADeviceTheKernelIsJoinedByExternalId) {
    const std::string kernel = R"({"ph":"X","cat":"kernel","name":"sm80_gemm","pid":0,"tid":7,"ts":130.0,"dur":12.5,"args":{"External id":11,"correlation":99}})";
    const ProfiledKernels kernels = parseTorchProfile(trace(kernel + "," + kMm), "t.json").value();
    EXPECT_TRUE(kernels.hasDevice);
    ASSERT_EQ(kernels.gemms.size(), 1U);
    EXPECT_DOUBLE_EQ(kernels.gemms[0].seconds, 12.5e-6);
}

TEST(TorchProfile, InOlderTracesByTheLaunchWithinTheOperator) {
    // The kernel's External id is its correlation; the launch at 120 lies in the operator's 100–150, that at 160 does not.
    const std::string launch = R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":120.0,"dur":5,"args":{"correlation":99}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":160.0,"dur":5,"args":{"correlation":100}})";
    const std::string kernel = R"({"ph":"X","cat":"kernel","name":"splitK","pid":0,"tid":7,"ts":130,"dur":10,"args":{"External id":99,"correlation":99}},
        {"ph":"X","cat":"kernel","name":"relu","pid":0,"tid":7,"ts":170,"dur":3,"args":{"External id":100,"correlation":100}})";
    const ProfiledKernels kernels = parseTorchProfile(trace(kMm + "," + launch + "," + kernel), "t.json").value();
    ASSERT_EQ(kernels.gemms.size(), 1U);
    EXPECT_DOUBLE_EQ(kernels.gemms[0].seconds, 10e-6);
}

TEST(TorchProfile, BatchedProductsHaveTheirBatch) {
    const ProfiledKernels kernels = parseTorchProfile(trace(R"({"ph":"X","cat":"cpu_op","name":"aten::bmm","pid":7,"tid":7,"ts":1,"dur":2,
        "args":{"Input Dims":[[8,16,32],[8,32,64]],"Input type":["c10::BFloat16","c10::BFloat16"]}})"), "t.json").value();
    ASSERT_EQ(kernels.gemms.size(), 1U);
    EXPECT_EQ(kernels.gemms[0].batch, 8);
    EXPECT_EQ(kernels.gemms[0].dtype, "bf16");
}

TEST(TorchProfile, NcclKernelsSayWhatTheyMove) {
    const std::string events = R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL","pid":0,"tid":20,"ts":1,"dur":100,
            "args":{"Collective name":"_allgather_base","In msg nelems":256,"Out msg nelems":1024,"Group size":4,"dtype":"BFloat16","Seq":3}},
        {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","pid":0,"tid":20,"ts":200,"dur":50,"args":{"External id":42}},
        {"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":7,"tid":7,"ts":1,"dur":1,
            "args":{"External id":42,"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":"2","dtype":"Float"}},
        {"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":20,"ts":300,"dur":5,"args":{}})";
    const ProfiledKernels kernels = parseTorchProfile(trace(events), "t.json").value();
    ASSERT_EQ(kernels.collectives.size(), 2U);
    EXPECT_EQ(kernels.collectives[0].op, "all_gather");
    EXPECT_EQ(kernels.collectives[0].bytes, 2048);
    EXPECT_EQ(kernels.collectives[0].ranks, 4);
    EXPECT_EQ(kernels.collectives[1].op, "all_reduce") << "announced later in the file";
    EXPECT_EQ(kernels.collectives[1].bytes, 4000);
    EXPECT_EQ(kernels.collectives[1].ranks, 2);
    ASSERT_EQ(kernels.notes.all().size(), 1U);
    EXPECT_EQ(kernels.notes.all()[0].where, "t.json: traceEvents[3]");
}

TEST(TorchProfile, GloosAnnotationsCarryTheirInputs) {
    const std::string events = R"({"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":1,"tid":2,"ts":1.5,"dur":49318.84,
            "args":{"Input type":["float"],"Input Dims":[[1050368]]}},
        {"ph":"X","cat":"user_annotation","name":"gloo:all_gather","pid":1,"tid":2,"ts":2.5,"dur":10,"args":{"Input type":["float"],"Input Dims":[[100]]}},
        {"ph":"X","cat":"user_annotation","name":"gloo:barrier","pid":1,"tid":2,"ts":3,"dur":1,"args":{}})";
    const ProfiledKernels kernels = parseTorchProfile(trace(events, R"("distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}, )"), "t.json").value();
    ASSERT_EQ(kernels.collectives.size(), 2U);
    EXPECT_EQ(kernels.collectives[0].backend, "gloo");
    EXPECT_EQ(kernels.collectives[0].bytes, 4 * 1050368);
    EXPECT_EQ(kernels.collectives[0].ranks, 2);
    EXPECT_NEAR(kernels.collectives[0].seconds, 0.04931884, 1e-12);
    EXPECT_EQ(kernels.collectives[1].bytes, 2 * 400) << "the input is one rank's part";
    EXPECT_EQ(kernels.notes.total(), 1);
}

TEST(TorchProfile, ShapesThatAreMissingOrOffAreCounted) {
    const std::string events = R"({"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":2,"args":{}},
        {"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":2,"args":{}},
        {"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":2,"args":{"Input Dims":[[2,3],[4,5]],"Input type":["float","float"]}}, 7, null)";
    const ProfiledKernels kernels = parseTorchProfile(trace(events), "t.json").value();
    EXPECT_TRUE(kernels.gemms.empty());
    EXPECT_EQ(kernels.events, 5);
    ASSERT_EQ(kernels.notes.all().size(), 2U);
    EXPECT_EQ(kernels.notes.all()[0].count, 2);
}

TEST(TorchProfile, AFileThatBreaksOffIsUsedUpToThere) {
    const ProfiledKernels kernels = parseTorchProfile("{\"traceEvents\": [" + kMm + ", {\"ph\": \"X\", \"na", "t.json").value();
    EXPECT_EQ(kernels.gemms.size(), 1U);
    ASSERT_EQ(kernels.notes.all().size(), 1U);
    EXPECT_NE(kernels.notes.all()[0].what.find("breaks off"), std::string::npos);
}

TEST(TorchProfile, WhatIsNoTraceIsRefused) {
    EXPECT_FALSE(parseTorchProfile("", "t.json"));
    EXPECT_FALSE(parseTorchProfile("hello", "t.json"));
    EXPECT_FALSE(parseTorchProfile("{\"a\": [1, 2]}", "t.json"));
    EXPECT_FALSE(parseTorchProfile("[1, 2]", "t.json"));
}

TEST(TorchProfile, ACompressedFileIsReadLikeAPlainOne) {
    const auto folder = std::filesystem::temp_directory_path();
    const std::string path = (folder / ("ringside_trace_" + std::to_string(getpid()) + ".json.gz")).string();
    const std::string text = trace(kMm);
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    const auto read = readTorchProfile(path);
    ASSERT_TRUE(read) << read.error().toString();
    EXPECT_EQ(read->gemms.size(), 1U);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    EXPECT_FALSE(readTorchProfile(path)) << "cut in half";
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace ringside
