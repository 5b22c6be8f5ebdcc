// Contents: where the elements of each parameter lie in a program's buffers, for one rank.
//
// A task that moves parameters or gradients says which buffers it reads and writes. What it moves follows: elements of the same
// parameter meet, wherever each buffer has them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/schedule/schedule.h"

namespace ringside {

/// `count` elements, from element `from` of one buffer to element `to` of another.
struct Overlap {
    std::uint32_t parameter = 0;
    std::int64_t first = 0;  ///< of the parameter
    std::int64_t from = 0, to = 0, count = 0;

    bool operator==(const Overlap&) const = default;
};

/// Borrows the schedule and the program.
class Contents {
public:
    Contents(const Schedule& schedule, const RankProgram& program, std::int64_t rank);

    /// What a use of a buffer sees, in order of place; empty where the buffer holds no parameters.
    const std::vector<Segment>& of(const BufferUse& use);
    const std::vector<Segment>& of(BufferId buffer) { return of(BufferUse{buffer, UseKind::Read, -1}); }
    /// The first element of a whole parameter in one piece, or nothing.
    std::optional<std::int64_t> find(const BufferUse& use, std::uint32_t parameter);
    /// The first element that the use is about: not 0 where a rank's part lies within a whole (Layout::inPlace).
    std::int64_t beginOf(const BufferUse& use) const;
    /// What two buffers both have, merged where it is one run in both. `only`: of this parameter.
    std::vector<Overlap> meet(const BufferUse& from, const BufferUse& to, std::optional<std::uint32_t> only = {});
    /// The program's parameter that `index` of `layer` is (its owner, where it is tied), or nothing.
    std::optional<std::uint32_t> parameterOf(std::int32_t layer, std::int32_t index) const;

private:
    const Schedule& schedule_;
    const RankProgram& program_;
    std::int64_t rank_;
    std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> byName_;
    std::map<std::int32_t, std::vector<Segment>> ofLayout_;
    std::map<std::uint32_t, std::vector<Segment>> ofParameter_;
    const std::vector<Segment> nothing_;
};

}  // namespace ringside
