// Machine: the environment of this process, for the profile it measures.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/cost/environment.h"

namespace ringside {

/// "model name" of /proc/cpuinfo's text ("" where it has none: some ARM kernels; then "Hardware" or "CPU part").
std::string cpuModelOf(const std::string& cpuinfo);

/// Processor, cores that this process may use, kernel, today's date in UTC; link and versions as given.
Environment environmentHere(std::int64_t threadsPerRank, std::string link, std::map<std::string, std::string> versions);

}  // namespace ringside
