#include "calibrate/validate/holdout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include <fmt/format.h>

#include "calibrate/fit/robust.h"
#include "calibrate/measure/compute_bench.h"
#include "model/cost/compute_cost.h"
#include "model/cost/measured_collectives.h"
#include "model/cost/profile_fields.h"
#include "model/workload/kernels_of.h"

namespace ringside {
namespace {

constexpr std::size_t kEvery = 5, kFewest = 3;

const char* groupOf(KernelClass cls) {
    switch (cls) {
        case KernelClass::Gemm: return "matrix products";
        case KernelClass::Convolution: return "convolutions";
        case KernelClass::AttentionForward: case KernelClass::AttentionBackward: return "attention";
        case KernelClass::Memory: return "memory";
    }
    return "memory";
}

/// By size, so that every fifth is one between others.
double sizeOf(const KernelTimings& timings) { return timings.work.cls == KernelClass::Memory ? timings.work.bytes : timings.work.flops; }

Result<ComputeCost> costOf(const Profile& profile) {
    Device device;
    device.name = profile.device;
    TRY(device, withMeasuredFigures(device, profile));
    return ComputeCost::create(device, profile, DType::Fp32);
}

Result<void> holdOutKernels(const Profile& profile, std::span<const KernelTimings> kernels, std::vector<HeldOutPoint>& points, std::size_t& fitted) {
    std::map<std::string, std::vector<const KernelTimings*>> byName;
    for (const KernelTimings& one : kernels) byName[one.name].push_back(&one);
    std::vector<KernelTimings> rest;
    std::vector<const KernelTimings*> left;
    std::size_t turn = 0;
    for (auto& [name, list] : byName) {
        std::stable_sort(list.begin(), list.end(), [](const KernelTimings* a, const KernelTimings* b) { return sizeOf(*a) < sizeOf(*b); });
        for (std::size_t i = 0; i < list.size(); ++i) {
            // The first and the last stay: what lies outside the measured range is another question.
            const bool inner = i > 0 && i + 1 < list.size();
            if (inner && list.size() >= kFewest && turn++ % kEvery == 0) left.push_back(list[i]);
            else rest.push_back(*list[i]);
        }
    }
    if (left.empty()) return {};
    fitted += rest.size();
    Profile refitted = profile;
    refitted.kernels.clear();
    refitted.gemmTable.clear();
    TRY_VOID(addKernelTimings(refitted, rest));
    TRY(const ComputeCost cost, costOf(refitted));
    for (const KernelTimings* one : left) {
        KernelWork work = one->work;
        work.name = one->name;
        points.push_back({groupOf(work.cls), one->name.empty() ? "product" : one->name, cost.seconds(work), median(one->seconds)});
    }
    return {};
}

Result<void> holdOutCollectives(std::span<const CollectiveTimings> collectives, std::vector<HeldOutPoint>& points, std::size_t& fitted) {
    std::map<std::tuple<CollectiveBackend, CollectiveOp, std::int64_t, std::string>, std::vector<const CollectiveTimings*>> byCurve;
    for (const CollectiveTimings& one : collectives) byCurve[{one.backend, one.op, one.ranks, one.link}].push_back(&one);
    for (auto& [key, list] : byCurve) {
        std::stable_sort(list.begin(), list.end(), [](const CollectiveTimings* a, const CollectiveTimings* b) { return a->bytes < b->bytes; });
        if (list.size() < kFewest) continue;
        for (std::size_t out = 2; out + 1 < list.size(); out += 2) {
            std::vector<CollectiveTimings> rest;
            for (std::size_t i = 0; i < list.size(); ++i)
                if (i != out) rest.push_back(*list[i]);
            Profile refitted;
            TRY_VOID(addCollectiveTimings(refitted, rest));
            const double predicted = measuredTime(refitted.collectives.front(), list[out]->bytes).seconds;
            points.push_back({std::string(nameOf(list[out]->op)), fmt::format("{} bytes", list[out]->bytes), predicted, median(list[out]->seconds)});
            fitted += rest.size();
        }
    }
    return {};
}

HoldoutGroup groupOf(std::string name, std::span<const HeldOutPoint* const> points) {
    HoldoutGroup group{std::move(name), points.size()};
    std::vector<double> errors;
    double predicted = 0, measured = 0;
    for (const HeldOutPoint* point : points) {
        errors.push_back(std::abs(point->predicted / point->measured - 1));
        predicted += point->predicted;
        measured += point->measured;
    }
    std::sort(errors.begin(), errors.end());
    for (const double error : errors) group.mape += error / static_cast<double>(errors.size());
    group.median = median(errors);
    group.p90 = errors[static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(errors.size()))) - 1];
    group.worst = errors.back();
    group.total = predicted / measured - 1;
    return group;
}

bool isCollective(const HeldOutPoint& point) { return point.name.ends_with(" bytes"); }

}  // namespace

Result<std::vector<HeldOutPoint>> heldOutPoints(const Profile& profile, std::span<const KernelTimings> kernels, std::span<const CollectiveTimings> collectives, std::size_t& fitted) {
    std::vector<HeldOutPoint> points;
    TRY_VOID(holdOutKernels(profile, kernels, points, fitted));
    TRY_VOID(holdOutCollectives(collectives, points, fitted));
    return points;
}

std::vector<HoldoutGroup> holdoutGroups(std::span<const HeldOutPoint> points) {
    std::vector<const HeldOutPoint*> kernels;
    std::map<std::string, std::vector<const HeldOutPoint*>> byGroup;
    for (const HeldOutPoint& point : points) {
        byGroup[point.group].push_back(&point);
        if (!isCollective(point)) kernels.push_back(&point);
    }
    std::vector<HoldoutGroup> out;
    if (!kernels.empty()) out.push_back(groupOf("all kernels", kernels));
    for (const auto& [name, own] : byGroup) out.push_back(groupOf(name, own));
    return out;
}

Result<Holdout> holdoutOf(const SampleFile& samples, const Profile& profile) {
    if (!profile.environment) return badInput(samples.path(), "the profile does not say where it was measured, so its samples cannot be told apart");
    const std::string here = fingerprint(*profile.environment);
    std::map<std::pair<std::string, std::string>, KernelTimings> kernels;  // equal kernels of several models are one series
    std::map<std::string, CollectiveTimings> collectives;                   // a later measurement replaces an earlier one
    for (const StoredSeries& series : samples.series()) {
        if (series.fingerprint != here) continue;
        char type[16] = {}, op[32] = {}, link[32] = {};
        long long m = 0, n = 0, k = 0, bytes = 0;
        if (series.settings.contains("work")) {
            const std::string name = series.settings["work"]["name"].get<std::string>();
            KernelTimings& into = kernels[{name, series.settings["work"].dump()}];
            into.name = name;
            into.work = kernelWorkFrom(series.settings["work"]);
            into.seconds.insert(into.seconds.end(), series.seconds.begin(), series.seconds.end());
        } else if (std::sscanf(series.key.c_str(), "product %15s %lldx%lldx%lld", type, &m, &n, &k) == 4) {
            const std::optional<DType> math = arithmeticTypeByName(type);
            if (!math) continue;
            kernels[{"", series.key}] = {"", gemmWork("product", {1, m, n, k}, *math, *math), series.seconds};
        } else if (std::sscanf(series.key.c_str(), "collective %31s %lld over %31s", op, &bytes, link) == 3) {
            TRY(const CollectiveOp which, collectiveOpByName(op));
            collectives[fmt::format("{} {}", series.key, series.settings.value("ranks", 2))] = {CollectiveBackend::Gloo, which, series.settings.value("ranks", 2), link, bytes, series.seconds, series.cpuSeconds, {}};
        }
    }
    if (kernels.empty() && collectives.empty()) return badInput(samples.path(), "holds no series that was measured where the profile was; is it the file that was written beside it?");
    std::vector<KernelTimings> kernelList;
    for (auto& [key, timings] : kernels) kernelList.push_back(std::move(timings));
    std::vector<CollectiveTimings> collectiveList;
    for (auto& [key, timings] : collectives) collectiveList.push_back(std::move(timings));
    Holdout out;
    TRY(const std::vector<HeldOutPoint> points, heldOutPoints(profile, kernelList, collectiveList, out.fitted));
    out.groups = holdoutGroups(points);
    return out;
}

}  // namespace ringside
