// `ringside validate --published`: predicts runs that others have measured and published.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace ringside {

struct PublishedFlags {
    bool given = false, csv = false;
    std::vector<std::string> files;    ///< none: the project's own
    std::vector<std::string> filters;
    std::string plot, markdown;
};

void addPublishedFlags(Command& command, PublishedFlags& flags);
/// Flags of --published that stand without it are a slip.
Result<void> refusePublishedFlags(const PublishedFlags& flags);
Result<int> runPublished(const PublishedFlags& flags, const OutputFlags& output);

}  // namespace ringside
