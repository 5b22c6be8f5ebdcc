// Layout: which parameters (or their gradients, or their state) a buffer holds, and which part of them, where a strategy packs
// several into one or cuts them over ranks. With it, copying into a bucket, gathering shards or updating a slice means something
// for real numbers: elements of the same parameter meet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringside {

/// A tensor that a program trains.
struct ProgramParameter {
    std::int32_t layer = 0, index = 0;  ///< of the workload
    std::int64_t elements = 0;
    std::int64_t rowElements = 1;       ///< of one row (along the first dimension)
};

/// How ranks share what the pieces hold.
enum class Cut : std::uint8_t {
    Whole,      ///< every rank has all of it
    Flat,       ///< the pieces as one line of `elements`, cut into equal parts: a rank has one
    EachPiece,  ///< every piece is cut by itself, into parts of ⌈n / ranks⌉ elements; a rank has its part of each, one after another
    EachRow,    ///< likewise, into parts of ⌈rows / ranks⌉ whole rows
};

struct Piece {
    std::uint32_t parameter = 0;  ///< into RankProgram::parameters; the whole of it
    std::int64_t at = 0;          ///< first element, where the pieces are one line
};

struct Layout {
    std::vector<Piece> pieces;
    std::int64_t elements = 0;  ///< of the line, padding included
    Cut cut = Cut::Whole;
    std::uint32_t axis = 0;     ///< into Schedule::axes: the ranks that share it
    bool gathered = false;      ///< of a cut: all parts, one rank's after another's (what an all-gather writes)
    std::int64_t start = 0;     ///< element of the buffer where it begins: a view of a part of it
    std::int64_t paddedTo = 1;  ///< of pieces cut by themselves: their rows (or elements) are padded to a multiple of this first
    bool inPlace = false;       ///< of a flat cut: this rank's part where it lies in the whole line; the rest is not looked at
};

/// Elements [first, first + count) of a parameter, from element `at` of a buffer on.
struct Segment {
    std::uint32_t parameter = 0;
    std::int64_t first = 0, count = 0, at = 0;

    bool operator==(const Segment&) const = default;
};

/// One after another, without gaps.
Layout packed(std::span<const std::uint32_t> pieces, std::span<const ProgramParameter> parameters);

/// Of a flat cut: elements of one part.
std::int64_t flatShare(const Layout& layout, std::int64_t ranks);

/// What the rank at `position` of `ranks` has, in order of `at`. Padding is left out.
std::vector<Segment> segmentsOf(const Layout& layout, std::span<const ProgramParameter> parameters, std::int64_t ranks, std::int64_t position);

}  // namespace ringside
