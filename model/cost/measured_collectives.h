// Measured collectives: the times of a profile that apply to one group, and what lies between the measured sizes.
//
// docs/models/measured-tables.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cost/measurements.h"
#include "model/hardware/cluster.h"

namespace ringside {

/// `fixedSeconds` is the part that does not grow with the size (the intercept of the first two points); at most `seconds`.
struct MeasuredTime {
    double seconds = 0, fixedSeconds = 0, relativeSpread = 0;
};
/// Straight lines between the points; the first two and the last two points' lines go on beyond them. One point alone is a fixed
/// time below it and a rate above. Never falls with bytes below the first or above the last point. O(log points).
/// REQUIRES: the curve has points, as collectiveCurvesFromJson checks them; bytes ≥ 0.
MeasuredTime measuredTime(const CollectiveCurve& curve, Bytes bytes);

/// What the ranks of a group talk over: "loopback" (processes of a host), "node" (devices of a node), "25gbit" or "200mbit" (the
/// NIC's rate).
std::string linkNameOf(const Cluster& cluster, const GroupShape& group);

/// The link while as much goes one way as the other: messages of all ranks to one of them and back, each way on connections of its own.
inline std::string bothWaysOf(const std::string& link) { return link + " both ways"; }

class MeasuredCollectives {
public:
    MeasuredCollectives() = default;
    /// Keeps the curves of the backend whose link is `link` or "" (any). A curve of the link itself goes before one of any.
    MeasuredCollectives(const std::vector<CollectiveCurve>& curves, CollectiveBackend backend, const std::string& link, std::int64_t ranks);

    /// That of the group's size, else of the nearest (by ratio, the larger of two); null where the op was not measured.
    const CollectiveCurve* curveFor(CollectiveOp op) const;
    /// Sizes of other groups whose curves are used.
    std::vector<std::int64_t> otherRankCounts() const;

private:
    std::vector<CollectiveCurve> chosen_;  // at most one per op
    std::int64_t ranks_ = 1;
};

}  // namespace ringside
