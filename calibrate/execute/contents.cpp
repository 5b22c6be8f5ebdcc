#include "calibrate/execute/contents.h"

#include <algorithm>

namespace ringside {
namespace {

bool holdsOneParameter(BufferRole role) {
    return role == BufferRole::Parameter || role == BufferRole::MasterParameter || role == BufferRole::Gradient || role == BufferRole::OptimizerState;
}

}  // namespace

Contents::Contents(const Schedule& schedule, const RankProgram& program, std::int64_t rank) : schedule_(schedule), program_(program), rank_(rank) {
    for (std::uint32_t p = 0; p < program.parameters.size(); ++p) byName_[{program.parameters[p].layer, program.parameters[p].index}] = p;
    for (const TiedParameter& tie : program.workload->ties) {
        const auto owner = byName_.find({tie.ownerLayer, tie.ownerParameter});
        if (owner != byName_.end()) byName_.try_emplace({tie.layer, tie.parameter}, owner->second);
    }
}

std::optional<std::uint32_t> Contents::parameterOf(std::int32_t layer, std::int32_t index) const {
    const auto found = byName_.find({layer, index});
    if (found == byName_.end()) return {};
    return found->second;
}

const std::vector<Segment>& Contents::of(const BufferUse& use) {
    const Buffer& buffer = program_.buffers[use.buffer];
    const std::int32_t index = use.layout >= 0 ? use.layout : buffer.layout;
    if (index >= 0) {
        const auto [it, isNew] = ofLayout_.try_emplace(index);
        if (isNew) {
            const Layout& layout = program_.layouts[static_cast<std::size_t>(index)];
            const CommAxis& axis = schedule_.axes[layout.axis];
            it->second = segmentsOf(layout, program_.parameters, axis.size, axis.positionOf(rank_));
        }
        return it->second;
    }
    if (!holdsOneParameter(buffer.role)) return nothing_;
    const std::optional<std::uint32_t> p = parameterOf(buffer.layer, buffer.index);
    if (!p) return nothing_;
    std::vector<Segment>& whole = ofParameter_[*p];
    if (whole.empty()) whole.push_back({*p, 0, program_.parameters[*p].elements, 0});
    return whole;
}

std::optional<std::int64_t> Contents::find(const BufferUse& use, std::uint32_t parameter) {
    for (const Segment& segment : of(use))
        if (segment.parameter == parameter && segment.count == program_.parameters[parameter].elements) return segment.at;
    return {};
}

std::int64_t Contents::beginOf(const BufferUse& use) const {
    const std::int32_t index = use.layout >= 0 ? use.layout : program_.buffers[use.buffer].layout;
    if (index < 0) return 0;
    const Layout& layout = program_.layouts[static_cast<std::size_t>(index)];
    const CommAxis& axis = schedule_.axes[layout.axis];
    return layout.start + (layout.inPlace ? axis.positionOf(rank_) * flatShare(layout, axis.size) : 0);
}

std::vector<Overlap> Contents::meet(const BufferUse& from, const BufferUse& to, std::optional<std::uint32_t> only) {
    std::vector<Overlap> out;
    const std::vector<Segment>& source = of(from);
    for (const Segment& target : of(to)) {
        if (only && target.parameter != *only) continue;
        for (const Segment& piece : source) {
            if (piece.parameter != target.parameter) continue;
            const std::int64_t first = std::max(piece.first, target.first), end = std::min(piece.first + piece.count, target.first + target.count);
            if (first >= end) continue;
            const Overlap overlap{target.parameter, first, piece.at + first - piece.first, target.at + first - target.first, end - first};
            if (!out.empty() && out.back().from + out.back().count == overlap.from && out.back().to + out.back().count == overlap.to) out.back().count += overlap.count;
            else out.push_back(overlap);
        }
    }
    return out;
}

}  // namespace ringside
