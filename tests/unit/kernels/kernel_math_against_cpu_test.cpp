// The arithmetic of the CUDA kernels, run on the host, against what the CPU device computes: the two must be one device to a user.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/kernel_math.h"
#include "kernels/device.h"
#include "model/base/random.h"

namespace ringside {
namespace {

constexpr std::int64_t kElements = 1000;

std::vector<float> numbers(std::uint64_t stream, double reach) {
    const CounterRandom random(7, stream);
    std::vector<float> out(kElements);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(reach * (2 * random.uniform(i) - 1));
    return out;
}

void runOnCpu(const KernelCall& call) {
    Result<std::unique_ptr<ComputeDevice>> device = makeCpuDevice();
    ASSERT_TRUE(device);
    const Result<StreamIndex> stream = (*device)->createStream("test");
    ASSERT_TRUE(stream);
    (*device)->issue(*stream, [&](const StreamContext& context) { return (*device)->run(context, call); });
    const Result<void> done = (*device)->synchronize();
    ASSERT_TRUE(done) << done.error().toString();
}

void expectNear(const std::vector<float>& device, const std::vector<float>& host, double tolerance) {
    for (std::size_t i = 0; i < host.size(); ++i) ASSERT_NEAR(device[i], host[i], tolerance * std::max(1.0, std::abs(static_cast<double>(host[i])))) << "element " << i;
}

TEST(KernelMath, ActivatesAsTheCpuDeviceDoes) {
    const std::vector<float> x = numbers(1, 6), dy = numbers(2, 2);
    for (const ActivationKind kind : {ActivationKind::Relu, ActivationKind::Gelu, ActivationKind::GeluTanh, ActivationKind::Silu, ActivationKind::Tanh}) {
        SCOPED_TRACE(static_cast<int>(kind));
        std::vector<float> y(kElements), dx(kElements), hostY(kElements), hostDx(kElements);
        KernelCall forward;
        forward.op = KernelOp::Activation;
        forward.in = {x.data()};
        forward.out = {y.data()};
        forward.dims = {kElements, static_cast<std::int64_t>(kind)};
        runOnCpu(forward);
        for (std::size_t i = 0; i < x.size(); ++i) hostY[i] = math::activation(static_cast<std::int64_t>(kind), x[i]);
        expectNear(y, hostY, 2e-6);

        const bool keepsOutput = kind == ActivationKind::Relu || kind == ActivationKind::Tanh;
        const std::vector<float>& saved = keepsOutput ? y : x;
        KernelCall backward;
        backward.op = KernelOp::ActivationGradient;
        backward.in = {dy.data(), saved.data()};
        backward.out = {dx.data()};
        backward.dims = forward.dims;
        runOnCpu(backward);
        for (std::size_t i = 0; i < x.size(); ++i) hostDx[i] = dy[i] * math::activationDerivative(static_cast<std::int64_t>(kind), saved[i]);
        expectNear(dx, hostDx, 5e-6);
    }
}

TEST(KernelMath, UpdatesAsTheCpuDeviceDoes) {
    const std::vector<float> gradient = numbers(3, 0.1);
    std::vector<float> p = numbers(4, 1), m = numbers(5, 0.1), v(kElements);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = gradient[i] * gradient[i] + 1e-4f;
    std::vector<float> hostP = p, hostM = m, hostV = v;
    constexpr std::int64_t kStep = 5;
    constexpr double kRate = 1e-3, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8, kDecay = 0.01;
    KernelCall call;
    call.op = KernelOp::AdamFused;
    call.in = {gradient.data()};
    call.out = {p.data(), m.data(), v.data()};
    call.dims = {kElements, kStep};
    call.scalars = {kRate, kBeta1, kBeta2, kEpsilon, kDecay};
    runOnCpu(call);
    const math::AdamStep step = math::adamStep(kStep, kRate, kBeta1, kBeta2, kEpsilon, kDecay);
    for (std::size_t i = 0; i < p.size(); ++i) math::adamUpdate(step, gradient[i], hostP[i], hostM[i], hostV[i]);
    expectNear(p, hostP, 1e-6);
    expectNear(m, hostM, 1e-6);
    expectNear(v, hostV, 1e-6);
}

}  // namespace
}  // namespace ringside
