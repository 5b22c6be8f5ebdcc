#include "tests/conformance/call.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace ringside::conformance {

namespace {

using Kind = Tensor::Kind;

DType storedType(const Tensor& tensor, DType call) {
    switch (tensor.kind) {
        case Kind::AlwaysFp32: return DType::Fp32;
        case Kind::Int64: return DType::Int64;
        case Kind::Bool: return DType::Bool;
        default: return call;
    }
}

template <class T>
void put(std::vector<char>& bytes, T value) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
}

std::vector<char> encode(const Tensor& tensor, DType type) {
    std::vector<char> bytes;
    for (const double value : tensor.values) {
        switch (type) {
            case DType::Fp64: put(bytes, value); break;
            case DType::Int64: put(bytes, static_cast<std::int64_t>(value)); break;
            case DType::Bool: put(bytes, static_cast<std::uint8_t>(value)); break;
            case DType::Bf16: put(bytes, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16)); break;
            default: put(bytes, static_cast<float>(value)); break;
        }
    }
    return bytes;
}

template <class T>
T at(const std::vector<char>& bytes, std::size_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
}

void decode(const std::vector<char>& bytes, DType type, Tensor& tensor) {
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        switch (type) {
            case DType::Fp64: tensor.values[i] = at<double>(bytes, i); break;
            case DType::Int64: tensor.values[i] = static_cast<double>(at<std::int64_t>(bytes, i)); break;
            case DType::Bool: tensor.values[i] = at<std::uint8_t>(bytes, i); break;
            case DType::Bf16: tensor.values[i] = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(at<std::uint16_t>(bytes, i)) << 16)); break;
            default: tensor.values[i] = static_cast<double>(at<float>(bytes, i)); break;
        }
    }
}

/// Device memory that goes with the scope.
class DeviceBlock {
public:
    DeviceBlock(ComputeDevice& device, Bytes bytes) : device_(device), memory_(device.allocate(bytes)) {}
    ~DeviceBlock() {
        if (memory_) device_.free(*memory_);
    }
    DeviceBlock(const DeviceBlock&) = delete;
    DeviceBlock& operator=(const DeviceBlock&) = delete;
    const Result<void*>& memory() const { return memory_; }

private:
    ComputeDevice& device_;
    Result<void*> memory_;
};

}  // namespace

Tensor random(std::int64_t elements, unsigned seed, double low, double high) {
    std::mt19937 generator(seed);
    Tensor tensor;
    for (std::int64_t i = 0; i < elements; ++i) {
        const double unit = static_cast<double>(generator()) / 4294967296.0;
        const auto value = static_cast<float>(low + (high - low) * unit);
        tensor.values.push_back(static_cast<double>(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFF0000U)));
    }
    return tensor;
}

Tensor randomTokens(std::int64_t elements, unsigned seed, std::int64_t below) {
    std::mt19937 generator(seed);
    Tensor tensor{{}, Kind::Int64};
    for (std::int64_t i = 0; i < elements; ++i) tensor.values.push_back(static_cast<double>(generator() % static_cast<std::uint64_t>(below)));
    return tensor;
}

Tensor zeros(std::int64_t elements, Kind kind) { return {std::vector<double>(static_cast<std::size_t>(elements), 0.0), kind}; }

Tensor undefined(std::int64_t elements, Kind kind) {
    const double value = kind == Kind::Int64 ? 9e15 : kind == Kind::Bool ? 255 : std::numeric_limits<double>::quiet_NaN();
    return {std::vector<double>(static_cast<std::size_t>(elements), value), kind};
}

Tensor absent() { return {{}, Kind::Absent}; }

Result<void> runOnDevice(ComputeDevice& device, StreamIndex stream, Call& call) {
    KernelCall kernel;
    kernel.op = call.op;
    kernel.dtype = call.dtype;
    std::copy(call.dims.begin(), call.dims.end(), kernel.dims.begin());
    std::copy(call.scalars.begin(), call.scalars.end(), kernel.scalars.begin());
    std::vector<std::unique_ptr<DeviceBlock>> blocks;
    std::vector<std::vector<char>> host;
    const auto upload = [&](const Tensor& tensor) -> Result<void*> {
        if (!tensor.present()) return nullptr;
        host.push_back(encode(tensor, storedType(tensor, call.dtype)));
        blocks.push_back(std::make_unique<DeviceBlock>(device, static_cast<Bytes>(host.back().size())));
        TRY(void* memory, blocks.back()->memory());
        const std::size_t index = host.size() - 1;
        device.issue(stream, [&device, &host, memory, index](const StreamContext& context) { return device.copyIn(context, memory, host[index].data(), static_cast<Bytes>(host[index].size())); });
        return memory;
    };
    host.reserve(call.in.size() + call.out.size());
    for (std::size_t i = 0; i < call.in.size(); ++i) {
        TRY(kernel.in[i], upload(call.in[i]));
    }
    for (std::size_t i = 0; i < call.out.size(); ++i) {
        TRY(kernel.out[i], upload(call.out[i]));
    }
    device.issue(stream, [&device, &kernel](const StreamContext& context) { return device.run(context, kernel); });
    std::vector<std::vector<char>> results(call.out.size());
    for (std::size_t i = 0; i < call.out.size(); ++i) {
        if (!call.out[i].present()) continue;
        results[i].resize(call.out[i].values.size() * static_cast<std::size_t>(sizeOf(storedType(call.out[i], call.dtype))));
        device.issue(stream, [&, i](const StreamContext& context) { return device.copyOut(context, results[i].data(), kernel.out[i], static_cast<Bytes>(results[i].size())); });
    }
    TRY_VOID(device.synchronize());
    for (std::size_t i = 0; i < call.out.size(); ++i)
        if (call.out[i].present()) decode(results[i], storedType(call.out[i], call.dtype), call.out[i]);
    return {};
}

void expectSame(ComputeDevice& device, const Call& call, double tolerance) {
    std::string dims;
    for (const std::int64_t d : call.dims) dims += std::to_string(d) + " ";
    SCOPED_TRACE(std::string(nameOf(call.op)) + " " + std::string(nameOf(call.dtype)) + " " + dims);
    const Result<StreamIndex> stream = device.createStream("test");
    ASSERT_TRUE(stream.has_value()) << stream.error().toString();
    Call expected = call, found = call;
    runReference(expected);
    const Result<void> ran = runOnDevice(device, *stream, found);
    ASSERT_TRUE(ran.has_value()) << ran.error().toString();
    for (std::size_t t = 0; t < call.out.size(); ++t) {
        const std::vector<double>&a = found.out[t].values, &b = expected.out[t].values;
        double largest = 1e-6;
        for (const double value : b)
            if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
        for (std::size_t i = 0; i < b.size(); ++i) {
            // Infinities are equal; what neither wrote is still NaN.
            const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) || std::abs(a[i] - b[i]) <= tolerance * largest;
            ASSERT_TRUE(same) << "output " << t << " element " << i << ": found " << a[i] << ", expected " << b[i];
        }
    }
}

}  // namespace ringside::conformance
