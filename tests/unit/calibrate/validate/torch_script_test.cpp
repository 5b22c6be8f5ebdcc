#include "calibrate/validate/torch_script.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "calibrate/ranks/run_command.h"

namespace ringside {
namespace {

TEST(TorchScript, IsPythonThatCompiles) {
    const Result<std::string> python = findProgram("python3");
    if (!python) GTEST_SKIP() << "python3 is not installed";
    const std::filesystem::path path = std::filesystem::temp_directory_path() / ("ringside-script-" + std::to_string(::getpid()) + ".py");
    std::ofstream(path) << torchScript();
    const Result<std::string> compiled = runCommand({*python, "-c", "import sys; compile(open(sys.argv[1]).read(), 'train.py', 'exec')", path.string()});
    std::filesystem::remove(path);
    EXPECT_TRUE(compiled) << compiled.error().toString();
}

}  // namespace
}  // namespace ringside
