#include "traces/export/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

namespace ringside {
namespace {

tl::unexpected<Error> cannotWrite(const std::string& path, const char* doing, int reason) {
    return failure(ErrorCode::RuntimeFailure, path,
                   fmt::format("cannot write the file: {} failed ({}); check that the directory exists, is writable and has room", doing,
                               std::strerror(reason)));
}

/// 0, or the errno of the write that failed.
int writeAll(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(file, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

/// What a plain new file would get (the umask can only be read by setting it), or what the old file has.
mode_t modeFor(const std::string& path) {
    struct stat existing {};
    if (::stat(path.c_str(), &existing) == 0) return existing.st_mode & 07777;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666 & ~mask;
}

}  // namespace

Result<void> atomicWriteFile(const std::string& path, std::string_view text) {
    struct stat existing {};
    if (::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
        if (S_ISDIR(existing.st_mode)) return cannotWrite(path, "opening", EISDIR);
        // A pipe or a device (/dev/stdout) cannot be replaced; it is written straight through.
        const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (file < 0) return cannotWrite(path, "opening", errno);
        const int reason = writeAll(file, text);
        ::close(file);
        if (reason != 0) return cannotWrite(path, "writing", reason);
        return {};
    }

    std::string temporary = path + ".XXXXXX";
    const int file = ::mkstemp(temporary.data());
    if (file < 0) return cannotWrite(path, "creating a temporary file beside it", errno);
    const char* doing = "writing";
    int reason = writeAll(file, text);
    if (reason == 0 && ::fchmod(file, modeFor(path)) != 0) doing = "setting permissions", reason = errno;
    if (::close(file) != 0 && reason == 0) doing = "closing", reason = errno;
    if (reason == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) doing = "renaming", reason = errno;
    if (reason != 0) {
        ::unlink(temporary.c_str());
        return cannotWrite(path, doing, reason);
    }
    return {};
}

}  // namespace ringside
