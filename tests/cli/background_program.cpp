#include "tests/cli/background_program.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ringside {
namespace {

namespace fs = std::filesystem;

struct ProcessStat {
    char state = '?';
    pid_t parent = 0;
    long ticks = 0;  ///< of processor time
};

std::optional<ProcessStat> statOf(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    if (!std::getline(file, text)) return std::nullopt;
    const std::size_t name = text.rfind(") ");
    if (name == std::string::npos) return std::nullopt;
    std::istringstream fields(text.substr(name + 2));
    ProcessStat stat;
    std::string skipped;
    long user = 0, system = 0;
    fields >> stat.state >> stat.parent;
    for (int i = 0; i < 9; ++i) fields >> skipped;
    fields >> user >> system;
    stat.ticks = user + system;
    return stat;
}

// Half a second of processor time: far more than a rank with a tiny model needs until its first step.
constexpr long kTicksAtWork = 50;

}  // namespace

BackgroundProgram::BackgroundProgram(const WorkDir& dir, const std::string& line, const std::map<std::string, std::string>& variables, const std::string& name) : dir_(dir), name_(name) {
    std::istringstream text(line);
    std::vector<std::string> words = {RINGSIDE_PROGRAM};
    words.insert(words.end(), std::istream_iterator<std::string>(text), {});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = dir.path() / (name + ".out"), err = dir.path() / (name + ".err");
    pid_ = fork();
    if (pid_ == 0) {
        for (const auto& [key, value] : variables) setenv(key.c_str(), value.c_str(), 1);
        const int outFd = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), errFd = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (outFd < 0 || errFd < 0 || dup2(outFd, 1) < 0 || dup2(errFd, 2) < 0 || chdir(dir.path().c_str()) != 0) _exit(126);
        execv(argv[0], argv.data());
        _exit(127);
    }
    EXPECT_GT(pid_, 0);
}

BackgroundProgram::~BackgroundProgram() {
    if (hasEnded()) return;
    kill(pid_, SIGKILL);
    wait();
}

std::vector<pid_t> BackgroundProgram::children() const {
    std::vector<pid_t> out;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const pid_t pid = std::stoi(name);
        if (const std::optional<ProcessStat> stat = statOf(pid); stat && stat->parent == pid_) out.push_back(pid);
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<pid_t> BackgroundProgram::ranksAtWork(std::size_t count) {
    while (!hasEnded()) {
        const std::vector<pid_t> ranks = children();
        const bool atWork = std::all_of(ranks.begin(), ranks.end(), [](pid_t pid) {
            const std::optional<ProcessStat> stat = statOf(pid);
            return stat && stat->ticks >= kTicksAtWork;
        });
        if (ranks.size() == count && atWork) return ranks;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // between two looks; nothing depends on its length
    }
    return {};
}

bool BackgroundProgram::isAtWork() const {
    const std::optional<ProcessStat> stat = statOf(pid_);
    return stat && stat->ticks >= kTicksAtWork;
}

bool BackgroundProgram::hasEnded() {
    if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    return ended_;
}

ProgramRun BackgroundProgram::wait() {
    if (!ended_) {
        EXPECT_EQ(waitpid(pid_, &status_, 0), pid_);
        ended_ = true;
    }
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), dir_.read(name_ + ".out"), dir_.read(name_ + ".err")};
}

bool isAlive(pid_t pid) {
    const std::optional<ProcessStat> stat = statOf(pid);
    return stat && stat->state != 'Z' && stat->state != 'X';
}

int freePort() {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length), 0);
    close(listening);
    return ntohs(address.sin_port);
}

}  // namespace ringside
