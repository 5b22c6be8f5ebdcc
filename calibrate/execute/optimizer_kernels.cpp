#include "calibrate/execute/optimizer_kernels.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace ringside {
namespace {

bool isState(BufferRole role) { return role == BufferRole::OptimizerState || role == BufferRole::OptimizerShard; }
bool isMaster(BufferRole role) { return role == BufferRole::MasterParameter || role == BufferRole::MasterShard; }

Operand element(const RankProgram& program, BufferId buffer, std::int64_t at) { return inBuffer(buffer, at * sizeOf(program.buffers[buffer].dtype)); }

/// The uses come target by target: gradient (read), parameter, state, master (written).
class Targets {
public:
    Targets(const RankProgram& program, Contents& contents, bool twoMoments) : program_(program), contents_(contents), twoMoments_(twoMoments) {}

    Result<std::vector<UpdateRun>> runs(std::span<const BufferUse> uses) {
        std::vector<UpdateRun> out;
        bool named = false;
        for (std::size_t i = 0; i < uses.size();) {
            if (uses[i].kind != UseKind::Read) {
                ++i;
                continue;
            }
            const BufferUse gradient = uses[i++];
            std::optional<BufferUse> parameter, state, master;
            for (; i < uses.size() && uses[i].kind == UseKind::Write; ++i) {
                const BufferRole role = program_.buffers[uses[i].buffer].role;
                (isState(role) ? state : isMaster(role) ? master : parameter) = uses[i];
            }
            if (!parameter) return failure(ErrorCode::MissingCapability, "optimizer", "the schedule names a gradient without the parameter it updates; this cannot be run for real");
            named = true;  // though this rank's shard may be all padding
            // A gradient that lives in a bucket with others is named once for each of them: the parameter says which is meant.
            for (const Overlap& overlap : contents_.meet(gradient, *parameter)) addRuns(out, gradient, *parameter, state, master, overlap);
        }
        if (!named) return failure(ErrorCode::MissingCapability, "optimizer", "the schedule does not say what its optimizer updates; this strategy with these settings cannot be run for real");
        return out;
    }

private:
    void addRuns(std::vector<UpdateRun>& out, const BufferUse& gradient, const BufferUse& parameter, const std::optional<BufferUse>& state, const std::optional<BufferUse>& master,
                 const Overlap& overlap) {
        UpdateRun run{element(program_, gradient.buffer, overlap.from), element(program_, parameter.buffer, overlap.to), {}, {}, {}, overlap.count};
        // State and master hold what the gradient holds: same place, moments one after the other.
        if (master) run.master = element(program_, master->buffer, offsetIn(*master, gradient, overlap));
        if (state) {
            const Bytes bytes = program_.buffers[state->buffer].bytes;
            const std::int64_t at = offsetIn(*state, gradient, overlap);
            run.first = inBuffer(state->buffer, at * 4);
            if (twoMoments_) run.second = inBuffer(state->buffer, bytes / 2 + at * 4);
        }
        out.push_back(run);
    }

    std::int64_t offsetIn(const BufferUse& own, const BufferUse& gradient, const Overlap& overlap) {
        for (const Overlap& place : contents_.meet(gradient, own))
            if (place.from <= overlap.from && overlap.from + overlap.count <= place.from + place.count) return place.to + overlap.from - place.from;
        return overlap.from;  // no layout: it mirrors the gradient
    }

    const RankProgram& program_;
    Contents& contents_;
    bool twoMoments_;
};

class Passes {
public:
    Passes(const Hyperparameters& hyper, std::vector<BoundCall>& calls, ScratchSizes& scratch) : hyper_(hyper), calls_(calls), scratch_(scratch) {}

    /// Elements [from, to) of all runs, as one line.
    Result<void> apply(std::string_view pass, std::span<const UpdateRun> runs, std::int64_t from, std::int64_t to) {
        std::int64_t at = 0;
        for (const UpdateRun& run : runs) {
            const std::int64_t begin = std::max(from, at), end = std::min(to, at + run.elements);
            if (begin < end) TRY_VOID(one(pass, run, begin - at, end - begin, at));
            at += run.elements;
        }
        return {};
    }

private:
    Result<void> one(std::string_view pass, const UpdateRun& run, std::int64_t from, std::int64_t n, std::int64_t line) {
        const auto part = [&](Operand operand) {
            operand.offset += from * 4;
            return operand;
        };
        const Operand g = part(run.gradient), p = part(run.updated()), m = part(run.first), v = part(run.second);
        const Operand denominator = inScratch(kUpdateScratch, (line + from) * 4);
        scratch_[kUpdateScratch] = std::max(scratch_[kUpdateScratch], pass.starts_with("adam.") && pass != "adam.fused" ? (line + from + n) * 4 : 0);
        if (pass == "adam.decay") call(KernelOp::Scale, {p}, {p}, {n}, {1 - hyper_.learningRate * hyper_.weightDecay});
        else if (pass == "adam.lerp_m") call(KernelOp::Lerp, {g}, {m}, {n}, {1 - hyper_.beta1});
        else if (pass == "adam.mul_v") call(KernelOp::Scale, {v}, {v}, {n}, {hyper_.beta2});
        else if (pass == "adam.addcmul_v") call(KernelOp::MultiplyAccumulate, {g, g}, {v}, {n}, {1 - hyper_.beta2});
        else if (pass == "adam.sqrt_v") call(KernelOp::SquareRoot, {v}, {denominator}, {n}, {});
        else if (pass == "adam.div") call(KernelOp::Scale, {denominator}, {denominator}, {n}, {1, hyper_.beta2}, StepScalar::AdamDenominator);
        else if (pass == "adam.add_eps") call(KernelOp::AddScalar, {denominator}, {denominator}, {n}, {hyper_.epsilon});
        else if (pass == "adam.addcdiv_p") call(KernelOp::DivideAccumulate, {m, denominator}, {p}, {n}, {1, hyper_.learningRate, hyper_.beta1}, StepScalar::AdamStep);
        else if (pass == "adam.fused") call(KernelOp::AdamFused, {g}, {p, m, v}, {n, 1}, {hyper_.learningRate, hyper_.beta1, hyper_.beta2, hyper_.epsilon, hyper_.weightDecay}, StepScalar::StepNumber);
        else if (pass == "sgd.mul_buffer") call(KernelOp::Scale, {m}, {m}, {n}, {hyper_.momentum});
        else if (pass == "sgd.add_buffer") call(KernelOp::Axpy, {g}, {m}, {n}, {1});
        else if (pass == "sgd.add_p") call(KernelOp::Axpy, {run.first.kind == Operand::Kind::None ? g : m}, {p}, {n}, {-hyper_.learningRate});
        else if (pass == "sgd.fused") call(KernelOp::SgdFused, {g}, {p, m}, {n, 1}, {hyper_.learningRate, run.first.kind == Operand::Kind::None ? 0 : hyper_.momentum}, StepScalar::StepNumber);
        else if (pass == "master.cast_parameter") call(KernelOp::Copy, {part(run.master)}, {part(run.parameter)}, {n}, {});
        else return failure(ErrorCode::MissingCapability, "optimizer", fmt::format("its pass '{}' cannot be run for real; use adam, adamw, sgd or momentum in fp32", pass));
        return {};
    }

    void call(KernelOp op, std::initializer_list<Operand> in, std::initializer_list<Operand> out, std::initializer_list<std::int64_t> dims, std::initializer_list<double> scalars,
              StepScalar stepScalar = StepScalar::None) {
        BoundCall& bound = calls_.emplace_back();
        bound.call.op = op;
        bound.stepScalar = stepScalar;
        std::size_t i = 0;
        for (const Operand& operand : in) bound.in[i++] = operand.kind == Operand::Kind::None ? Operand{} : operand;
        i = 0;
        for (const Operand& operand : out) bound.out[i++] = operand.kind == Operand::Kind::None ? Operand{} : operand;
        std::copy(dims.begin(), dims.end(), bound.call.dims.begin());
        std::copy(scalars.begin(), scalars.end(), bound.call.scalars.begin());
    }

    const Hyperparameters& hyper_;
    std::vector<BoundCall>& calls_;
    ScratchSizes& scratch_;
};

}  // namespace

Result<bool> hasTwoMoments(const Optimizer& optimizer) {
    if (optimizer.kind == OptimizerKind::Adam || optimizer.kind == OptimizerKind::AdamW) return true;
    if (optimizer.kind == OptimizerKind::Sgd || optimizer.kind == OptimizerKind::Momentum) return false;
    return failure(ErrorCode::MissingCapability, "training.optimizer", fmt::format("{} cannot be run for real; use adam, adamw, sgd or momentum", nameOf(optimizer)));
}

Result<std::vector<std::uint32_t>> bindPasses(std::span<const KernelWork> kernels, std::span<const UpdateRun> runs, const Optimizer& optimizer, const Hyperparameters& hyper,
                                              std::vector<BoundCall>& calls, ScratchSizes& scratch) {
    Hyperparameters own = hyper;
    if (optimizer.kind == OptimizerKind::Adam) own.weightDecay = 0;
    std::int64_t elements = 0;
    for (const UpdateRun& run : runs) elements += run.elements;

    // A pass over many elements takes several kernels, which share them by their bytes.
    std::map<std::string_view, double> total, done;
    for (const KernelWork& work : kernels) total[work.name] += work.bytes;
    Passes passes(own, calls, scratch);
    std::vector<std::uint32_t> counts;
    for (const KernelWork& work : kernels) {
        const std::size_t before = calls.size();
        if (work.name != "adam.count_steps") {
            double& so = done[work.name];
            const auto place = [&](double bytes) { return static_cast<std::int64_t>(std::llround(static_cast<double>(elements) * bytes / total[work.name])); };
            const std::int64_t from = place(so), to = place(so + work.bytes);
            so += work.bytes;
            TRY_VOID(passes.apply(work.name, runs, from, to));
        }
        counts.push_back(static_cast<std::uint32_t>(calls.size() - before));
    }
    return counts;
}

Result<std::vector<std::uint32_t>> bindOptimizer(const Schedule& schedule, const RankProgram& program, std::span<const Task> group, Contents& contents, const Optimizer& optimizer,
                                                 const Hyperparameters& hyper, std::vector<BoundCall>& calls, ScratchSizes& scratch) {
    TRY(const bool twoMoments, hasTwoMoments(optimizer));
    TRY(const std::vector<UpdateRun> runs, Targets(program, contents, twoMoments).runs(program.usesOf(group.back())));
    std::vector<KernelWork> kernels;
    for (const Task& task : group) kernels.push_back(schedule.kernels[task.work]);
    return bindPasses(kernels, runs, optimizer, hyper, calls, scratch);
}

}  // namespace ringside
