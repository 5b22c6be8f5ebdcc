// Environment: where and with what a profile was measured. It names no host and no user.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/base/json_cursor.h"
#include "model/base/result.h"

namespace ringside {

struct Profile;

struct Environment {
    std::string cpuModel;                         ///< "AMD EPYC 9R14"
    std::int64_t cores = 0;                       ///< that the process may use
    std::int64_t threadsPerRank = 1;
    std::string kernel;                           ///< of the operating system: "Linux 6.1.0"
    std::map<std::string, std::string> versions;  ///< "ringside", "onednn", "gloo", "nccl", …
    std::string date;                             ///< ISO 8601; of the measurement
    std::string link;                             ///< between the ranks: "loopback", "1gbit"

    bool operator==(const Environment&) const = default;
};

/// Sixteen hexadecimal digits over everything but date and link: equal where measurements can be compared.
std::string fingerprint(const Environment& environment);

/// Fails (bad input, naming what differs and what to do) unless the profile was measured in such an environment. Date and link
/// do not matter.
Result<void> checkEnvironment(const Profile& profile, const Environment& here);

/// Unknown keys are refused, as is a "fingerprint" that is not that of the rest (an edited file).
Result<Environment> environmentFromJson(const JsonCursor& cursor);
/// The inverse; writes the fingerprint too.
Json toJson(const Environment& environment);

}  // namespace ringside
