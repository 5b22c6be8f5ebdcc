// The real program while it runs: its ranks can be found, stopped and killed, and what it said is there when it has ended.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/cli/run_program.h"

namespace ringside {

class BackgroundProgram {
public:
    /// ringside with these words (no quoting), in `dir`, with these environment variables besides the test's own. `name` keeps what
    /// several of them say apart.
    BackgroundProgram(const WorkDir& dir, const std::string& line, const std::map<std::string, std::string>& variables = {}, const std::string& name = "background");
    ~BackgroundProgram();  ///< kills what is left
    BackgroundProgram(const BackgroundProgram&) = delete;
    BackgroundProgram& operator=(const BackgroundProgram&) = delete;

    pid_t pid() const { return pid_; }
    /// Its child processes, in the order in which they started.
    std::vector<pid_t> children() const;
    /// Waits until it has so many children, each of which has computed for a while (so that steps are under way). Empty when the
    /// program ended before.
    std::vector<pid_t> ranksAtWork(std::size_t count);
    /// Whether the program itself has computed for a while: it is a rank under a launcher.
    bool isAtWork() const;
    /// Waits until it has ended.
    ProgramRun wait();
    bool hasEnded();

private:
    const WorkDir& dir_;
    std::string name_;
    pid_t pid_ = -1;
    int status_ = 0;
    bool ended_ = false;
};

/// Whether there is such a process (one that only waits to be reaped does not count).
bool isAlive(pid_t pid);

/// A TCP port of loopback that was free a moment ago.
int freePort();

}  // namespace ringside
