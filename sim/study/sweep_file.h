// SweepFile: the rows of a sweep on disk, appended in order, so that a sweep that was cut short goes on where it stopped.
//
// The file is the plan's header and then row after row (docs/guides/sweep.md). Whatever ends the program, the file is a
// header and whole rows but for at most one torn line, which the next run drops.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "model/base/result.h"

namespace ringside {

class SweepFile {
public:
    /// Opens or creates. An existing file must begin with `header` (whole lines) and hold rows 0, 1, … of it; it is refused
    /// otherwise, unless `overwrite` starts anew. Refused too while another process writes it.
    static Result<SweepFile> open(const std::string& path, const std::string& header, std::size_t totalRows, bool overwrite);
    ~SweepFile();
    SweepFile(SweepFile&& other) noexcept;
    SweepFile& operator=(SweepFile&&) = delete;

    /// Rows that are whole in the file; the next one to append.
    std::size_t rows() const { return rows_; }
    /// Adds whole lines. They are written ten times a second or when there are many, so that a killed process loses little,
    /// and brought to the disk (fsync) every second and by flush.
    Result<void> append(const std::string& lines, std::size_t count);
    Result<void> flush();

private:
    SweepFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
    Result<void> write();
    Result<void> readExisting(const std::string& header, std::size_t totalRows);

    std::string path_;
    int file_ = -1;
    std::size_t rows_ = 0;
    std::string waiting_;
    std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now(), synced_ = written_;
};

}  // namespace ringside
