// How the program looks for its CUDA module, and what it says when there is none or a wrong one. Needs no CUDA.
#include <cstdio>
#include <fstream>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda_module.h"
#include "kernels/device.h"

namespace ringside {
namespace {

using testing::HasSubstr;

TEST(CudaModule, IsLookedForBesideTheProgramAndWhereItIsInstalled) {
    const std::vector<std::string> places = cudaModulePlaces("", std::nullopt, "/opt/ringside/bin");
    ASSERT_EQ(places.size(), 2U);
    EXPECT_EQ(places[0], "/opt/ringside/bin/ringside-cuda.so");
    EXPECT_THAT(places[1], testing::StartsWith("/opt/ringside/lib"));
    EXPECT_THAT(places[1], testing::EndsWith("/ringside/ringside-cuda.so"));
}

TEST(CudaModule, AGivenFileWinsOverTheVariableAndTheVariableOverTheRest) {
    EXPECT_EQ(cudaModulePlaces("given.so", "variable.so", "/bin"), std::vector<std::string>{"given.so"});
    EXPECT_EQ(cudaModulePlaces("", "variable.so", "/bin"), std::vector<std::string>{"variable.so"});
    EXPECT_EQ(cudaModulePlaces("", "", "/bin").size(), 2U);
}

TEST(CudaModule, ThatIsNotThereIsNamedWithWhatToDo) {
    const Result<std::unique_ptr<ComputeDevice>> device = makeCudaDevice(0, "there/is/no/such.so");
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, ErrorCode::MissingCapability);
    EXPECT_THAT(device.error().message, HasSubstr("looked for there/is/no/such.so"));
    EXPECT_THAT(device.error().message, HasSubstr("RINGSIDE_CUDA_MODULE"));
}

TEST(CudaModule, ThatIsNoLibraryIsRefusedWithTheLoadersReason) {
    const std::string path = testing::TempDir() + "no_library.so";
    std::ofstream(path) << "this is text";
    const Result<std::unique_ptr<ComputeDevice>> device = makeCudaDevice(0, path);
    std::remove(path.c_str());
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, ErrorCode::MissingCapability);
    EXPECT_THAT(device.error().toString(), HasSubstr("cannot be loaded"));
}

TEST(CudaModule, ThatIsAnotherLibraryIsRefused) {
    // Where the C library lies: a library for certain, and not ours.
    Dl_info found{};
    ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::puts), &found), 0);
    const Result<std::unique_ptr<ComputeDevice>> device = makeCudaDevice(0, found.dli_fname);
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, ErrorCode::MissingCapability);
    EXPECT_THAT(device.error().message, HasSubstr("is not Ringside's CUDA module"));
}

}  // namespace
}  // namespace ringside
