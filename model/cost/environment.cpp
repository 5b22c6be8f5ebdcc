#include "model/cost/environment.h"

#include <string_view>

#include <fmt/format.h>

#include "model/cost/profile.h"

namespace ringside {
namespace {

/// FNV-1a: no secret, only a short name for a combination.
class Fnv {
public:
    void add(std::string_view text) {
        for (const char c : text) mix(static_cast<unsigned char>(c));
        mix(0);
    }
    std::string digits() const { return fmt::format("{:016x}", hash_); }

private:
    void mix(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
    std::uint64_t hash_ = 0xcbf29ce484222325;
};

std::string orNone(const std::string& text) { return text.empty() ? "none" : text; }

}  // namespace

std::string fingerprint(const Environment& environment) {
    Fnv fnv;
    fnv.add(environment.cpuModel);
    fnv.add(std::to_string(environment.cores));
    fnv.add(std::to_string(environment.threadsPerRank));
    fnv.add(environment.kernel);
    for (const auto& [name, version] : environment.versions) {
        fnv.add(name);
        fnv.add(version);
    }
    return fnv.digits();
}

Result<void> checkEnvironment(const Profile& profile, const Environment& here) {
    const std::string place = "profile " + profile.name;
    constexpr const char* kRemedy = "measure this machine again with `ringside calibrate`";
    if (!profile.environment) return badInput(place, fmt::format("was not measured, or does not say where; {}", kRemedy));
    const Environment& there = *profile.environment;
    std::string differences;
    const auto compare = [&](const std::string& what, const std::string& a, const std::string& b) {
        if (a != b) differences += fmt::format("{}{} was '{}', here '{}'", differences.empty() ? "" : "; ", what, orNone(a), orNone(b));
    };
    compare("processor", there.cpuModel, here.cpuModel);
    compare("cores", std::to_string(there.cores), std::to_string(here.cores));
    compare("threads per rank", std::to_string(there.threadsPerRank), std::to_string(here.threadsPerRank));
    compare("kernel", there.kernel, here.kernel);
    for (const auto& [name, version] : there.versions) {
        const auto found = here.versions.find(name);
        compare(name, version, found == here.versions.end() ? "" : found->second);
    }
    for (const auto& [name, version] : here.versions)
        if (!there.versions.contains(name)) compare(name, "", version);
    if (differences.empty()) return {};
    return badInput(place, fmt::format("was measured on another machine or with other versions: {}; {}", differences, kRemedy));
}

Result<Environment> environmentFromJson(const JsonCursor& cursor) {
    TRY_VOID(cursor.keys({"cpu_model", "cores", "threads_per_rank", "kernel", "versions", "date", "link", "fingerprint"}));
    Environment environment;
    TRY(environment.cpuModel, cursor.stringOr("cpu_model", ""));
    TRY(environment.cores, cursor.intOr("cores", 0, 0, 1 << 20));
    TRY(environment.threadsPerRank, cursor.intOr("threads_per_rank", 1, 1, 1 << 20));
    TRY(environment.kernel, cursor.stringOr("kernel", ""));
    TRY(environment.date, cursor.stringOr("date", ""));
    TRY(environment.link, cursor.stringOr("link", ""));
    if (const auto versions = cursor.find("versions")) {
        if (!versions->value().is_object()) return versions->error("expected an object of names and versions");
        for (const auto& item : versions->value().items()) {
            TRY(const JsonCursor version, versions->at(item.key()));
            TRY(environment.versions[item.key()], version.asString());
        }
    }
    if (const auto given = cursor.find("fingerprint")) {
        TRY(const std::string digits, given->asString());
        const std::string expected = fingerprint(environment);
        if (digits != expected)
            return given->error(fmt::format("'{}' does not belong to this environment ('{}'): the file was edited; measure again, or leave the key out", digits, expected));
    }
    return environment;
}

Json toJson(const Environment& environment) {
    Json versions = Json::object();
    for (const auto& [name, version] : environment.versions) versions[name] = version;
    return Json{{"cpu_model", environment.cpuModel}, {"cores", environment.cores}, {"threads_per_rank", environment.threadsPerRank},
                {"kernel", environment.kernel}, {"versions", std::move(versions)}, {"date", environment.date}, {"link", environment.link},
                {"fingerprint", fingerprint(environment)}};
}

}  // namespace ringside
