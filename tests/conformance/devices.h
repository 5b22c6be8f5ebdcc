// The devices that the suite runs over, and the fixture that makes one.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device.h"

namespace ringside::conformance {

struct DeviceFactory {
    std::string name;
    /// `memoryLimit` 0: what there is. A device that cannot be limited ignores it.
    std::function<Result<std::unique_ptr<ComputeDevice>>(Bytes memoryLimit)> make;
};
inline void PrintTo(const DeviceFactory& factory, std::ostream* out) { *out << factory.name; }
/// Every implementation, also those that this machine may lack.
std::vector<DeviceFactory> deviceFactories();

/// Skips, with the reason, where the device is not there.
class OnEveryDevice : public testing::TestWithParam<DeviceFactory> {
protected:
    void SetUp() override {
        Result<std::unique_ptr<ComputeDevice>> made = GetParam().make(0);
        if (!made && made.error().code == ErrorCode::MissingCapability) GTEST_SKIP() << "no " << GetParam().name << " device: " << made.error().toString();
        ASSERT_TRUE(made.has_value()) << made.error().toString();
        device_ = std::move(*made);
    }
    ComputeDevice& device() { return *device_; }

private:
    std::unique_ptr<ComputeDevice> device_;
};

inline std::string factoryName(const testing::TestParamInfo<DeviceFactory>& info) { return info.param.name; }

}  // namespace ringside::conformance
