#include "calibrate/ranks/run_command.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrate/ranks/tcp_socket.h"
#include "model/base/check.h"

extern char** environ;

namespace ringside {

Result<std::string> findProgram(const std::string& name) {
    const char* path = std::getenv("PATH");
    // A user's PATH often lacks the folders of the administrator's tools.
    std::stringstream folders(std::string(path != nullptr ? path : "") + ":/usr/sbin:/sbin:/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string candidate = folder + "/" + name;
        if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return failure(ErrorCode::MissingCapability, name, fmt::format("the program '{}' was not found", name));
}

Result<std::string> runCommand(const std::vector<std::string>& command, const std::string& input) {
    CHECK(!command.empty() && input.size() <= 65536);
    const auto failed = [&](const std::string& reason) {
        return failure(ErrorCode::RuntimeFailure, fmt::format("{}", fmt::join(command, " ")), reason);
    };
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    if (::pipe2(in, O_CLOEXEC) != 0) return failed(std::strerror(errno));
    Socket inRead(in[0]), inWrite(in[1]);
    if (::pipe2(out, O_CLOEXEC) != 0) return failed(std::strerror(errno));
    Socket outRead(out[0]), outWrite(out[1]);

    // A pipe holds 64 KiB: the input is in it before the program starts.
    if (!input.empty() && ::write(inWrite.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) return failed(std::strerror(errno));
    inWrite = Socket();

    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, inRead.get(), 0);
    ::posix_spawn_file_actions_adddup2(&actions, outWrite.get(), 1);
    ::posix_spawn_file_actions_adddup2(&actions, outWrite.get(), 2);
    pid_t pid = -1;
    const int error = ::posix_spawn(&pid, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return failed(std::strerror(error));

    outWrite = Socket();
    std::string said;
    char buffer[4096];
    for (;;) {
        const ssize_t count = ::read(outRead.get(), buffer, sizeof(buffer));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        said.append(buffer, static_cast<std::size_t>(count));
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    while (!said.empty() && said.back() == '\n') said.pop_back();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return failed(said.empty() ? fmt::format("failed (status {})", status) : said);
    return said;
}

}  // namespace ringside
