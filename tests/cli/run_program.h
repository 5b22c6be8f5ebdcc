// Runs the real program, as a shell would, and keeps what it said.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ringside {

struct ProgramRun {
    int exitCode = -1;  ///< 128 + n when signal n ended it
    std::string out, err;
};

/// A directory of one test's own, empty at first and removed at its end. The program runs in it.
class WorkDir {
public:
    WorkDir();
    ~WorkDir();
    WorkDir(const WorkDir&) = delete;
    WorkDir& operator=(const WorkDir&) = delete;

    const std::filesystem::path& path() const { return path_; }
    void write(const std::string& name, const std::string& content) const;
    std::string read(const std::string& name) const;
    /// Names of what lies in it, sorted; what the helper itself made is left out.
    std::vector<std::string> files() const;

    /// ringside with these arguments; `input` is its standard input.
    ProgramRun ringside(const std::vector<std::string>& arguments, const std::string& input = {}) const;
    /// The same with the words of one line (no quoting).
    ProgramRun ringside(const std::string& line) const;
    /// A line for /bin/sh in which `ringside` is the program.
    ProgramRun shell(const std::string& line) const;

private:
    ProgramRun run(const std::vector<std::string>& command, const std::string& input) const;
    std::filesystem::path path_;
};

}  // namespace ringside
