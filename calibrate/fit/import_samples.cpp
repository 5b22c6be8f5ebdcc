#include "calibrate/fit/import_samples.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "calibrate/fit/assemble_profile.h"
#include "model/cost/profile_fields.h"

namespace ringside {
namespace {

void addNotes(ImportReport& report, const ImportNotes& notes) {
    for (const ImportNote& note : notes.all()) report.notes.push_back(fmt::format("{} × {} (first: {})", note.count, note.what, note.where));
}

/// The fastest tenth, at least three (or all): those for which the peers were there already.
std::vector<double> withoutWaiting(std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    seconds.resize(std::min(seconds.size(), std::max<std::size_t>(3, seconds.size() / 10)));
    return seconds;
}

}  // namespace

Result<ImportReport> importNcclTests(Profile& profile, const NcclTestsTable& table, const ImportOptions& options) {
    if (table.op.empty()) return badInput("nccl-tests", "the output does not say which collective was run; keep its comment lines ('# Collective test starting: …')");
    if (table.ranks < 2) return badInput("nccl-tests", fmt::format("the output names {} ranks; keep its comment lines ('#  Rank  0 …')", table.ranks));
    TRY(const CollectiveOp op, collectiveOpByName(table.op));
    ImportReport report;
    addNotes(report, table.notes);
    std::vector<CollectiveTimings> timings;
    int wrong = 0;
    for (const NcclTestsRow& row : table.rows) {
        const NcclTestsTiming& timing = row.outOfPlace ? *row.outOfPlace : *row.inPlace;
        if (timing.wrong.value_or(0) > 0) {
            ++wrong;
            continue;
        }
        if (row.bytes < 1) continue;
        timings.push_back({CollectiveBackend::Nccl, op, table.ranks, options.link, row.bytes, {timing.timeUs * 1e-6}, {}, {}});
    }
    if (wrong > 0) report.notes.push_back(fmt::format("{} × row with wrong values", wrong));
    if (timings.empty()) return badInput("nccl-tests", "no row with bytes, a time and correct values");
    TRY_VOID(addCollectiveTimings(profile, timings));
    report.collectivePoints = static_cast<int>(timings.size());
    return report;
}

Result<ImportReport> importTorchProfile(Profile& profile, const ProfiledKernels& kernels, const ImportOptions& options) {
    ImportReport report;
    addNotes(report, kernels.notes);
    using ShapeKey = std::tuple<DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
    std::map<ShapeKey, std::vector<double>> products;
    for (const ProfiledGemm& gemm : kernels.gemms)
        if (const auto type = arithmeticTypeByName(gemm.dtype)) products[{*type, gemm.batch, gemm.m, gemm.n, gemm.k}].push_back(gemm.seconds);
    std::vector<KernelTimings> timings;
    int rare = 0;
    for (auto& [key, seconds] : products) {
        if (static_cast<int>(seconds.size()) < options.minSamples) {
            ++rare;
            continue;
        }
        KernelTimings one;
        one.work.cls = KernelClass::Gemm;
        std::tie(one.work.math, one.work.shape.batch, one.work.shape.m, one.work.shape.n, one.work.shape.k) = key;
        one.seconds = std::move(seconds);
        timings.push_back(std::move(one));
    }
    if (rare > 0) report.notes.push_back(fmt::format("{} × product seen fewer than {} times", rare, options.minSamples));

    using CollectiveKey = std::tuple<CollectiveBackend, CollectiveOp, std::int64_t, std::int64_t>;
    std::map<CollectiveKey, std::vector<double>> collectives;
    int alone = 0;
    for (const ProfiledCollective& collective : kernels.collectives) {
        const auto op = collectiveOpByName(collective.op);
        const auto backend = collectiveBackendByName(collective.backend);
        if (!op || !backend || collective.ranks < 2) {
            ++alone;
            continue;
        }
        collectives[{*backend, *op, collective.ranks, collective.bytes}].push_back(collective.seconds);
    }
    if (alone > 0) report.notes.push_back(fmt::format("{} × collective of an unknown number of ranks, or of one", alone));
    std::vector<CollectiveTimings> points;
    for (auto& [key, seconds] : collectives)
        points.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), options.link, std::get<3>(key), withoutWaiting(std::move(seconds)), {}, {}});
    if (timings.empty() && points.empty()) return badInput("torch profile", "holds neither products with shapes nor collectives with sizes; profile with record_shapes=True");
    TRY_VOID(addKernelTimings(profile, timings));
    TRY_VOID(addCollectiveTimings(profile, points));
    report.gemmShapes = static_cast<int>(timings.size());
    report.collectivePoints = static_cast<int>(points.size());
    return report;
}

}  // namespace ringside
