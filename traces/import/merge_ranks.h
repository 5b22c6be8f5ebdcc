// Merge ranks: the files of several ranks on one time axis. Clocks of different machines differ, so they are aligned by what the
// ranks did together; where they did nothing together, the result says so (docs/formats/torch-profiler.md).
#pragma once

#include <vector>

#include "model/base/result.h"
#include "traces/import/read_trace.h"

namespace ringside {

/// Method: all ranks leave an all-reduce, all-gather, reduce-scatter or all-to-all at nearly the same time. Files are first placed by
/// their own clocks (since 1970) if all have one, else each at 0. Then each file is moved by the median difference between the ends of
/// the collectives that it shares with files already placed, the first being the reference; not if that is no more than what is left
/// afterwards (the residual). ImportedTrace::alignment has method, shift and residual by rank, and the notes say them in words.
/// A file without a common collective stays where its clock put it, with a note that it is not aligned.
///
/// Two files that say the same rank: the later gets the next free one, with a note. REQUIRES: at least one part.
ImportedTrace mergeRanks(std::vector<ImportedTrace> parts);

}  // namespace ringside
