#include "model/cost/measurements_json.h"

#include <algorithm>

#include "model/base/names.h"
#include "model/cost/profile_fields.h"

namespace ringside {
namespace {

constexpr double kLeastSeconds = 1e-12, kMostSeconds = 1e6;
constexpr double kMostWork = 1e24;
constexpr double kMostSpread = 10;
constexpr std::int64_t kMaxDimension = std::int64_t{1} << 40;

Result<double> required(const JsonCursor& cursor, std::string_view key, double min, double max) {
    TRY(const JsonCursor value, cursor.at(key));
    return value.asNumber(min, max);
}

Result<DType> arithmeticType(const JsonCursor& cursor) {
    TRY(const std::string name, cursor.asString());
    if (const auto type = arithmeticTypeByName(name)) return *type;
    std::vector<std::string> known;
    for (const DType type : kArithmeticTypes) known.emplace_back(nameOf(type));
    return cursor.error(unknownName("arithmetic type", name, known));
}

Result<KernelPoint> kernelPointFromJson(const JsonCursor& cursor) {
    TRY_VOID(cursor.keys({"bytes", "flops", "dtype", "batch", "m", "n", "k", "causal", "seconds", "relative_spread"}));
    KernelPoint point;
    TRY(point.seconds, required(cursor, "seconds", kLeastSeconds, kMostSeconds));
    TRY(point.relativeSpread, cursor.numberOr("relative_spread", 0, 0, kMostSpread));
    TRY(point.bytes, required(cursor, "bytes", 0, kMostWork));
    if (!cursor.has("flops")) {
        for (const char* key : {"dtype", "batch", "m", "n", "k", "causal"})
            if (const auto stray = cursor.find(key)) return stray->error("belongs to an arithmetic kernel, which also has 'flops'");
        return point;
    }
    TRY(point.flops, required(cursor, "flops", 1, kMostWork));
    TRY(point.shape.batch, cursor.intOr("batch", 1, 1, kMaxDimension));
    for (const auto& [key, field] : {std::pair{"m", &GemmShape::m}, {"n", &GemmShape::n}, {"k", &GemmShape::k}}) {
        TRY(const JsonCursor dimension, cursor.at(key));
        TRY(point.shape.*field, dimension.asInt(1, kMaxDimension));
    }
    if (const auto dtype = cursor.find("dtype")) {
        TRY(point.math, arithmeticType(*dtype));
    }
    TRY(point.causal, cursor.boolOr("causal", false));
    return point;
}

Json toJson(const KernelPoint& point) {
    Json json = Json::object();
    if (point.flops > 0) {
        json["dtype"] = std::string(nameOf(point.math));
        json["batch"] = point.shape.batch;
        json["m"] = point.shape.m;
        json["n"] = point.shape.n;
        json["k"] = point.shape.k;
        if (point.causal) json["causal"] = true;
        json["flops"] = point.flops;
    }
    json["bytes"] = point.bytes;
    json["seconds"] = point.seconds;
    json["relative_spread"] = point.relativeSpread;
    return json;
}

Result<CollectiveCurve> curveFromJson(const JsonCursor& cursor) {
    TRY_VOID(cursor.keys({"backend", "op", "ranks", "link", "points", "cpu_seconds_per_call", "cpu_seconds_per_byte", "compute_slowdown",
                          "slowdown_by_compute"}));
    CollectiveCurve curve;
    const auto located = [](auto result, const JsonCursor& at) {
        if (!result) result.error().place = at.place();
        return result;
    };
    TRY(const JsonCursor op, cursor.at("op"));
    TRY(const std::string opName, op.asString());
    TRY(curve.op, located(collectiveOpByName(opName), op));
    if (const auto backend = cursor.find("backend")) {
        TRY(const std::string name, backend->asString());
        TRY(curve.backend, located(collectiveBackendByName(name), *backend));
    }
    TRY(const JsonCursor ranks, cursor.at("ranks"));
    TRY(curve.ranks, ranks.asInt(2, std::int64_t{1} << 30));
    TRY(curve.link, cursor.stringOr("link", ""));
    TRY(curve.cpuSecondsPerCall, cursor.numberOr("cpu_seconds_per_call", 0, 0, kMostSeconds));
    TRY(curve.cpuSecondsPerByte, cursor.numberOr("cpu_seconds_per_byte", 0, 0, 1));
    TRY(curve.computeSlowdown, cursor.numberOr("compute_slowdown", 0, 0, 1000));
    TRY(curve.slowdownByCompute, cursor.numberOr("slowdown_by_compute", 0, 0, 1000));
    TRY(const JsonCursor list, cursor.at("points"));
    TRY(const std::vector<JsonCursor> rows, list.items());
    if (rows.empty()) return list.error("has no points; leave the curve out");
    for (const JsonCursor& row : rows) {
        TRY_VOID(row.keys({"bytes", "seconds", "relative_spread"}));
        CollectivePoint point;
        TRY(const JsonCursor bytes, row.at("bytes"));
        TRY(point.bytes, bytes.asInt(1, std::int64_t{1} << 50));
        TRY(point.seconds, required(row, "seconds", kLeastSeconds, kMostSeconds));
        TRY(point.relativeSpread, row.numberOr("relative_spread", 0, 0, kMostSpread));
        if (!curve.points.empty() && point.bytes <= curve.points.back().bytes) return bytes.error("sizes must grow from point to point");
        curve.points.push_back(point);
    }
    return curve;
}

}  // namespace

Result<KernelPoints> kernelPointsFromJson(const JsonCursor& cursor) {
    if (!cursor.value().is_object()) return cursor.error("expected an object with a list of points per kernel");
    KernelPoints kernels;
    for (const auto& item : cursor.value().items()) {
        TRY(const JsonCursor list, cursor.at(item.key()));
        TRY(const std::vector<JsonCursor> rows, list.items());
        std::vector<KernelPoint>& points = kernels[item.key()];
        for (const JsonCursor& row : rows) {
            TRY(const KernelPoint point, kernelPointFromJson(row));
            if (!points.empty() && (points.front().flops > 0) != (point.flops > 0)) return row.error("all points of a kernel have 'flops', or none has");
            points.push_back(point);
        }
    }
    return kernels;
}

Result<std::vector<CollectiveCurve>> collectiveCurvesFromJson(const JsonCursor& cursor) {
    TRY(const std::vector<JsonCursor> rows, cursor.items());
    std::vector<CollectiveCurve> curves;
    for (const JsonCursor& row : rows) {
        TRY(CollectiveCurve curve, curveFromJson(row));
        const bool twice = std::any_of(curves.begin(), curves.end(), [&](const CollectiveCurve& other) {
            return other.backend == curve.backend && other.op == curve.op && other.ranks == curve.ranks && other.link == curve.link;
        });
        if (twice) return row.error("this operation, group size and link was given before");
        curves.push_back(std::move(curve));
    }
    return curves;
}

Result<std::vector<ReferenceStep>> referenceStepsFromJson(const JsonCursor& cursor) {
    TRY(const std::vector<JsonCursor> rows, cursor.items());
    std::vector<ReferenceStep> steps;
    for (const JsonCursor& row : rows) {
        TRY_VOID(row.keys({"model", "ranks", "seconds"}));
        ReferenceStep& step = steps.emplace_back();
        TRY(const JsonCursor model, row.at("model"));
        TRY(step.model, model.asString());
        TRY(const JsonCursor ranks, row.at("ranks"));
        TRY(const std::int64_t count, ranks.asInt(1, 1'000'000));
        step.ranks = static_cast<int>(count);
        TRY(step.seconds, required(row, "seconds", kLeastSeconds, kMostSeconds));
    }
    return steps;
}

Json toJson(const std::vector<ReferenceStep>& steps) {
    Json json = Json::array();
    for (const ReferenceStep& step : steps) json.push_back(Json{{"model", step.model}, {"ranks", step.ranks}, {"seconds", step.seconds}});
    return json;
}

Json toJson(const KernelPoints& kernels) {
    Json json = Json::object();
    for (const auto& [name, points] : kernels) {
        Json& rows = json[name] = Json::array();
        for (const KernelPoint& point : points) rows.push_back(toJson(point));
    }
    return json;
}

Json toJson(const std::vector<CollectiveCurve>& curves) {
    Json json = Json::array();
    for (const CollectiveCurve& curve : curves) {
        Json row{{"backend", std::string(nameOf(curve.backend))}, {"op", std::string(nameOf(curve.op))}, {"ranks", curve.ranks}, {"link", curve.link}};
        row["cpu_seconds_per_call"] = curve.cpuSecondsPerCall;
        row["cpu_seconds_per_byte"] = curve.cpuSecondsPerByte;
        if (curve.computeSlowdown > 0) row["compute_slowdown"] = curve.computeSlowdown;
        if (curve.slowdownByCompute > 0) row["slowdown_by_compute"] = curve.slowdownByCompute;
        Json& points = row["points"] = Json::array();
        for (const CollectivePoint& point : curve.points)
            points.push_back(Json{{"bytes", point.bytes}, {"seconds", point.seconds}, {"relative_spread", point.relativeSpread}});
        json.push_back(std::move(row));
    }
    return json;
}

}  // namespace ringside
