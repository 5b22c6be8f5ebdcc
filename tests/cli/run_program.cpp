#include "tests/cli/run_program.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ringside {
namespace fs = std::filesystem;
namespace {

const char* const kOut = ".captured-out";
const char* const kErr = ".captured-err";
const char* const kIn = ".given-in";

std::string slurp(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

WorkDir::WorkDir() {
    std::string name = (fs::temp_directory_path() / "ringside-cli-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw fs::filesystem_error("cannot make a directory for a test", name, std::make_error_code(std::errc::io_error));
    path_ = name;
}

WorkDir::~WorkDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

void WorkDir::write(const std::string& name, const std::string& content) const { std::ofstream(path_ / name, std::ios::binary) << content; }
std::string WorkDir::read(const std::string& name) const { return slurp(path_ / name); }

std::vector<std::string> WorkDir::files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) {
        const std::string name = entry.path().filename();
        if (name != kOut && name != kErr && name != kIn) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

ProgramRun WorkDir::ringside(const std::vector<std::string>& arguments, const std::string& input) const {
    std::vector<std::string> command = {RINGSIDE_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command, input);
}

ProgramRun WorkDir::ringside(const std::string& line) const {
    std::istringstream words(line);
    return ringside(std::vector<std::string>{std::istream_iterator<std::string>(words), {}});
}

ProgramRun WorkDir::shell(const std::string& line) const {
    return run({"/bin/bash", "-c", std::string("set -o pipefail; ringside() { '") + RINGSIDE_PROGRAM + "' \"$@\"; }; " + line}, {});
}

ProgramRun WorkDir::run(const std::vector<std::string>& command, const std::string& input) const {
    write(kIn, input);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const std::string in = path_ / kIn, out = path_ / kOut, err = path_ / kErr;
    const pid_t child = fork();
    if (child == 0) {
        const int inFd = open(in.c_str(), O_RDONLY), outFd = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
                  errFd = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (inFd < 0 || outFd < 0 || errFd < 0 || dup2(inFd, 0) < 0 || dup2(outFd, 1) < 0 || dup2(errFd, 2) < 0 || chdir(path_.c_str()) != 0) _exit(126);
        execv(argv[0], argv.data());
        _exit(127);
    }
    int status = 0;
    EXPECT_GT(child, 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    ProgramRun result;
    result.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = slurp(out);
    result.err = slurp(err);
    return result;
}

}  // namespace ringside
