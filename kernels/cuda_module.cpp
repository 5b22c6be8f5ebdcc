#include "kernels/cuda_module.h"

#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringside {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "ringside-cuda.so";

Result<const RingsideCudaModule*> open(const std::string& path) {
    // Local, so that its libraries are nobody else's; now, so that a library that is missing is found out here.
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const reason = dlerror();
        return failure(ErrorCode::MissingCapability, path, fmt::format("the CUDA module cannot be loaded: {}", reason != nullptr ? reason : "no reason given"));
    }
    const auto entry = reinterpret_cast<RingsideCudaEntry>(dlsym(handle, RINGSIDE_CUDA_ENTRY));
    if (entry == nullptr) return failure(ErrorCode::MissingCapability, path, "is not Ringside's CUDA module: it has no " RINGSIDE_CUDA_ENTRY);
    const RingsideCudaModule* const module = entry();
    if (module->version != RINGSIDE_CUDA_ABI_VERSION || module->size != sizeof(RingsideCudaModule))
        return failure(ErrorCode::MissingCapability, path,
                       fmt::format("the CUDA module is of version {}; this program takes version {}: install both from one build", module->version,
                                   RINGSIDE_CUDA_ABI_VERSION));
    return module;
}

}  // namespace

std::vector<std::string> cudaModulePlaces(const std::string& given, const std::optional<std::string>& variable, const std::string& programFolder) {
    if (!given.empty()) return {given};
    if (variable && !variable->empty()) return {*variable};
    const fs::path folder(programFolder);
    return {(folder / kFile).string(), (folder / ".." / RINGSIDE_MODULE_FOLDER / kFile).lexically_normal().string()};
}

Result<const RingsideCudaModule*> openCudaModule(const std::string& given) {
    const char* const variable = std::getenv("RINGSIDE_CUDA_MODULE");
    std::error_code unreadable;
    const fs::path program = fs::read_symlink("/proc/self/exe", unreadable);
    const std::vector<std::string> places =
        cudaModulePlaces(given, variable != nullptr ? std::optional<std::string>(variable) : std::nullopt, program.parent_path().string());
    for (const std::string& place : places) {
        std::error_code ignored;
        if (fs::exists(place, ignored)) return open(fs::absolute(place).string());
    }
    return failure(ErrorCode::MissingCapability, "CUDA",
                   fmt::format("no module {}: looked for {}. Build Ringside where the CUDA Toolkit, cuDNN and NCCL are installed, or set RINGSIDE_CUDA_MODULE to the file", kFile,
                               fmt::join(places, ", ")));
}

Result<void> fromModule(int code, const RingsideText& text, const std::string& what) {
    const std::string message = what.empty() ? std::string(text.text) : fmt::format("{}: {}", what, text.text);
    switch (code) {
        case RingsideOk: case RingsideInProgress: return {};
        case RingsideBadInput: return failure(ErrorCode::BadInput, "", message);
        case RingsideMissingCapability: return failure(ErrorCode::MissingCapability, "", message);
        default: return failure(ErrorCode::RuntimeFailure, "", message);
    }
}

}  // namespace ringside
