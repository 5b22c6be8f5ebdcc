// Layer names: what the same work of different layers has in common.
#pragma once

#include <string>
#include <string_view>

namespace ringside {

/// Numbers that stand alone become '#': "model.layers.12.mlp" → "model.layers.#.mlp"; "gemm_128x64" stays.
std::string withoutNumbers(std::string_view name);

}  // namespace ringside
