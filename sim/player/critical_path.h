// Critical path: the chain of tasks that decided how long the step took, walked back from its end. Making a task on it
// shorter makes the step shorter; anything else does not.
#pragma once

#include <vector>

#include "sim/player/player.h"

namespace ringside {

/// What the step waited for.
enum class PathKind : std::uint8_t { Compute, Communication, Copy, Host, Optimizer, Server };
std::string_view nameOf(PathKind kind);

struct PathSegment {
    PathKind kind = PathKind::Compute;
    std::uint32_t rankClass = 0;
    TaskId task = 0;
    Time begin, end;  ///< the part of the task's time that is on the path
};

/// Segments in time order; they cover [0, stepTime) without gaps. O(tasks).
std::vector<PathSegment> criticalPath(const Schedule& schedule, const Timeline& timeline);

}  // namespace ringside
