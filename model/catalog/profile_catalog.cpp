#include "model/catalog/profile_catalog.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/names.h"
#include "model/catalog/embedded_catalog.h"

namespace ringside {
namespace {

constexpr std::string_view kFolder = "profiles/";
constexpr std::string_view kExtension = ".json";
constexpr std::string_view kDatasheet = "datasheet";

/// "profiles/b200-boost.json" → "b200-boost"; "" for other files.
std::string_view nameOfFile(std::string_view path) {
    if (!path.starts_with(kFolder) || !path.ends_with(kExtension)) return {};
    return path.substr(kFolder.size(), path.size() - kFolder.size() - kExtension.size());
}

Result<Profile> overDatasheet(const Json& json, const std::string& source, const Device& device) {
    const Profile base = datasheetProfile(device);
    const JsonCursor cursor(json, source);
    TRY(Profile profile, profileFromJson(cursor, base));
    if (profile.device != device.name)
        return cursor.error(fmt::format("this profile is for the device '{}', but the scenario has '{}'; take a profile of that device, or 'datasheet'",
                                        profile.device, device.name));
    return profile;
}

}  // namespace

std::vector<std::string> profileNames() {
    std::vector<std::string> names{std::string(kDatasheet)};
    for (const EmbeddedFile& file : embeddedCatalog())
        if (const std::string_view name = nameOfFile(file.path); !name.empty()) names.emplace_back(name);
    std::sort(names.begin() + 1, names.end());
    return names;
}

Result<Profile> profileByName(std::string_view name, const Device& device) {
    if (name == kDatasheet) return datasheetProfile(device);
    for (const EmbeddedFile& file : embeddedCatalog()) {
        const std::string_view candidate = nameOfFile(file.path);
        if (candidate.empty() || candidate != name) continue;
        const std::string source = "catalogue " + std::string(file.path);
        TRY(const Json json, parseJson(file.text, source));
        return overDatasheet(json, source, device);
    }
    return badInput({}, unknownName("profile", name, profileNames(), "`ringside catalog profiles` lists them; a file ends in .json"));
}

Result<Profile> resolveProfile(const std::string& nameOrPath, const Device& device) {
    if (nameOrPath != "-" && !nameOrPath.ends_with(kExtension)) return profileByName(nameOrPath, device);
    TRY(const Json json, readJsonFile(nameOrPath));
    return overDatasheet(json, nameOrPath == "-" ? "standard input" : nameOrPath, device);
}

}  // namespace ringside
