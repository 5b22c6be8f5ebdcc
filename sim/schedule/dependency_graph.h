// The order of a program's tasks as a Boost.Graph. Apart from schedule.h, because few need it and it is a heavy header.
#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "sim/schedule/schedule.h"

namespace ringside {

/// Everything that orders the tasks of one program: stream order, host issue order and explicit dependencies. Edges point
/// from the earlier task to the later one.
using DependencyGraph = boost::compressed_sparse_row_graph<boost::directedS>;
DependencyGraph dependencyGraph(const RankProgram& program);

}  // namespace ringside
