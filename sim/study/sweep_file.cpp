#include "sim/study/sweep_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace ringside {
namespace {

constexpr std::size_t kWriteBytes = 64 << 10;
constexpr auto kWriteEvery = std::chrono::milliseconds(100), kSyncEvery = std::chrono::milliseconds(1000);

tl::unexpected<Error> diskFailure(const std::string& path, const char* doing, int reason) {
    return failure(ErrorCode::RuntimeFailure, path,
                   fmt::format("{} failed ({}); check that the directory exists, is writable and has room", doing, std::strerror(reason)));
}

/// The row's number at the start of a line: {"index":12,… or 12,…; −1 if there is none.
std::int64_t indexOf(std::string_view line) {
    constexpr std::string_view kJson = "{\"index\":";
    if (line.starts_with(kJson)) line.remove_prefix(kJson.size());
    std::int64_t index = -1;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), index);
    return error == std::errc() && end != line.data() + line.size() && (*end == ',' || *end == '}') ? index : -1;
}

/// Reads the file line by line through one buffer: a finished sweep may be large.
class LineReader {
public:
    explicit LineReader(int file) : file_(file) {}

    /// The next line with its line end, or what is left without one; empty at the end. Valid until the next call.
    Result<std::string_view> next(const std::string& path) {
        line_.clear();
        while (true) {
            const std::size_t end = buffer_.find('\n', at_);
            if (end != std::string::npos) {
                line_.append(buffer_, at_, end + 1 - at_);
                at_ = end + 1;
                return std::string_view(line_);
            }
            line_.append(buffer_, at_, std::string::npos);
            at_ = 0;
            buffer_.resize(1 << 16);
            ssize_t got = 0;
            do got = ::read(file_, buffer_.data(), buffer_.size());
            while (got < 0 && errno == EINTR);
            if (got < 0) return diskFailure(path, "reading", errno);
            buffer_.resize(static_cast<std::size_t>(got));
            if (got == 0) return std::string_view(line_);
        }
    }

private:
    int file_;
    std::string buffer_, line_;
    std::size_t at_ = 0;
};

}  // namespace

Result<SweepFile> SweepFile::open(const std::string& path, const std::string& header, std::size_t totalRows, bool overwrite) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) return diskFailure(path, "opening", errno);
    SweepFile file(path, descriptor);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) return diskFailure(path, "looking at the file", errno);
    if (!S_ISREG(status.st_mode))
        return badInput(path, "is not a regular file, so a sweep could not be resumed; leave --out away to write to standard output");
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        return failure(ErrorCode::RuntimeFailure, path, "another sweep is writing this file; wait for it, or give another --out");
    if (overwrite && ::ftruncate(descriptor, 0) != 0) return diskFailure(path, "emptying the file", errno);
    TRY_VOID(file.readExisting(header, totalRows));
    return file;
}

SweepFile::SweepFile(SweepFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      rows_(other.rows_),
      waiting_(std::move(other.waiting_)),
      written_(other.written_),
      synced_(other.synced_) {}

SweepFile::~SweepFile() {
    if (file_ >= 0) ::close(file_);
}

Result<void> SweepFile::readExisting(const std::string& header, std::size_t totalRows) {
    LineReader reader(file_);
    std::string found;
    for (std::size_t lines = static_cast<std::size_t>(std::count(header.begin(), header.end(), '\n')); lines > 0; --lines) {
        TRY(const std::string_view line, reader.next(path_));
        found += line;
    }
    off_t end = 0;
    if (found == header) {
        end = static_cast<off_t>(header.size());
        while (true) {
            TRY(const std::string_view line, reader.next(path_));
            if (line.empty() || line.back() != '\n') break;  // the end, or a line that was cut: made again
            if (rows_ >= totalRows || indexOf(line) != static_cast<std::int64_t>(rows_))
                return badInput(path_, fmt::format("its row {} is not row {} of this grid: something else has changed the file; give another --out, "
                                                   "or --overwrite to start anew",
                                                   rows_ + 1, rows_));
            ++rows_;
            end += static_cast<off_t>(line.size());
        }
    } else if (!header.starts_with(found)) {  // a header that was cut short is no rows
        const bool sweep = found.starts_with("{\"format\":\"ringside-sweep\"") || found.starts_with("# ringside-sweep");
        return badInput(
            path_, sweep ? "holds the rows of another grid (or of another version of the program); give another --out, or --overwrite to start anew"
                         : "exists and is not the file of a sweep; give another --out, or --overwrite to replace it");
    }
    if (::ftruncate(file_, end) != 0) return diskFailure(path_, "dropping an unfinished line", errno);
    if (::lseek(file_, end, SEEK_SET) < 0) return diskFailure(path_, "finding the end", errno);
    if (end == 0) waiting_ = header;
    return flush();
}

Result<void> SweepFile::append(const std::string& lines, std::size_t count) {
    waiting_ += lines;
    rows_ += count;
    const auto now = std::chrono::steady_clock::now();
    if (waiting_.size() < kWriteBytes && now - written_ < kWriteEvery) return {};
    written_ = now;
    return now - synced_ < kSyncEvery ? write() : flush();
}

Result<void> SweepFile::write() {
    std::string_view text = waiting_;
    while (!text.empty()) {
        const ssize_t written = ::write(file_, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            return diskFailure(path_, "writing", errno);
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    waiting_.clear();
    return {};
}

Result<void> SweepFile::flush() {
    TRY_VOID(write());
    if (::fsync(file_) != 0) return diskFailure(path_, "writing", errno);
    synced_ = std::chrono::steady_clock::now();
    return {};
}

}  // namespace ringside
