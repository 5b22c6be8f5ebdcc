// `ringside calibrate --from-published`: fits the figures of profiles to runs that others have measured and published.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace ringside {

struct FromPublishedFlags {
    bool given = false;
    std::vector<std::string> files;  ///< none: the project's own
    std::string folds = "by-source";
};

void addFromPublishedFlags(Command& command, FromPublishedFlags& flags);
/// `out`: a directory for figures.json and folds.json; "": nothing is written.
Result<int> runFromPublished(const FromPublishedFlags& flags, const std::string& out, const OutputFlags& output);

}  // namespace ringside
