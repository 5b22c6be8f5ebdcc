// ByteSource: the bytes of a file from front to back, gzip-compressed or not, and later any part of them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "model/base/result.h"

namespace ringside {

/// Told by content, not by name. Of a compressed file a few places are remembered while it is read (32 KiB per 16 MiB), so that
/// readAt() need not begin at the front. Not for use by two threads at once; moved, not copied.
class ByteSource {
public:
    static Result<ByteSource> open(const std::string& path);
    ByteSource(ByteSource&&) noexcept;
    ByteSource& operator=(ByteSource&&) noexcept;
    ~ByteSource();

    /// The next bytes: up to `size`, fewer only at the end. What follows a place where the compressed data is broken is not read.
    std::size_t read(char* to, std::size_t size);
    /// Bytes [offset, offset + size) of the content, fewer at its end. REQUIRES for compressed files: they have been read that far.
    Result<std::string> readAt(std::uint64_t offset, std::size_t size) const;

    bool compressed() const;
    /// Why the compressed data could not be read to its end, or "".
    const std::string& damage() const;
    std::uint64_t fileSize() const;       ///< in the file system
    std::uint64_t fileBytesRead() const;  ///< of those; for progress
    /// Of the content; a guess for a compressed file (its last word, which is the length modulo 4 GiB, or more if that cannot be).
    std::uint64_t contentSize() const;

private:
    struct State;
    explicit ByteSource(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace ringside
