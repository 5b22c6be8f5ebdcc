#include "calibrate/measure/machine.h"

#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include <sched.h>
#include <sys/utsname.h>

#include <fmt/format.h>

namespace ringside {
namespace {

std::string trimmed(const std::string& text) {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string textOf(const char* path) {
    std::ifstream in(path);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
}

std::int64_t usableCores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return std::thread::hardware_concurrency();
}

}  // namespace

std::string cpuModelOf(const std::string& cpuinfo) {
    for (const char* wanted : {"model name", "Hardware", "CPU part"}) {
        std::istringstream lines(cpuinfo);
        for (std::string line; std::getline(lines, line);) {
            const auto colon = line.find(':');
            if (colon != std::string::npos && trimmed(line.substr(0, colon)) == wanted) return trimmed(line.substr(colon + 1));
        }
    }
    return {};
}

Environment environmentHere(std::int64_t threadsPerRank, std::string link, std::map<std::string, std::string> versions) {
    Environment here;
    here.cpuModel = cpuModelOf(textOf("/proc/cpuinfo"));
    here.cores = usableCores();
    here.threadsPerRank = threadsPerRank;
    utsname system{};
    if (uname(&system) == 0) here.kernel = fmt::format("{} {}", system.sysname, system.release);
    here.versions = std::move(versions);
    here.link = std::move(link);
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    here.date = fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
    return here;
}

}  // namespace ringside
