// Names: finding a name in a list, and the nearest one when it is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringside {

/// The candidate nearest to `name` by edit distance (case and -_. ignored), or "" if none is close.
std::string nearestName(std::string_view name, const std::vector<std::string>& candidates);

/// "unknown model 'gtp2-xl'; did you mean 'gpt2-xl'? (`ringside catalog models` lists them)" — `hint` is the part in
/// brackets and may be empty; then the candidates themselves are listed where they are few.
std::string unknownName(std::string_view what, std::string_view name, const std::vector<std::string>& candidates,
                        std::string_view hint = {});

}  // namespace ringside
