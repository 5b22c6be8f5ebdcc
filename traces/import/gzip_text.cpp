#include "traces/import/gzip_text.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <zlib.h>

namespace ringside {

Result<std::string> readMaybeGzip(const std::string& path) {
    errno = 0;
    const auto close = [](gzFile_s* f) { gzclose(f); };
    const std::unique_ptr<gzFile_s, decltype(close)> file(gzopen(path.c_str(), "rb"), close);  // reads plain files as they are
    if (!file) return badInput(path, fmt::format("cannot be opened: {}", errno ? std::strerror(errno) : "out of memory"));
    gzbuffer(file.get(), 1 << 18);
    std::string text, chunk(1 << 20, '\0');
    while (true) {
        const int n = gzread(file.get(), chunk.data(), static_cast<unsigned>(chunk.size()));
        if (n < 0) {
            int code = 0;
            const char* reason = gzerror(file.get(), &code);
            return badInput(path, fmt::format("cannot be read: {}", code == Z_ERRNO ? std::strerror(errno) : reason));
        }
        if (n == 0) break;
        text.append(chunk, 0, static_cast<std::size_t>(n));
    }
    int code = Z_OK;
    gzerror(file.get(), &code);
    if (code == Z_BUF_ERROR) return badInput(path, "the compressed data ends too early; the file is incomplete");
    return text;
}

}  // namespace ringside
