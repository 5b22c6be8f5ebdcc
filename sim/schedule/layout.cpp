#include "sim/schedule/layout.h"

#include <algorithm>

namespace ringside {
namespace {

/// Elements of one rank's part of a parameter that is cut by itself.
std::int64_t partElements(const ProgramParameter& parameter, const Layout& layout, std::int64_t ranks) {
    const std::int64_t granule = layout.cut == Cut::EachRow ? std::max<std::int64_t>(1, parameter.rowElements) : 1;
    const std::int64_t granules = (parameter.elements + granule - 1) / granule;
    const std::int64_t padded = (granules + layout.paddedTo - 1) / layout.paddedTo * layout.paddedTo;
    return (padded + ranks - 1) / ranks * granule;
}

void appendParts(std::vector<Segment>& out, const Layout& layout, std::span<const ProgramParameter> parameters, std::int64_t ranks, std::int64_t position,
                 std::int64_t at) {
    for (const Piece& piece : layout.pieces) {
        const ProgramParameter& parameter = parameters[piece.parameter];
        const std::int64_t part = partElements(parameter, layout, ranks);
        const std::int64_t first = position * part, count = std::min(part, parameter.elements - first);
        if (count > 0) out.push_back({piece.parameter, first, count, at});
        at += part;
    }
}

/// What of the line lies in [begin, end), told from `begin` on.
std::vector<Segment> lineSegments(const Layout& layout, std::span<const ProgramParameter> parameters, std::int64_t begin, std::int64_t end) {
    std::vector<Segment> out;
    for (const Piece& piece : layout.pieces) {
        const std::int64_t from = std::max(begin, piece.at), to = std::min(end, piece.at + parameters[piece.parameter].elements);
        if (from < to) out.push_back({piece.parameter, from - piece.at, to - from, layout.start + from - begin});
    }
    return out;
}

}  // namespace

Layout packed(std::span<const std::uint32_t> pieces, std::span<const ProgramParameter> parameters) {
    Layout layout;
    layout.pieces.reserve(pieces.size());
    for (const std::uint32_t p : pieces) {
        layout.pieces.push_back({p, layout.elements});
        layout.elements += parameters[p].elements;
    }
    return layout;
}

std::int64_t flatShare(const Layout& layout, std::int64_t ranks) { return (layout.elements + ranks - 1) / ranks; }

std::vector<Segment> segmentsOf(const Layout& layout, std::span<const ProgramParameter> parameters, std::int64_t ranks, std::int64_t position) {
    if (layout.cut == Cut::Whole || (layout.cut == Cut::Flat && layout.gathered)) return lineSegments(layout, parameters, 0, layout.elements);
    if (layout.cut == Cut::Flat) {
        const std::int64_t share = flatShare(layout, ranks);
        std::vector<Segment> part = lineSegments(layout, parameters, position * share, (position + 1) * share);
        if (layout.inPlace)
            for (Segment& segment : part) segment.at += position * share;
        return part;
    }
    std::vector<Segment> out;
    if (!layout.gathered) {
        appendParts(out, layout, parameters, ranks, position, layout.start);
        return out;
    }
    std::int64_t perRank = 0;
    for (const Piece& piece : layout.pieces) perRank += partElements(parameters[piece.parameter], layout, ranks);
    for (std::int64_t r = 0; r < ranks; ++r) appendParts(out, layout, parameters, ranks, r, layout.start + r * perRank);
    return out;
}

}  // namespace ringside
