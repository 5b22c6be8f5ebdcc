#include "calibrate/ranks/launch.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrate/ranks/tcp_socket.h"
#include "model/base/check.h"

namespace ringside {
namespace {

using Clock = std::chrono::steady_clock;

// A rank whose neighbour is killed may be seen to fail before the neighbour is seen to be dead: wait this long for the cause.
constexpr std::chrono::milliseconds kSettle(150);
constexpr int kPollMs = 100;
constexpr int kInternalError = 70;

/// Signals that end a run are read from a descriptor while the ranks live, and go their usual way before and after.
class SignalsOnDescriptor {
public:
    SignalsOnDescriptor() {
        sigset_t set;
        sigemptyset(&set);
        for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
        CHECK(::pthread_sigmask(SIG_BLOCK, &set, &before_) == 0);
        // Were it ignored, the kernel would reap the ranks before we learn how they ended.
        struct sigaction byDefault {};
        byDefault.sa_handler = SIG_DFL;
        CHECK(::sigaction(SIGCHLD, &byDefault, &childBefore_) == 0);
        descriptor_ = Socket(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
        CHECK(descriptor_.open());
    }
    ~SignalsOnDescriptor() {
        ::sigaction(SIGCHLD, &childBefore_, nullptr);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    int descriptor() const { return descriptor_.get(); }
    /// A signal to stop, if one has come.
    std::optional<int> takeStop() {
        std::optional<int> stop;
        signalfd_siginfo info{};
        while (::read(descriptor_.get(), &info, sizeof(info)) == sizeof(info)) {
            if (info.ssi_signo != SIGCHLD) stop = static_cast<int>(info.ssi_signo);
        }
        return stop;
    }
    /// In a child: as it was before.
    void restoreInChild() {
        for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
        descriptor_ = Socket();
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

private:
    sigset_t before_{};
    struct sigaction childBefore_ {};
    Socket descriptor_;
};

struct Child {
    pid_t pid = -1;
    Socket pipe;  ///< the end to read from
    std::string handedBack;
    bool alive = false;
    int status = 0;    ///< of waitpid(), when not alive
    int signalled = 0;  ///< the strongest signal that we sent
    RankProgress seen;
    Clock::time_point lastChange;
    Clock::time_point endedAt;
};

bool endedWell(const Child& child) { return WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0; }
/// Ended by a signal that is not ours.
bool wasKilled(const Child& child) {
    if (child.alive || !WIFSIGNALED(child.status)) return false;
    const int signal = WTERMSIG(child.status);
    return signal != child.signalled && !(signal == SIGTERM && child.signalled == SIGKILL);
}
/// Failed by itself.
bool failedAlone(const Child& child) { return !child.alive && !endedWell(child) && (WIFEXITED(child.status) || wasKilled(child)); }

std::string lastTask(const RankProgress& progress) {
    if (progress.count == 0) return "it had not begun its first task";
    if (progress.step < 0) return fmt::format("its last task was '{}'", progress.task);
    return fmt::format("its last task was '{}' (step {})", progress.task, progress.step);
}

/// Whether somebody stopped the process (SIGSTOP, a debugger): then it is the one that the others wait for.
bool isStopped(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(file, text);
    const std::size_t name = text.rfind(") ");  // the name before it may hold anything
    return name != std::string::npos && name + 2 < text.size() && (text[name + 2] == 'T' || text[name + 2] == 't');
}

bool writeAll(int descriptor, const std::string& bytes) {
    std::size_t written = 0;
    while (written < bytes.size()) {
        const ssize_t count = ::write(descriptor, bytes.data() + written, bytes.size() - written);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        written += static_cast<std::size_t>(count);
    }
    return true;
}

/// The life of a rank's process.
[[noreturn]] void runRank(LocalRank& rank, ProgressBoard& board, const LaunchOptions& options, const RankBody& body, int pipe) {
    int code = 0;
    try {
        Result<std::string> result = [&]() -> Result<std::string> {
            if (options.link != nullptr) TRY_VOID(options.link->enter(rank.env().rank / options.ranksPerNode));
            return body(rank);
        }();
        if (!result) {
            board.reportFailure(rank.env().rank, result.error());
            code = static_cast<int>(result.error().code);
        } else if (!writeAll(pipe, *result)) {
            board.reportFailure(rank.env().rank, {ErrorCode::RuntimeFailure, "cannot hand back the result", {}});
            code = static_cast<int>(ErrorCode::RuntimeFailure);
        }
    } catch (const std::exception& exception) {
        fmt::print(stderr, "rank {}: internal error: {}\n", rank.env().rank, exception.what());
        code = kInternalError;
    }
    // Not exit(): destructors of statics and other parents' buffers are not this child's to run.
    std::fflush(stdout);
    std::fflush(stderr);
    ::_exit(code);
}

class Launch {
public:
    Launch(int ranks, const LaunchOptions& options, const RankBody& body, ProgressBoard board)
        : options_(options), body_(body), board_(std::move(board)), children_(static_cast<std::size_t>(ranks)) {}
    ~Launch() { endAllNow(); }

    Result<std::vector<std::string>> run() {
        TRY_VOID(start());
        while (std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.alive; })) watch();
        if (failure_) return tl::unexpected<Error>(*failure_);
        if (std::any_of(children_.begin(), children_.end(), failedAlone)) return tl::unexpected<Error>(blame());
        std::vector<std::string> results;
        for (Child& child : children_) results.push_back(std::move(child.handedBack));
        return results;
    }

private:
    Result<void> start() {
        const std::string address = options_.link != nullptr ? options_.link->address(0) : "127.0.0.1";
        Socket listening;
        int port = options_.port != 0 ? options_.port : kDefaultMasterPort;
        if (options_.link == nullptr) {  // a namespace of its own has no port taken
            TRY(listening, listenAt(address, options_.port));
            port = portOf(listening);
        }
        std::vector<Socket> ends;  // to write to
        for (Child& child : children_) {
            int pair[2] = {-1, -1};
            if (::pipe2(pair, O_CLOEXEC) != 0) return failure(ErrorCode::RuntimeFailure, "", fmt::format("cannot make a pipe: {}", std::strerror(errno)));
            child.pipe = Socket(pair[0]);
            ends.emplace_back(pair[1]);
            ::fcntl(pair[0], F_SETFL, O_NONBLOCK);
        }
        std::fflush(nullptr);  // or each child would print what is still in the buffers
        const pid_t parent = ::getpid();
        for (std::size_t i = 0; i < children_.size(); ++i) {
            const pid_t pid = ::fork();
            if (pid < 0) {
                return failure(ErrorCode::RuntimeFailure, "--local-ranks",
                               fmt::format("cannot start rank {} of {}: {}", i, children_.size(), std::strerror(errno)));
            }
            if (pid == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (::getppid() != parent) ::_exit(kInternalError);  // it died before we asked to be told
                signals_.restoreInChild();
                ::signal(SIGPIPE, SIG_IGN);
                for (Child& other : children_) other.pipe = Socket();
                for (std::size_t j = 0; j < ends.size(); ++j) {
                    if (j != i) ends[j] = Socket();
                }
                if (i != 0) listening = Socket();
                const int rank = static_cast<int>(i);
                const int ranks = static_cast<int>(children_.size()), localSize = options_.link != nullptr ? options_.ranksPerNode : ranks;
                LocalRank self({rank, ranks, rank % localSize, localSize, address, port, "local", listening.release()}, board_);
                runRank(self, board_, options_, body_, ends[i].get());
            }
            children_[i].pid = pid;
            children_[i].alive = true;
            children_[i].lastChange = Clock::now();
        }
        return {};
    }

    /// One look at everything; returns after at most kPollMs.
    void watch() {
        std::vector<pollfd> entries = {{signals_.descriptor(), POLLIN, 0}};
        for (const Child& child : children_) entries.push_back({child.alive ? child.pipe.get() : -1, POLLIN, 0});
        ::poll(entries.data(), entries.size(), kPollMs);
        for (Child& child : children_) {
            readPipe(child);
            reap(child);
        }
        if (const std::optional<int> stop = signals_.takeStop(); stop && !stopping_) {
            failure_ = Error{ErrorCode::RuntimeFailure, fmt::format("stopped by {}; all ranks were ended", *stop == SIGINT ? "Ctrl-C" : ::strsignal(*stop)), {}};
            beginToStop();
        }
        if (!stopping_) lookForFailures();
        if (!stopping_) lookForHangs();
        if (stopping_ && Clock::now() - stoppedAt_ >= options_.grace) signalAll(SIGKILL);
    }

    void readPipe(Child& child) {
        if (!child.pipe.open()) return;
        char buffer[65536];
        for (;;) {
            const ssize_t count = ::read(child.pipe.get(), buffer, sizeof(buffer));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return;
            if (count == 0) {
                child.pipe = Socket();
                return;
            }
            child.handedBack.append(buffer, static_cast<std::size_t>(count));
            child.lastChange = Clock::now();
        }
    }

    void reap(Child& child) {
        if (!child.alive || ::waitpid(child.pid, &child.status, WNOHANG) != child.pid) return;
        child.alive = false;
        child.endedAt = Clock::now();
        readPipe(child);  // what it wrote after our last look
    }

    void lookForFailures() {
        const auto failed = std::find_if(children_.begin(), children_.end(), failedAlone);
        if (failed == children_.end()) return;
        const bool causeIsKnown = std::any_of(children_.begin(), children_.end(), wasKilled);
        if (!causeIsKnown && Clock::now() - failed->endedAt < kSettle) return;
        stillThere_ = whoIsStillThere();
        beginToStop();
    }

    /// A rank that gave up waiting is not the one that hangs: that one is among those still there.
    std::string whoIsStillThere() const {
        std::string list;
        for (std::size_t i = 0; i < children_.size(); ++i) {
            if (!children_[i].alive) continue;
            list += fmt::format("; rank {} {}: {}", i, isStopped(children_[i].pid) ? "is stopped (SIGSTOP, or a debugger)" : "was still there", lastTask(board_.read(static_cast<int>(i))));
        }
        return list;
    }

    void lookForHangs() {
        if (options_.timeout.count() == 0) return;
        const Clock::time_point now = Clock::now();
        std::vector<std::size_t> stalled;
        std::uint64_t fewest = ~std::uint64_t{0};
        for (std::size_t i = 0; i < children_.size(); ++i) {
            Child& child = children_[i];
            if (!child.alive) continue;
            RankProgress progress = board_.read(static_cast<int>(i));
            if (progress.count != child.seen.count) {
                child.seen = std::move(progress);
                child.lastChange = now;
            }
            if (now - child.lastChange >= options_.timeout) stalled.push_back(i);
            if (now - child.lastChange >= options_.timeout / 2) fewest = std::min(fewest, child.seen.count);
        }
        if (stalled.empty()) return;
        // Those that wait for the one that hangs stand still as well, but have come at least as far, and nobody stopped them.
        const bool anyStopped = std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.alive && isStopped(child.pid); });
        std::string behind, waiting;
        for (std::size_t i = 0; i < children_.size(); ++i) {
            const Child& child = children_[i];
            if (!child.alive) continue;
            const bool stopped = isStopped(child.pid), isGuilty = anyStopped ? stopped : child.seen.count == fewest;
            std::string& list = isGuilty ? behind : waiting;
            if (!list.empty()) list += "; ";
            list += fmt::format("rank {}{}: {}", i, !isGuilty ? "" : stopped ? " is stopped (SIGSTOP, or a debugger)" : " is behind", lastTask(child.seen));
        }
        failure_ = Error{ErrorCode::RuntimeFailure,
                         fmt::format("no progress for {} ms, so the run was ended. {}{}", options_.timeout.count(), behind,
                                     waiting.empty() ? "" : fmt::format(". The others: {}", waiting)), {}};
        beginToStop();
    }

    void beginToStop() {
        stopping_ = true;
        stoppedAt_ = Clock::now();
        signalAll(SIGTERM);
        for (const Child& child : children_)
            if (child.alive) ::kill(child.pid, SIGCONT);  // one that is stopped would not see it before
    }

    void signalAll(int signal) {
        for (Child& child : children_) {
            if (!child.alive || child.signalled == signal) continue;
            child.signalled = signal;
            ::kill(child.pid, signal);
        }
    }

    void endAllNow() {
        signalAll(SIGKILL);
        for (Child& child : children_) {
            if (child.alive) ::waitpid(child.pid, &child.status, 0);
            child.alive = false;
        }
    }

    /// Whose fault it is: one that was killed; else one that left without a word; else the first that gave up.
    Error blame() const {
        std::optional<std::size_t> guilty;
        const auto weight = [&](std::size_t i) {
            if (wasKilled(children_[i])) return 0;
            return board_.failed(static_cast<int>(i)) ? 2 : 1;
        };
        for (std::size_t i = 0; i < children_.size(); ++i) {
            if (!failedAlone(children_[i])) continue;
            if (!guilty || weight(i) < weight(*guilty) ||
                (weight(i) == 2 && weight(*guilty) == 2 &&
                 board_.failureOf(static_cast<int>(i)).atNs < board_.failureOf(static_cast<int>(*guilty)).atNs))
                guilty = i;
        }
        const Child& child = children_[*guilty];
        const int rank = static_cast<int>(*guilty);
        const std::string task = lastTask(board_.read(rank));
        if (wasKilled(child)) {
            const int signal = WTERMSIG(child.status);
            return {ErrorCode::RuntimeFailure,
                    fmt::format("rank {} was killed by signal {} ({}); {}{}", rank, signal, ::strsignal(signal), task,
                                signal == SIGKILL ? "; if nobody killed it, the machine ran out of memory (see dmesg)" : ""), {}};
        }
        if (board_.failed(rank)) {
            Error error = board_.failureOf(rank).error;
            // What is wrong with the request or the build is so on every rank.
            if (error.code != ErrorCode::RuntimeFailure && board_.read(rank).count == 0) return error;
            const bool gaveUpWaiting = error.message.find("imed out") != std::string::npos;  // Gloo's and NCCL's word for it
            error.message = fmt::format("rank {} failed: {}; {}{}", rank, error.message, task, gaveUpWaiting ? stillThere_ : "");
            return error;
        }
        return {ErrorCode::RuntimeFailure, fmt::format("rank {} exited with code {}; {}", rank, WEXITSTATUS(child.status), task), {}};
    }

    const LaunchOptions& options_;
    const RankBody& body_;
    ProgressBoard board_;
    SignalsOnDescriptor signals_;
    std::vector<Child> children_;
    bool stopping_ = false;
    Clock::time_point stoppedAt_;
    std::optional<Error> failure_;
    std::string stillThere_;  ///< when the first failure was seen
};

}  // namespace

void LocalRank::progress(std::string_view task, std::int64_t step) {
    const std::lock_guard lock(mutex_);
    board_.report(env_.rank, task, step);
}

Result<std::vector<std::string>> launchLocalRanks(int ranks, const LaunchOptions& options, const RankBody& body) {
    CHECK(ranks > 0 && options.ranksPerNode > 0);
    TRY(ProgressBoard board, ProgressBoard::create(ranks));
    return Launch(ranks, options, body, std::move(board)).run();
}

}  // namespace ringside
