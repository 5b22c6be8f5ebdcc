// Opens the stand-in's libraries before the module asks for libraries of those names, and then a device on them (no GPU).
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "kernels/cuda_device.h"
#include "kernels/cuda_module.h"
#include "tests/gpu/stand_in/stand_in.h"

namespace ringside {

/// The functions of stand_in.h, found in the libraries: the test links none of them.
struct StandIn {
    decltype(&standInLog) log;
    decltype(&standInClearLog) clearLog;
    decltype(&standInSetDevices) setDevices;
    decltype(&standInSetMemory) setMemory;
    decltype(&standInMemoryInUse) memoryInUse;
    decltype(&standInFailNext) failNext;
    decltype(&standInHold) hold;
    decltype(&standInLetGo) letGo;
    decltype(&standInSetNccl) setNccl;

    std::vector<std::string> lines() const {
        std::vector<std::string> all;
        std::istringstream text(log());
        for (std::string line; std::getline(text, line);) all.push_back(line);
        return all;
    }
    /// How many lines begin with this.
    int count(const std::string& begin) const {
        int found = 0;
        for (const std::string& line : lines()) found += line.starts_with(begin) ? 1 : 0;
        return found;
    }
};

inline const StandIn& standIn() {
    static const StandIn functions = [] {
        // A library is known by its name once it is loaded, so the module's own search never starts.
        const auto open = [](const char* name) {
            void* const handle = dlopen((std::string(RINGSIDE_STAND_IN) + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
            if (handle == nullptr) ADD_FAILURE() << dlerror();
            return handle;
        };
        void* const cudart = open("libcudart.so.13");
        open("libcublasLt.so.13");
        open("libcudnn.so.9");
        void* const nccl = open("libnccl.so.2");
        const auto find = [](void* library, const char* name, auto& function) { function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name)); };
        StandIn found{};
        find(cudart, "standInLog", found.log);
        find(cudart, "standInClearLog", found.clearLog);
        find(cudart, "standInSetDevices", found.setDevices);
        find(cudart, "standInSetMemory", found.setMemory);
        find(cudart, "standInMemoryInUse", found.memoryInUse);
        find(cudart, "standInFailNext", found.failNext);
        find(cudart, "standInHold", found.hold);
        find(cudart, "standInLetGo", found.letGo);
        find(nccl, "standInSetNccl", found.setNccl);
        return found;
    }();
    return functions;
}

/// A test with a device of the stand-in in its initial state.
class StandInTest : public testing::Test {
protected:
    void SetUp() override {
        standIn().setDevices(1);
        standIn().setMemory(std::int64_t{1} << 30);
        standIn().setNccl(StandInNcclWorks);
        const Result<const RingsideCudaModule*> module = openCudaModule(RINGSIDE_CUDA_MODULE_FILE);
        ASSERT_TRUE(module) << module.error().toString();
        module_ = *module;
        Result<std::unique_ptr<CudaDevice>> made = CudaDevice::make(*module_, 0);
        ASSERT_TRUE(made) << made.error().toString();
        device_ = std::move(*made);
        standIn().clearLog();
    }

    /// Device memory that holds these numbers.
    float* put(const std::vector<float>& values) {
        auto* memory = static_cast<float*>(device_->allocate(static_cast<Bytes>(std::max<std::size_t>(values.size(), 1) * sizeof(float))).value());
        std::copy(values.begin(), values.end(), memory);  // the stand-in's device memory is the host's
        return memory;
    }
    Result<void> run(const KernelCall& call) {
        if (streams_.empty()) streams_.push_back(device_->createStream("compute").value());
        Result<void> result;
        device_->issue(streams_[0], [&](const StreamContext& stream) {
            result = device_->run(stream, call);
            return result;
        }, nullptr);
        static_cast<void>(device_->synchronize());
        return result;
    }

    const RingsideCudaModule* module_ = nullptr;
    std::unique_ptr<CudaDevice> device_;
    std::vector<StreamIndex> streams_;
};

}  // namespace ringside
