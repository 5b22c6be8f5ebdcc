// Published collective tables: the cluster, the group and the operation of a record, and what the collective model says for a size.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/collective_op.h"
#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/base/units.h"
#include "model/cost/collective_cost.h"
#include "model/cost/published_figures.h"
#include "model/hardware/cluster.h"

namespace ringside {

struct CollectiveCase {
    std::string device;  ///< of the catalogue
    Cluster cluster;
    GroupShape shape;
    CollectiveOp op = CollectiveOp::AllReduce;
    CollectiveOptions options;  ///< release and forced algorithm as the record states them
    double callSeconds = 0;     ///< what the measuring program adds to every call
    CollectiveModel model;
};

/// Errors (bad input) say why the record cannot be predicted; their message alone is a reason to show.
Result<CollectiveCase> collectiveCase(const Json& record, const PublishedFigures& figures = shippedFigures());

/// Seconds of the operation on a buffer of so many bytes, as nccl-tests counts them. REQUIRES: bytes > 0.
double predictCollectiveSeconds(const CollectiveCase& one, Bytes bytes);

}  // namespace ringside
