#include "model/cost/measured_collectives.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/base/check.h"

namespace ringside {
namespace {

double distance(std::int64_t a, std::int64_t b) { return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b))); }

double slopeOf(const CollectivePoint& a, const CollectivePoint& b) { return (b.seconds - a.seconds) / static_cast<double>(b.bytes - a.bytes); }

}  // namespace

MeasuredTime measuredTime(const CollectiveCurve& curve, Bytes bytes) {
    CHECK(!curve.points.empty() && bytes >= 0);
    const std::vector<CollectivePoint>& points = curve.points;
    const CollectivePoint &first = points.front(), &last = points.back();
    const double size = static_cast<double>(bytes);
    MeasuredTime time;
    if (points.size() == 1) {
        time.relativeSpread = first.relativeSpread;
        time.seconds = first.seconds * std::max(1.0, size / static_cast<double>(first.bytes));
        time.fixedSeconds = std::min(time.seconds, first.seconds);
        return time;
    }
    const double firstSlope = std::clamp(slopeOf(points[0], points[1]), 0.0, first.seconds / static_cast<double>(first.bytes));
    const double intercept = first.seconds - firstSlope * static_cast<double>(first.bytes);
    if (bytes <= first.bytes) {
        time.seconds = intercept + firstSlope * size;
        time.relativeSpread = first.relativeSpread;
    } else if (bytes >= last.bytes) {
        time.seconds = last.seconds + std::max(0.0, slopeOf(points[points.size() - 2], last)) * (size - static_cast<double>(last.bytes));
        time.relativeSpread = last.relativeSpread;
    } else {
        const auto above = std::upper_bound(points.begin(), points.end(), bytes, [](Bytes b, const CollectivePoint& point) { return b < point.bytes; });
        const CollectivePoint &a = *(above - 1), &b = *above;
        time.seconds = a.seconds + slopeOf(a, b) * (size - static_cast<double>(a.bytes));
        time.relativeSpread = std::max(a.relativeSpread, b.relativeSpread);
    }
    time.fixedSeconds = std::min(time.seconds, intercept);
    return time;
}

std::string linkNameOf(const Cluster& cluster, const GroupShape& group) {
    const NodeKind& kind = cluster.nodes[group.nodeKind].kind;
    if (group.nodes == 1) return kind.fabric == IntraNodeFabric::Loopback ? "loopback" : "node";
    const double gbit = kind.nics.gbitPerS;
    return gbit >= 1 ? fmt::format("{:.4g}gbit", gbit) : fmt::format("{:.4g}mbit", gbit * 1000);
}

MeasuredCollectives::MeasuredCollectives(const std::vector<CollectiveCurve>& curves, CollectiveBackend backend, const std::string& link, std::int64_t ranks)
    : ranks_(ranks) {
    const auto better = [&](const CollectiveCurve& a, const CollectiveCurve& b) {
        if (a.link.empty() != b.link.empty()) return b.link.empty();
        const double near = distance(a.ranks, ranks), far = distance(b.ranks, ranks);
        return near != far ? near < far : a.ranks > b.ranks;
    };
    for (const CollectiveCurve& curve : curves) {
        if (curve.backend != backend || curve.points.empty() || (!curve.link.empty() && curve.link != link)) continue;
        const auto known = std::find_if(chosen_.begin(), chosen_.end(), [&](const CollectiveCurve& c) { return c.op == curve.op; });
        if (known == chosen_.end()) chosen_.push_back(curve);
        else if (better(curve, *known)) *known = curve;
    }
}

const CollectiveCurve* MeasuredCollectives::curveFor(CollectiveOp op) const {
    const auto found = std::find_if(chosen_.begin(), chosen_.end(), [&](const CollectiveCurve& curve) { return curve.op == op; });
    return found == chosen_.end() ? nullptr : &*found;
}

std::vector<std::int64_t> MeasuredCollectives::otherRankCounts() const {
    std::vector<std::int64_t> counts;
    for (const CollectiveCurve& curve : chosen_)
        if (curve.ranks != ranks_ && std::find(counts.begin(), counts.end(), curve.ranks) == counts.end()) counts.push_back(curve.ranks);
    return counts;
}

}  // namespace ringside
