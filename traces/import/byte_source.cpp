#include "traces/import/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <zlib.h>

namespace ringside {
namespace {

constexpr std::size_t kInputBytes = 1 << 18;
constexpr std::uint64_t kBetweenMarks = 16 << 20;
constexpr unsigned kWindow = 32768;
constexpr int kGzip = 15 + 16, kRaw = -15;  // zlib's codes for what to expect

/// A place between two blocks of the compressed data from which reading can begin again.
struct Mark {
    std::uint64_t content = 0, file = 0;
    int bits = 0;  ///< of the byte before `file` that belong to what follows
    std::vector<unsigned char> window;  ///< empty: the start of a gzip member
};

std::size_t readFully(int file, std::uint64_t offset, unsigned char* to, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        const ssize_t n = pread(file, to + done, size - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

}  // namespace

struct ByteSource::State {
    std::string path;
    int file = -1;
    std::uint64_t fileSize = 0, fileAt = 0, contentAt = 0, contentSize = 0;
    bool compressed = false, atEnd = false;
    std::string damage;
    z_stream stream{};
    bool streamIsOpen = false;
    std::vector<unsigned char> input;
    std::vector<Mark> marks;

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        if (streamIsOpen) inflateEnd(&stream);
        if (file >= 0) close(file);
    }

    std::size_t inflateSome(char* to, std::size_t size);
    void markHere();
};

ByteSource::ByteSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

bool ByteSource::compressed() const { return state_->compressed; }
const std::string& ByteSource::damage() const { return state_->damage; }
std::uint64_t ByteSource::fileSize() const { return state_->fileSize; }
std::uint64_t ByteSource::fileBytesRead() const { return state_->fileAt; }
std::uint64_t ByteSource::contentSize() const { return state_->contentSize; }

Result<ByteSource> ByteSource::open(const std::string& path) {
    auto state = std::make_unique<State>();
    state->path = path;
    state->file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (state->file < 0) return badInput(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
    struct stat info{};
    if (fstat(state->file, &info) != 0) return badInput(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (S_ISDIR(info.st_mode)) return badInput(path, "is a folder; name the trace files in it");
    if (!S_ISREG(info.st_mode)) return badInput(path, "is no ordinary file; write it to one first");
    state->fileSize = static_cast<std::uint64_t>(info.st_size);
    state->contentSize = state->fileSize;
    unsigned char magic[2] = {0, 0};
    state->compressed = readFully(state->file, 0, magic, 2) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    if (state->compressed) {
        if (inflateInit2(&state->stream, kGzip) != Z_OK) return failure(ErrorCode::RuntimeFailure, path, "not enough memory to decompress");
        state->streamIsOpen = true;
        state->input.resize(kInputBytes);
        state->marks.push_back({});
        unsigned char tail[4] = {0, 0, 0, 0};
        if (state->fileSize >= 18) readFully(state->file, state->fileSize - 4, tail, 4);
        state->contentSize = std::uint64_t{tail[0]} | std::uint64_t{tail[1]} << 8 | std::uint64_t{tail[2]} << 16 | std::uint64_t{tail[3]} << 24;
        // The length is modulo 4 GiB, and of the last member only; a truncated file ends in anything.
        if (state->contentSize < state->fileSize || state->contentSize / 1100 > state->fileSize) state->contentSize = state->fileSize * 10;
    }
    return ByteSource(std::move(state));
}

std::size_t ByteSource::read(char* to, std::size_t size) {
    State& s = *state_;
    if (s.compressed) return s.inflateSome(to, size);
    const std::size_t n = readFully(s.file, s.fileAt, reinterpret_cast<unsigned char*>(to), size);
    s.fileAt += n;
    s.contentAt += n;
    return n;
}

void ByteSource::State::markHere() {
    Mark mark{contentAt, fileAt - stream.avail_in, stream.data_type & 7, std::vector<unsigned char>(kWindow)};
    unsigned length = kWindow;
    if (inflateGetDictionary(&stream, mark.window.data(), &length) != Z_OK || length == 0) return;
    mark.window.resize(length);
    marks.push_back(std::move(mark));
}

std::size_t ByteSource::State::inflateSome(char* to, std::size_t size) {
    std::size_t done = 0;
    while (done < size && !atEnd) {
        if (stream.avail_in == 0) {
            const std::size_t n = readFully(file, fileAt, input.data(), input.size());
            fileAt += n;
            stream.next_in = input.data();
            stream.avail_in = static_cast<unsigned>(n);
            if (n == 0) {
                damage = "the compressed data ends too early; the file is incomplete";
                atEnd = true;
                break;
            }
        }
        stream.next_out = reinterpret_cast<unsigned char*>(to) + done;
        stream.avail_out = static_cast<unsigned>(std::min<std::size_t>(size - done, 1U << 30));
        const unsigned room = stream.avail_out;
        const int result = inflate(&stream, Z_BLOCK);  // stops between blocks, where reading can begin again
        done += room - stream.avail_out;
        contentAt += room - stream.avail_out;
        if (result == Z_STREAM_END) {
            // A gzip file may have several members; what else follows the last is padding.
            if (stream.avail_in < 2 && fileAt < fileSize) {
                unsigned char rest[2] = {0, 0};
                const std::size_t kept = stream.avail_in;
                std::copy_n(stream.next_in, kept, rest);
                std::copy_n(rest, kept, input.begin());
                const std::size_t n = readFully(file, fileAt, input.data() + kept, input.size() - kept);
                fileAt += n;
                stream.next_in = input.data();
                stream.avail_in = static_cast<unsigned>(kept + n);
            }
            if (stream.avail_in >= 2 && stream.next_in[0] == 0x1f && stream.next_in[1] == 0x8b) {
                marks.push_back({contentAt, fileAt - stream.avail_in, 0, {}});
                inflateReset2(&stream, kGzip);
            } else {
                atEnd = true;
            }
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            damage = fmt::format("the compressed data is broken ({})", stream.msg ? stream.msg : "zlib");
            atEnd = true;
        } else if ((stream.data_type & 128) != 0 && (stream.data_type & 64) == 0 && contentAt >= marks.back().content + kBetweenMarks) {
            markHere();
        }
    }
    return done;
}

Result<std::string> ByteSource::readAt(std::uint64_t offset, std::size_t size) const {
    const State& s = *state_;
    std::string text(size, '\0');
    if (!s.compressed) {
        text.resize(readFully(s.file, offset, reinterpret_cast<unsigned char*>(text.data()), size));
        return text;
    }
    const auto after = std::upper_bound(s.marks.begin(), s.marks.end(), offset, [](std::uint64_t at, const Mark& mark) { return at < mark.content; });
    const Mark& mark = *(after - 1);
    z_stream stream{};
    if (inflateInit2(&stream, mark.window.empty() ? kGzip : kRaw) != Z_OK) return failure(ErrorCode::RuntimeFailure, s.path, "not enough memory to decompress");
    const auto end = [](z_stream* z) { inflateEnd(z); };
    const std::unique_ptr<z_stream, decltype(end)> closer(&stream, end);
    std::uint64_t fileAt = mark.file;
    if (!mark.window.empty()) {
        if (mark.bits != 0) {
            unsigned char byte = 0;
            readFully(s.file, fileAt - 1, &byte, 1);
            inflatePrime(&stream, mark.bits, byte >> (8 - mark.bits));
        }
        inflateSetDictionary(&stream, mark.window.data(), static_cast<unsigned>(mark.window.size()));
    }
    std::vector<unsigned char> input(kInputBytes), skipped(1 << 16);
    std::uint64_t toSkip = offset - mark.content;
    bool raw = !mark.window.empty();
    std::size_t done = 0;
    while (done < size) {
        if (stream.avail_in == 0) {
            stream.next_in = input.data();
            stream.avail_in = static_cast<unsigned>(readFully(s.file, fileAt, input.data(), input.size()));
            fileAt += stream.avail_in;
            if (stream.avail_in == 0) break;
        }
        stream.next_out = toSkip > 0 ? skipped.data() : reinterpret_cast<unsigned char*>(text.data()) + done;
        stream.avail_out = static_cast<unsigned>(toSkip > 0 ? std::min<std::uint64_t>(toSkip, skipped.size()) : std::min<std::size_t>(size - done, 1U << 30));
        const unsigned room = stream.avail_out;
        const int result = inflate(&stream, Z_NO_FLUSH);
        (toSkip > 0 ? toSkip : done) += toSkip > 0 ? std::uint64_t{0} - (room - stream.avail_out) : room - stream.avail_out;
        if (result == Z_STREAM_END) {
            const std::uint64_t next = fileAt - stream.avail_in + (raw ? 8 : 0);  // a raw stream does not step over the member's trailer
            raw = false;
            inflateReset2(&stream, kGzip);
            stream.avail_in = 0;
            fileAt = next;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            break;
        }
    }
    text.resize(done);
    return text;
}

}  // namespace ringside
