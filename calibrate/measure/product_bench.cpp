#include "calibrate/measure/product_bench.h"

#include "calibrate/measure/sampler.h"
#include "kernels/device.h"
#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

/// Runs inside StreamWork, on the thread that computes: the sampler's clock is that thread's.
Result<SampleSeries> sampleProduct(ComputeDevice& device, const StreamContext& context, const GemmShape& shape, DType type, double seconds, std::vector<std::uint16_t>& memory) {
    const auto elements = [&](std::int64_t rows, std::int64_t columns) { return static_cast<std::size_t>(shape.batch * rows * columns * sizeOf(type) / 2); };
    const std::size_t a = elements(shape.m, shape.k), b = elements(shape.k, shape.n), c = elements(shape.m, shape.n);
    memory.assign(a + b + c + 96, 0);
    KernelCall call;
    call.op = KernelOp::Matmul;
    call.dtype = type;
    call.in = {memory.data(), memory.data() + (a + 31) / 32 * 32};
    call.out = {memory.data() + (a + 31) / 32 * 32 + (b + 31) / 32 * 32};
    call.dims = {shape.batch, shape.m, shape.n, shape.k, 0, 1};
    call.scalars = {1, 0};
    SamplerOptions options;
    options.maxSeconds = seconds;
    options.minSamples = 5;
    const std::unique_ptr<StoppingCriterion> enough = stopAtRelativeError(0.005);
    return sample([&] { return device.run(context, call); }, *enough, options, systemClock());
}

}  // namespace

Result<std::vector<KernelTimings>> benchProducts(const RunRanksOptions& ranks, const ProductBenchOptions& options, int& dropped) {
    const auto work = [&](RankContext& context) -> Result<std::string> {
        CpuDeviceOptions cpu;
        cpu.threads = ranks.threads;
        cpu.firstCore = context.firstCore;
        TRY(const std::unique_ptr<ComputeDevice> device, makeCpuDevice(cpu));
        TRY(const StreamIndex stream, device->createStream("compute"));
        Json out = Json::array();
        std::vector<std::uint16_t> memory;
        for (const DType type : options.types)
            for (const GemmShape& shape : options.shapes) {
                if (context.progress) context.progress("products");
                device->issue(stream, [&](const StreamContext& on) -> Result<void> {
                    TRY(const SampleSeries series, sampleProduct(*device, on, shape, type, options.seconds, memory));
                    out.push_back({{"seconds", series.seconds}, {"dropped", series.dropped()}});
                    return {};
                });
                TRY_VOID(device->synchronize());
            }
        return out.dump();
    };
    TRY(const std::optional<std::vector<std::string>> results, runRanks(ranks, work));
    std::vector<KernelTimings> timings;
    if (!results) return timings;
    for (const std::string& text : *results) {
        const Json json = Json::parse(text);
        std::size_t i = 0;
        for (const DType type : options.types)
            for (const GemmShape& shape : options.shapes) {
                if (i >= timings.size()) timings.push_back({"", gemmWork("product", shape, type, type), {}});
                for (const Json& seconds : json[i]["seconds"]) timings[i].seconds.push_back(seconds.get<double>());
                dropped += json[i]["dropped"].get<int>();
                ++i;
            }
    }
    return timings;
}

}  // namespace ringside
