// nccl-tests: the table that all_reduce_perf and its sisters print, as text or as JSON (-J).
//
// docs/formats/nccl-tests.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "traces/import/import_notes.h"

namespace ringside {

/// One way of running a row: GB are 1e9 bytes.
struct NcclTestsTiming {
    double timeUs = 0, algbwGbPerS = 0, busbwGbPerS = 0;
    std::optional<std::int64_t> wrong;  ///< values that were off; empty: not checked
};

struct NcclTestsRow {
    std::int64_t bytes = 0, count = 0;
    std::string type, redop;            ///< "float", "sum"; "none" or "" where there is none
    std::int64_t root = -1;
    std::optional<NcclTestsTiming> outOfPlace, inPlace;
};

struct NcclTestsTable {
    std::string op;           ///< "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send_recv", "gather", "scatter"; "" if not said
    std::int64_t ranks = 0;   ///< 0 if not said
    std::string ncclVersion;  ///< as printed; "" if not said
    std::string device;       ///< of the first rank: "NVIDIA H100 80GB HBM3"
    std::vector<NcclTestsRow> rows;
    ImportNotes notes;        ///< rows that were left out
};

/// Told apart by content. `source` names the text in errors and notes. Fails (bad input) where there is not one usable row.
Result<NcclTestsTable> parseNcclTests(std::string_view text, const std::string& source);
Result<NcclTestsTable> readNcclTests(const std::string& path);

/// "all_reduce_perf", "AllReduce", "alltoall", … → our word; "" if not known.
std::string collectiveOfNcclTests(std::string_view name);

}  // namespace ringside
