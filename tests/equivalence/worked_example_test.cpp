// The worked example of docs/concepts/worked-example.md, with real kernels and a real all-reduce: two workers fit y = w·x.
//
// Samples (1, 2), (2, 4) are worker 0's and (3, 6), (4, 8) worker 1's; w = 1, learning rate 0.1, loss Σ(w·x − y)².
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <thread>

#include "calibrate/comm/gloo_communicator.h"
#include "calibrate/ranks/memory_store.h"
#include "kernels/device.h"

namespace ringside {
namespace {

struct WorkerOutcome {
    float loss = 0, ownGradient = 0, meanGradient = 0, weight = 0;
};

KernelCall callOf(KernelOp op, std::initializer_list<const void*> in, void* out, std::initializer_list<std::int64_t> dims, std::initializer_list<double> scalars) {
    KernelCall call;
    call.op = op;
    std::copy(in.begin(), in.end(), call.in.begin());
    call.out[0] = out;
    std::copy(dims.begin(), dims.end(), call.dims.begin());
    std::copy(scalars.begin(), scalars.end(), call.scalars.begin());
    return call;
}

/// One step of one worker. On a CPU the device's memory is the host's.
Result<WorkerOutcome> train(int rank, std::array<float, 2> x, std::array<float, 2> y, const std::shared_ptr<MemoryStore>& store) {
    TRY(const std::unique_ptr<ComputeDevice> device, makeCpuDevice());
    GlooWorldOptions options;
    options.env.rank = rank;
    options.env.size = 2;
    options.store = store;
    TRY(const std::unique_ptr<CommWorld> world, makeGlooWorld(options));
    const int both[] = {0, 1};
    TRY(const std::unique_ptr<Communicator> comm, world->createGroup("workers", both));
    TRY(const StreamIndex stream, device->createStream("compute"));

    WorkerOutcome out;
    float weight = 1, gradient = 0;
    std::array<float, 2> prediction{};
    device->issue(stream, [&](const StreamContext& context) -> Result<void> {
        TRY_VOID(device->run(context, callOf(KernelOp::Matmul, {x.data(), &weight}, prediction.data(), {1, 2, 1, 1, 0, 0}, {1, 0})));     // w·x
        TRY_VOID(device->run(context, callOf(KernelOp::SquaredError, {prediction.data(), y.data()}, &out.loss, {2}, {})));                // Σ(w·x − y)²
        TRY_VOID(device->run(context, callOf(KernelOp::Axpy, {y.data()}, prediction.data(), {2}, {-1})));                                 // w·x − y
        TRY_VOID(device->run(context, callOf(KernelOp::Matmul, {x.data(), prediction.data()}, &gradient, {1, 1, 1, 2, 1, 0}, {2, 0})));   // Σ 2x(w·x − y)
        out.ownGradient = gradient;
        TRY_VOID(comm->allReduce(context, &gradient, 1, DType::Fp32, Reduction::Average));
        out.meanGradient = gradient;
        return device->run(context, callOf(KernelOp::Axpy, {&gradient}, &weight, {1}, {-0.1}));
    });
    TRY_VOID(device->synchronize());
    out.weight = weight;
    return out;
}

TEST(WorkedExample, HasGradientsMinus10AndMinus50AndEndsAtFour) {
    const auto store = std::make_shared<MemoryStore>();
    std::array<std::optional<Result<WorkerOutcome>>, 2> outcomes;
    std::thread first([&] { outcomes[0] = train(0, {1, 2}, {2, 4}, store); });
    std::thread second([&] { outcomes[1] = train(1, {3, 4}, {6, 8}, store); });
    first.join();
    second.join();
    for (const auto& outcome : outcomes) ASSERT_TRUE(outcome && *outcome) << outcome->error().toString();
    const WorkerOutcome a = **outcomes[0], b = **outcomes[1];
    // Residuals −1, −2 and −3, −4.
    EXPECT_FLOAT_EQ(a.loss, 5);
    EXPECT_FLOAT_EQ(b.loss, 25);
    // 2·1·(−1) + 2·2·(−2) and 2·3·(−3) + 2·4·(−4).
    EXPECT_FLOAT_EQ(a.ownGradient, -10);
    EXPECT_FLOAT_EQ(b.ownGradient, -50);
    for (const WorkerOutcome& worker : {a, b}) {
        EXPECT_FLOAT_EQ(worker.meanGradient, -30);
        EXPECT_FLOAT_EQ(worker.weight, 4);  // 1 − 0.1·(−30)
    }
}

}  // namespace
}  // namespace ringside
