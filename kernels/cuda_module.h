// Finds and opens ringside-cuda.so (kernels/cuda), without any CUDA header: the program starts and answers on machines without CUDA.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/module_abi.h"
#include "model/base/result.h"

namespace ringside {

/// Where the module may be, first place first: `given` alone if it is not empty; else the file that RINGSIDE_CUDA_MODULE names,
/// alone; else beside the program and where it is installed.
std::vector<std::string> cudaModulePlaces(const std::string& given, const std::optional<std::string>& variable, const std::string& programFolder);

/// The table of the module, which stays open until the process ends. Fails (missing capability) with the reason: not found and
/// where it was looked for, not loadable and what the loader says, or of another version.
Result<const RingsideCudaModule*> openCudaModule(const std::string& given = {});

/// A code and text of the module as a Result. `what` stands in front of the text when it is not empty.
Result<void> fromModule(int code, const RingsideText& text, const std::string& what = {});

}  // namespace ringside
