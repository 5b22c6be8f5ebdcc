// Rows of kernel tables: a matmul or an attention kernel by its shape, priced by ComputeCost as a training step prices it.
#include <cmath>
#include <optional>
#include <regex>

#include <fmt/format.h>

#include "calibrate/published/fit_rows.h"
#include "calibrate/published/published_cluster.h"
#include "model/cost/compute_cost.h"

namespace ringside {
namespace {

std::string textAt(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}
double numberAt(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

/// Arithmetic of a table: "bf16xbf16->bf16", "f32xf32->f32" (tensor cores take it as tf32), "fp8", "fp16/bf16".
std::optional<DType> arithmeticOf(const std::string& dtype, const Device& device) {
    const auto supported = [&](DType type) { return device.peakDenseTflops.count(type) > 0 ? std::optional(type) : std::nullopt; };
    if (dtype.find("fp8") != std::string::npos) return supported(DType::Fp8);
    if (dtype.find("bf16") != std::string::npos) return supported(DType::Bf16);
    if (dtype.find("f16") != std::string::npos) return supported(DType::Fp16);
    if (dtype.find("f32") != std::string::npos) return supported(DType::Tf32);
    return std::nullopt;
}

/// "b=1, m=4096, k=5120, n=1536, layout=TN" → the number behind a name; 0 without.
double namedIn(const std::string& text, const std::string& name) {
    std::smatch found;
    return std::regex_search(text, found, std::regex("(^|[ ,])" + name + "=(\\d{1,9})")) ? std::stod(found[2]) : 0;
}

class KernelTableReader {
public:
    KernelTableReader(const PublishedRecord& record, const Device& device) : record_(record), json_(record.json), device_(device) {}

    std::vector<FitRow> read() {
        const std::string kind = textAt(json_, "kind");
        const auto math = arithmeticOf(textAt(json_, "dtype"), device_);
        if (!math) return {};
        math_ = *math;
        if (kind == "mamf") best();
        const auto table = json_.find("table");
        if (table == json_.end() || !table->is_array()) return std::move(rows_);
        for (const Json& row : *table) {
            if (!row.is_array()) continue;
            if (kind == "gemm") matmul(row);
            if (kind == "attention") attention(row);
            if (kind == "attention_fwd_bwd") bothWays(row);
        }
        return std::move(rows_);
    }

private:
    KernelWork matmulWork(const GemmShape& shape) const {
        KernelWork work;
        work.cls = KernelClass::Gemm;
        work.math = math_;
        work.shape = shape;
        work.flops = 2.0 * static_cast<double>(shape.batch * shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
        return work;
    }

    KernelWork attentionWork(bool forward, double samplesTimesHeads, double seqLen, double head, bool causal) const {
        KernelWork work;
        work.cls = forward ? KernelClass::AttentionForward : KernelClass::AttentionBackward;
        work.math = math_;
        work.causal = causal;
        work.shape = {static_cast<std::int64_t>(samplesTimesHeads), static_cast<std::int64_t>(seqLen), static_cast<std::int64_t>(seqLen), static_cast<std::int64_t>(head)};
        work.flops = (forward ? 4.0 : 10.0) * samplesTimesHeads * seqLen * seqLen * head;
        work.bytes = (forward ? 4.0 : 8.0) * samplesTimesHeads * seqLen * head * static_cast<double>(sizeOf(math_));
        return work;
    }

    void add(const std::string& what, double seconds, std::vector<KernelWork> works) {
        if (!(seconds > 0) || !std::isfinite(seconds)) return;
        FitRow row{fmt::format("{}/{}", record_.id, what), record_.repository, FitRows::Kernels, device_, seconds, {}};
        row.predict = [device = device_, math = math_, works = std::move(works)](const PublishedFigures& figures) -> Result<double> {
            Profile profile = datasheetProfile(device, figures);
            profile.sustainedClock.value = 1;  // a benchmark of seconds on a cool device
            TRY(const ComputeCost cost, ComputeCost::create(device, profile, math));
            double sum = 0;
            for (const KernelWork& work : works) sum += cost.seconds(work);
            return sum;
        };
        rows_.push_back(std::move(row));
    }

    void addMatmul(const GemmShape& shape, double tflops) {
        if (shape.batch < 1 || shape.m < 1 || shape.n < 1 || shape.k < 1 || !(tflops > 0)) return;
        const KernelWork work = matmulWork(shape);
        add(fmt::format("{}x{}x{}x{}", shape.batch, shape.m, shape.n, shape.k), work.flops / (tflops * 1e12), {work});
    }

    void best() {
        std::smatch found;
        const std::string text = textAt(json_, "best_shape_MxNxK");
        if (!std::regex_search(text, found, std::regex("(\\d{1,9})x(\\d{1,9})x(\\d{1,9})"))) return;
        addMatmul({1, std::stoll(found[1]), std::stoll(found[2]), std::stoll(found[3])}, numberAt(json_, "tflops"));
    }

    void matmul(const Json& row) {
        if (row.size() == 5 && row[0].is_number_integer() && row[1].is_number_integer() && row[2].is_number_integer() && row[3].is_number_integer() && row[4].is_number())
            return addMatmul({row[0], row[1], row[2], row[3]}, row[4].get<double>());
        if (row.size() != 3 || !row[0].is_string() || !row[2].is_number()) return;
        const std::string shape = row[0].get<std::string>();
        if (namedIn(shape, "ng") > 0) return;  // grouped: another kernel
        const auto whole = [&](const char* name) { return static_cast<std::int64_t>(namedIn(shape, name)); };
        addMatmul({whole("b"), whole("m"), whole("n"), whole("k")}, row[2].get<double>());
    }

    /// SimuMax: a causal kernel whose FLOPs are counted in full.
    void attention(const Json& row) {
        if (row.size() != 3 || !row[0].is_string() || !row[2].is_number()) return;
        const std::string shape = row[0].get<std::string>();
        const double head = namedIn(shape, "qk_head_dim"), seqLen = namedIn(shape, "seq_len"), count = namedIn(shape, "batch") * namedIn(shape, "head_num");
        if (head <= 0 || head != namedIn(shape, "v_head_dim") || seqLen <= 0 || count <= 0) return;
        const bool forward = record_.id.find("bwd") == std::string::npos;
        const KernelWork work = attentionWork(forward, count, seqLen, head, true);
        add(shape, work.flops / (row[2].get<double>() * 1e12), {work});
    }

    /// FlashAttention's benchmark: forward and backward together, causal FLOPs halved, backward counted 2.5 times the forward.
    void bothWays(const Json& row) {
        if (row.size() != 2 || !row[0].is_number() || !row[1].is_number()) return;
        const double head = numberAt(json_, "head_dim"), hidden = numberAt(json_, "hidden"), tokens = numberAt(json_, "tokens_per_batch"), seqLen = row[0].get<double>();
        if (head <= 0 || hidden <= 0 || tokens <= 0 || seqLen <= 0) return;
        const auto causalAt = json_.find("causal");
        const bool causal = causalAt != json_.end() && causalAt->is_boolean() && causalAt->get<bool>();
        const double count = tokens / seqLen * hidden / head;
        std::vector<KernelWork> works{attentionWork(true, count, seqLen, head, causal), attentionWork(false, count, seqLen, head, causal)};
        const double flops = (works[0].flops + works[1].flops) * (causal ? 0.5 : 1.0);
        add(fmt::format("{:.0f}", seqLen), flops / (row[1].get<double>() * 1e12), std::move(works));
    }

    const PublishedRecord& record_;
    const Json& json_;
    const Device& device_;
    DType math_ = DType::Bf16;
    std::vector<FitRow> rows_;
};

}  // namespace

std::vector<FitRow> kernelRows(const PublishedRecord& record, const Catalogs& catalogs) {
    const auto device = catalogs.hardware.findDevice(deviceNameOf(textAt(record.json, "gpu")));
    if (!device) return {};
    return KernelTableReader(record, *device).read();
}

}  // namespace ringside
