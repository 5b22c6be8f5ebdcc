#include "sim/strategy/powersgd.h"

#include <algorithm>

namespace ringside {

void PowerSgd::declareBucket(StepWriter& step, const std::vector<std::uint32_t>& parameters) {
    Factors factors;
    for (const std::uint32_t p : parameters) {
        const ModelParameter& parameter = step.parameters()[p];
        const Shape& shape = step.workload().typeOf(static_cast<std::size_t>(parameter.layer)).parameters[static_cast<std::size_t>(parameter.index)].shape;
        const std::int64_t n = shape.empty() ? 1 : shape.front(), m = n > 0 ? parameter.elements / n : 0;
        const std::int64_t r = std::min({n, m, rank_});
        if (shape.size() < 2 || 2 * (n + m) * rank_ >= n * m) {
            factors.rest += parameter.elements;
            continue;
        }
        factors.compressed += parameter.elements;
        factors.p += n * r;
        factors.q += m * r;
    }
    const DType dtype = step.gradientDtype();
    const auto index = static_cast<std::int32_t>(buckets_.size());
    const auto add = [&](std::int64_t elements, bool persistent) {
        return elements == 0 ? kNoBuffer : step.addBuffer({elements * sizeOf(dtype), MemoryCategory::Buckets, BufferRole::CompressedBucket, dtype, persistent, false, -1, index});
    };
    factors.pFactors = add(factors.p, true);  // kept for the next step's warm start
    factors.qFactors = add(factors.q, true);
    factors.error = add(factors.compressed + factors.rest, true);
    factors.uncompressed = add(factors.rest, false);
    factors.copy = add(factors.compressed + factors.rest, false);
    buckets_.push_back(factors);
}

TaskId PowerSgd::reduceBucket(StepWriter& step, std::size_t b, BufferId bucket, TaskId ready, std::uint32_t axis) {
    const Factors& f = buckets_[b];
    const DType dtype = step.gradientDtype();
    const Bytes width = sizeOf(dtype), all = (f.compressed + f.rest) * width, matrices = f.compressed * width, rest = f.rest * width, p = f.p * width, q = f.q * width;
    const auto part = static_cast<std::uint16_t>(b);
    ProgramWriter& program = step.program();
    const auto kernel = [&](StreamId stream, TaskRole role, const char* name, Bytes bytes) { return step.memoryKernel(stream, Phase::GradientSync, role, name, bytes, -1, part); };
    const auto reduce = [&](std::int64_t elements, BufferId buffer, TaskId after) {
        const TaskId task = step.collective(communication_, Phase::GradientSync, TaskRole::BucketReduce, CollectiveOp::AllReduce, dtype, elements, axis, -1, part);
        program.dependOn(after);
        program.use(buffer, UseKind::Write);
        return task;
    };
    const auto orthogonalise = [&](StreamId stream, BufferId factor, Bytes bytes) {  // Gram–Schmidt, a column at a time
        for (std::int64_t column = 0; column < rank_; ++column) {
            kernel(stream, TaskRole::Orthogonalise, "gram schmidt", 3 * bytes);
            program.use(factor, UseKind::Write);
        }
    };

    // On the stream that called the hook: last step's error, a copy to find this step's, Q of the last step made orthogonal, P = M·Q.
    TaskId before = kernel(kComputeStream, TaskRole::BucketCompress, "add error", 3 * all);
    program.dependOn(ready);
    program.use(f.error, UseKind::Read);
    program.use(bucket, UseKind::Write);
    before = kernel(kComputeStream, TaskRole::BucketCompress, "copy", 2 * all);
    program.use(f.copy, UseKind::Allocate);
    program.use(f.copy, UseKind::Write);
    if (f.compressed > 0) {
        orthogonalise(kComputeStream, f.qFactors, q);
        before = kernel(kComputeStream, TaskRole::BucketCompress, "M Q", matrices + q + p);
        program.use(bucket, UseKind::Read);
        program.use(f.qFactors, UseKind::Read);
        program.use(f.pFactors, UseKind::Write);
    }
    TaskId done = before;
    if (f.rest > 0) {
        before = kernel(kComputeStream, TaskRole::BucketCompress, "copy", 2 * rest);
        program.use(f.uncompressed, UseKind::Allocate);
        program.use(bucket, UseKind::Read);
        program.use(f.uncompressed, UseKind::Write);
        const TaskId reduced = reduce(f.rest, f.uncompressed, before);
        done = kernel(callbacks_, TaskRole::BucketDecompress, "divide", 2 * rest);
        program.dependOn(reduced);
        program.use(f.uncompressed, UseKind::Read);
        program.use(bucket, UseKind::Write);
        program.use(f.uncompressed, UseKind::Free);
    }
    if (f.compressed > 0) {
        const TaskId pReduced = reduce(f.p, f.pFactors, done);
        kernel(callbacks_, TaskRole::Orthogonalise, "divide", 2 * p);
        program.dependOn(pReduced);
        program.use(f.pFactors, UseKind::Write);
        orthogonalise(callbacks_, f.pFactors, p);
        const TaskId qMade = kernel(callbacks_, TaskRole::BucketCompress, "M' P", matrices + p + q);
        program.use(bucket, UseKind::Read);
        program.use(f.qFactors, UseKind::Write);
        const TaskId qReduced = reduce(f.q, f.qFactors, qMade);
        done = kernel(callbacks_, TaskRole::BucketDecompress, "P Q'", matrices + p + q);
        program.dependOn(qReduced);
        program.use(f.pFactors, UseKind::Read);
        program.use(f.qFactors, UseKind::Read);
        program.use(bucket, UseKind::Write);
    }
    done = kernel(callbacks_, TaskRole::BucketDecompress, "error", 3 * all);
    program.use(f.copy, UseKind::Read);
    program.use(f.error, UseKind::Write);
    program.use(f.copy, UseKind::Free);
    return done;
}

}  // namespace ringside
