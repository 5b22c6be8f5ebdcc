// validateSchedule: the rules every Schedule keeps, whoever wrote it. The error names the broken rule and the task.
#pragma once

#include "model/base/result.h"
#include "sim/schedule/schedule.h"

namespace ringside {

/// Checks, per program:
///  1. streams: 0 is the host, 1 the compute stream; every task names an existing stream; host tasks are on the host stream
///     and device tasks are not;
///  2. work: every index points into its table;
///  3. dependencies: point to earlier tasks (so that the graph has no cycle, which is checked too);
///  4. buffers: allocated once before use, not used after they are freed, freed once; persistent ones never allocated or freed;
///     every buffer that a task allocates is freed by the end of the step, unless it outlives it;
///  5. ordering: a task that reads a buffer is ordered after the tasks that wrote it (through streams, dependencies or the host);
///  6. collectives: every rank of a group issues the same collectives of an axis in the same order.
///  7. messages: their key is one of the servers'; a program that pulls a key pushes it as often, and all programs alike.
/// And over classes: each rank belongs to exactly one class.
Result<void> validateSchedule(const Schedule& schedule);

}  // namespace ringside
