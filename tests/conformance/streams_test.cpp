// Streams, events, errors and memory of every device.
#include <cstdint>
#include <vector>

#include "tests/conformance/devices.h"

namespace ringside::conformance {
namespace {

class Streams : public OnEveryDevice {
protected:
    void SetUp() override {
        OnEveryDevice::SetUp();
        if (IsSkipped()) return;
        a_ = device().createStream("a").value();
        b_ = device().createStream("b").value();
        memory_ = static_cast<float*>(device().allocate(kElements * 4).value());
        other_ = static_cast<float*>(device().allocate(kElements * 4).value());
    }

    StreamWork kernel(KernelOp op, const float* in, float* out, double scalar = 0, std::int64_t elements = kElements) {
        return [this, call = KernelCall{op, DType::Fp32, {in}, {out}, {elements}, {scalar}}](const StreamContext& stream) { return device().run(stream, call); };
    }
    StreamWork fill(float* out, double value) { return kernel(KernelOp::Fill, nullptr, out, value); }
    StreamWork download(const float* from) {
        return [this, from](const StreamContext& stream) { return device().copyOut(stream, host_.data(), from, kElements * 4); };
    }
    StreamWork fail(const char* message) {
        return [message](const StreamContext&) -> Result<void> { return failure(ErrorCode::RuntimeFailure, "test", message); };
    }

    static constexpr std::int64_t kElements = 100000;
    StreamIndex a_ = 0, b_ = 0;
    float *memory_ = nullptr, *other_ = nullptr;
    std::vector<float> host_ = std::vector<float>(kElements, -1.0F);
};
INSTANTIATE_TEST_SUITE_P(Devices, Streams, testing::ValuesIn(deviceFactories()), factoryName);

TEST_P(Streams, RunWhatTheyAreGivenInOrder) {
    // ((0 + 1)·2 + 1)·2 + … : 2^n − 2 + … only comes out in this order. x → 2x + 1, ten times from 0: 2^10 − 1.
    device().issue(a_, fill(memory_, 0));
    for (int i = 0; i < 10; ++i) {
        device().issue(a_, kernel(KernelOp::Scale, memory_, memory_, 2));
        device().issue(a_, kernel(KernelOp::AddScalar, memory_, memory_, 1));
    }
    device().issue(a_, download(memory_));
    ASSERT_TRUE(device().synchronize().has_value());
    for (const float value : host_) ASSERT_EQ(value, 1023.0F);
}

TEST_P(Streams, SeeWhatAnotherWroteBeforeTheEventTheyWaitFor) {
    for (int round = 1; round <= 20; ++round) {
        device().issue(a_, fill(memory_, round));
        device().issue(a_, kernel(KernelOp::Scale, memory_, memory_, 3));
        device().wait(b_, device().record(a_));
        device().issue(b_, kernel(KernelOp::Copy, memory_, other_));
        device().issue(b_, download(other_));
        // And back: a may not write again before b has read.
        device().wait(a_, device().record(b_));
    }
    ASSERT_TRUE(device().synchronize().has_value());
    for (const float value : host_) ASSERT_EQ(value, 60.0F);
}

TEST_P(Streams, ChainThroughManyStreams) {
    std::vector<StreamIndex> streams;
    for (int i = 0; i < 8; ++i) streams.push_back(device().createStream("chain").value());
    device().issue(a_, fill(memory_, 0));
    EventIndex last = device().record(a_);
    for (int i = 0; i < 400; ++i) {
        const StreamIndex stream = streams[static_cast<std::size_t>(i % 8)];
        device().wait(stream, last);
        device().issue(stream, kernel(KernelOp::AddScalar, memory_, memory_, 1, 1000));
        last = device().record(stream);
    }
    device().wait(b_, last);
    device().issue(b_, download(memory_));
    ASSERT_TRUE(device().synchronize().has_value());
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(host_[static_cast<std::size_t>(i)], 400.0F);
    ASSERT_EQ(host_[1000], 0.0F);
}

TEST_P(Streams, LetTheHostWaitForAnEvent) {
    device().issue(a_, fill(memory_, 5));
    device().issue(a_, download(memory_));
    const EventIndex event = device().record(a_);
    ASSERT_TRUE(device().waitOnHost(event).has_value());
    for (const float value : host_) ASSERT_EQ(value, 5.0F);
    EXPECT_TRUE(device().synchronize().has_value());
    EXPECT_TRUE(device().waitOnHost(device().record(b_)).has_value()) << "nothing was issued: nothing to wait for";
}

TEST_P(Streams, TellWhenWorkRan) {
    std::vector<WorkTimes> times(3);
    for (WorkTimes& time : times) device().issue(a_, kernel(KernelOp::Scale, memory_, other_, 1), &time);
    ASSERT_TRUE(device().synchronize().has_value());
    for (std::size_t i = 0; i < times.size(); ++i) {
        EXPECT_GT(times[i].beginNs, 0);
        EXPECT_LE(times[i].beginNs, times[i].endNs);
        if (i > 0) {
            EXPECT_LE(times[i - 1].endNs, times[i].beginNs);
        }
    }
}

TEST_P(Streams, SkipWhatComesAfterAnErrorAndReportTheFirst) {
    device().issue(a_, fill(memory_, 1));
    device().issue(a_, fail("the first"));
    device().issue(a_, fill(memory_, 2));
    device().issue(a_, fail("the second"));
    const Result<void> waited = device().waitOnHost(device().record(a_));
    ASSERT_FALSE(waited.has_value());
    device().issue(b_, fill(memory_, 3));
    const Result<void> result = device().synchronize();
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::RuntimeFailure);
    EXPECT_EQ(result.error().message, "the first");
    // The error is told once; then the device works again, and nothing of what was skipped has run.
    EXPECT_TRUE(device().synchronize().has_value());
    device().issue(a_, download(memory_));
    ASSERT_TRUE(device().synchronize().has_value());
    EXPECT_EQ(host_[0], 1.0F);
}

TEST_P(Streams, DoNotHangOnAnEventOfAStreamThatFailed) {
    device().issue(a_, fail("broken"));
    device().wait(b_, device().record(a_));
    device().issue(b_, fill(memory_, 1));
    EXPECT_FALSE(device().synchronize().has_value());
}

class Calls : public OnEveryDevice {
protected:
    std::string errorOf(const KernelCall& call) {
        const StreamIndex stream = device().createStream("calls").value();
        device().issue(stream, [&](const StreamContext& context) { return device().run(context, call); });
        const Result<void> result = device().synchronize();
        if (result) return "no error";
        EXPECT_EQ(result.error().code, ErrorCode::BadInput) << result.error().toString();
        return result.error().toString();
    }
};
INSTANTIATE_TEST_SUITE_P(Devices, Calls, testing::ValuesIn(deviceFactories()), factoryName);

TEST_P(Calls, WithAWrongShapeFailAndSayWhatIsWrong) {
    void* m = device().allocate(4096).value();
    using D = DType;
    EXPECT_EQ(errorOf({KernelOp::LayerNorm, D::Fp32, {m, m}, {m, m}, {3, 0}, {1e-5}}), "layer norm: features is 0; expected at least 1");
    EXPECT_EQ(errorOf({KernelOp::Add, D::Fp32, {m, m}, {m}, {-1}, {}}), "add: elements is -1; expected at least 0");
    EXPECT_EQ(errorOf({KernelOp::Matmul, D::Fp32, {m, m}, {m}, {1, 2, -3, 4}, {1, 0}}), "matmul: n is -3; expected at least 0");
    EXPECT_EQ(errorOf({KernelOp::Add, D::Fp32, {m, nullptr}, {m}, {4}, {}}), "add: operand b is missing");
    EXPECT_EQ(errorOf({KernelOp::Attention, D::Fp32, {m, m, m}, {m, nullptr}, {1, 2, 2, 2, 4, 0, 8, 8, 8}, {1}}), "attention: operand logSumExp is missing");
    EXPECT_NE(errorOf({KernelOp::Attention, D::Fp32, {m, m, m}, {m, m}, {1, 2, 3, 2, 4, 0, 12, 8, 12}, {1}}).find("multiple of kvHeads"), std::string::npos);
    EXPECT_NE(errorOf({KernelOp::Attention, D::Fp32, {m, m, m}, {m, m}, {1, 2, 2, 2, 4, 0, 7, 8, 8}, {1}}).find("qStride is 7"), std::string::npos);
    EXPECT_NE(errorOf({KernelOp::Convolution, D::Fp32, {m, m}, {m}, {1, 1, 2, 2, 1, 5, 5, 1, 1}, {}}).find("padded input is 4×4"), std::string::npos);
    EXPECT_NE(errorOf({KernelOp::MaxPool, D::Fp32, {m}, {m, m}, {1, 1, 4, 4, 2, 2, 2}, {}}).find("padding is 2"), std::string::npos);
    EXPECT_NE(errorOf({KernelOp::Activation, D::Fp32, {m}, {m}, {4, 99}, {}}).find("kind is 99"), std::string::npos);
    EXPECT_NE(errorOf({KernelOp::Rotary, D::Fp32, {m}, {m}, {1, 1, 1, 3, 3, 3, 0}, {10000}}).find("d is 3"), std::string::npos);
    EXPECT_NE(errorOf({KernelOp::Count, D::Fp32, {m}, {m}, {1}, {}}).find("unknown"), std::string::npos);
    device().free(m);
}

TEST_P(Calls, WithATypeThatHasNoKernelFailAndNameIt) {
    void* m = device().allocate(4096).value();
    const std::string error = errorOf({KernelOp::LayerNorm, DType::Int8, {m, m}, {m, m}, {3, 4}, {1e-5}});
    EXPECT_NE(error.find("layer norm"), std::string::npos) << error;
    EXPECT_NE(error.find("int8"), std::string::npos) << error;
    device().free(m);
}

TEST_P(Calls, WithNothingToDoDoNothing) {
    using D = DType;
    EXPECT_EQ(errorOf({KernelOp::Add, D::Fp32, {}, {}, {0}, {}}), "no error");
    EXPECT_EQ(errorOf({KernelOp::LayerNorm, D::Fp32, {}, {}, {0, 8}, {1e-5}}), "no error");
    EXPECT_EQ(errorOf({KernelOp::Matmul, D::Fp32, {}, {}, {1, 0, 4, 4}, {1, 0}}), "no error");
    EXPECT_EQ(errorOf({KernelOp::Attention, D::Fp32, {}, {}, {0, 4, 2, 2, 4, 1, 8, 8, 8}, {1}}), "no error");
    EXPECT_EQ(errorOf({KernelOp::Convolution, D::Fp32, {}, {}, {0, 1, 4, 4, 1, 3, 3, 1, 1}, {}}), "no error");
    EXPECT_EQ(errorOf({KernelOp::Embedding, D::Fp32, {}, {}, {0, 4, 9}, {}}), "no error");
}

class Memory : public OnEveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Memory, testing::ValuesIn(deviceFactories()), factoryName);

TEST_P(Memory, IsAlignedCountedAndGivenBack) {
    const Bytes before = device().bytesInUse();
    std::vector<void*> blocks;
    Bytes sum = 0;
    for (const Bytes size : {Bytes{1}, Bytes{63}, Bytes{64}, Bytes{1000}, 5 * kMiB}) {
        blocks.push_back(device().allocate(size).value());
        sum += size;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back()) % 64, 0U);
        EXPECT_EQ(device().bytesInUse() - before, sum);
    }
    for (void* block : blocks) device().free(block);
    EXPECT_EQ(device().bytesInUse(), before);
    device().free(nullptr);
}

TEST_P(Memory, ThatIsNotThereIsRefusedWithHowMuchThereIs) {
    auto limited = GetParam().make(kMiB);
    if (!limited || (*limited)->info().memoryBytes != kMiB) GTEST_SKIP() << GetParam().name << " cannot be limited";
    ComputeDevice& small = **limited;
    void* half = small.allocate(kMiB / 2).value();
    const Result<void*> refused = small.allocate(kMiB / 2 + 1);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::RuntimeFailure);
    for (const char* part : {"512 KiB were asked for", "512 KiB are in use", "1.00 MiB"}) EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
    EXPECT_EQ(small.bytesInUse(), kMiB / 2) << "a refusal takes nothing";
    void* rest = small.allocate(kMiB / 2).value();
    small.free(half);
    small.free(rest);
    // What was freed serves other sizes too.
    void* whole = small.allocate(kMiB).value();
    small.free(whole);
}

TEST_P(Memory, OfTheWholeMachineIsNotEnoughForAnything) {
    const Result<void*> refused = device().allocate(Bytes{1} << 60);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::RuntimeFailure);
}

}  // namespace
}  // namespace ringside::conformance
