// ProfileCatalog: the profiles that come with the program, beside the one every device has from its datasheet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "model/cost/profile.h"
#include "model/hardware/device.h"

namespace ringside {

/// Names of the built-in profiles, sorted; "datasheet" first.
std::vector<std::string> profileNames();

/// Built-in profile by name, for a device. "datasheet" is datasheetProfile(device); any other is its file's figures over
/// that. Error: unknown name (names the nearest), or a profile made for another device.
Result<Profile> profileByName(std::string_view name, const Device& device);

/// A profile by name, or from a file: a path ending in .json, or "-" for standard input. What a file leaves out comes from
/// the device's datasheet profile; a file made for another device is refused.
Result<Profile> resolveProfile(const std::string& nameOrPath, const Device& device);

}  // namespace ringside
