// Fit collectives: the constants of NCCL's real time from public nccl-tests tables, and how well they predict sources they have not seen.
//
// Least mean |log(predicted / measured)| over the tables, each table counting once however many sizes it has; sizes below 1 MiB, where
// the measuring program's own overhead shows, count a fifth. Searched one constant after the other (pattern search): deterministic, and
// a constant that no table tells about keeps its neutral value. docs/models/nccl-achieved.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/cost/published_collectives.h"

namespace ringside {

struct FittedConstant {
    std::string key;
    double value = 0;
    double relativeSpread = 0;  ///< one standard deviation, from refits that each leave a tenth of the tables out
    std::int64_t tables = 0;    ///< that tell about it; 0: the neutral value
};

struct CollectiveFit {
    CollectiveConstantValues values{};
    std::vector<FittedConstant> constants;  ///< in the order of CollectiveConstant
    std::int64_t tables = 0, rows = 0;      ///< used; flagged records and those that cannot be predicted are not
};
/// `records`: of kind collectives, as JSON. Error (bad input): none can be used. Some seconds for a hundred tables.
Result<CollectiveFit> fitCollectives(const std::vector<Json>& records);

/// Error on the tables of some sources, with constants fitted to those of all others.
struct HeldOutCollectives {
    std::string sources;                    ///< repositories, joined by ", "
    std::int64_t tables = 0, rowsLarge = 0, rowsSmall = 0;
    double mapeLarge = 0, mapeSmall = 0;    ///< mean |predicted/measured − 1| from 1 MiB on, and below; every size counts
    double mapeLargeByTable = 0;            ///< from 1 MiB on, every table counting once
};
/// Sources (repositories) are dealt to at most `folds` folds, those with most tables first, each to the fold with the fewest tables.
Result<std::vector<HeldOutCollectives>> crossValidateCollectives(const std::vector<Json>& records, std::int64_t folds = 5);

/// Errors of given constants on the records, all together. Error (bad input): none can be used.
Result<HeldOutCollectives> judgeCollectives(const std::vector<Json>& records, const CollectiveConstantValues& values);

}  // namespace ringside
