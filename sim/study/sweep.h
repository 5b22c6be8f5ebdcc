// Sweep: many scenarios, one row of figures for each, in an order that depends on nothing but the grid.
//
// A plan is a base scenario, a list of patches (or one empty patch) and axes; its rows are their product, the list slowest,
// then the first axis. A row is a pure function of the plan and its index, so that any thread, rank or later run may make it.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario.h"

namespace ringside {

struct SweepAxis {
    std::string key;           ///< as given: "bucket_mb"
    std::string path;          ///< "strategy.bucket_mb"
    std::vector<Json> values;  ///< at least one
};
/// "key=v1,v2,…"; commas inside brackets, braces and quotes do not separate. A value is JSON where it parses as such, else text.
Result<SweepAxis> parseSweepAxis(const std::string& text);
/// One JSON object of scenario keys per line; empty lines are skipped. "-" reads standard input.
Result<std::vector<Json>> readPatches(const std::string& file);

/// What a plan is made from; also what goes to other ranks.
struct SweepDefinition {
    Json base = Json::object();
    std::string source = "command line";  ///< names the base in errors
    std::vector<std::string> axes;        ///< "key=v1,v2,…"
    std::vector<Json> patches;            ///< may be empty
};
Json toJson(const SweepDefinition& definition);
SweepDefinition sweepDefinitionFromJson(const Json& json);  ///< REQUIRES: made by toJson

enum class RowFormat : std::uint8_t { Jsonl, Csv };

enum class RowOutcome : std::uint8_t { Fits, Tight, OutOfMemory, Failed };
constexpr std::size_t kRowOutcomes = 4;

/// Rows in a row.
struct SweepBlock {
    std::size_t first = 0, count = 0;
    std::string text;  ///< `count` lines
    std::array<std::size_t, kRowOutcomes> outcomes{};
    std::string firstError;  ///< "row 3: …", if any failed
};

/// Immutable once made; any number of threads may make rows at once.
class SweepPlan {
public:
    /// `program` ("ringside 0.1.0") goes into the header: rows of two versions do not belong into one file. Fails where no
    /// value of some axis, or no patch, gives a scenario that resolves: a slip, not a result. `catalogs` must outlive the plan.
    static Result<SweepPlan> create(const SweepDefinition& definition, const std::string& program, const Catalogs& catalogs);

    std::size_t rows() const { return rows_; }
    /// What stands in front of the rows, with its line end: format, version, a hash of the grid, the number of rows.
    std::string header(RowFormat format) const;
    /// The scenario document of a row. REQUIRES: row < rows().
    Result<Json> document(std::size_t row) const;
    /// Predicts rows [first, first + count). REQUIRES: they exist.
    SweepBlock block(std::size_t first, std::size_t count, RowFormat format) const;

private:
    struct Patch {
        std::vector<std::pair<std::string, Json>> columns;  ///< key as shown in the row
        std::vector<std::pair<std::string, Json>> entries;  ///< path in the scenario
    };
    /// Index of the patch, then of each axis's value.
    std::vector<std::size_t> digits(std::size_t row) const;
    Result<Json> documentAt(const std::vector<std::size_t>& digits) const;
    Result<Scenario> scenarioAt(const std::vector<std::size_t>& digits) const;
    Result<void> checkChoices() const;
    void addRow(SweepBlock& block, std::size_t row, RowFormat format) const;

    const Catalogs* catalogs_ = nullptr;
    SweepDefinition definition_;
    std::string program_;
    std::vector<SweepAxis> axes_;
    std::vector<Patch> patches_;         ///< at least one, maybe empty
    std::vector<std::string> columns_;   ///< keys in the order of the row
    std::map<std::string, Json> bases_;  ///< by strategy named in a row, "" for none: the base with room for what a row sets
    std::size_t rows_ = 0;
};

struct SweepOptions {
    RowFormat format = RowFormat::Jsonl;
    int threads = 0;                                    ///< 0: all cores
    std::function<bool()> stop = [] { return false; };  ///< asked before every block: end after the running ones
};

/// Rows from `first` on, in order, to `take`, which is called by one thread at a time. Returns the first row not handed
/// over: rows() at the end, less where `stop` said so. Fails with `take`'s error.
Result<std::size_t> runSweep(const SweepPlan& plan, std::size_t first, const SweepOptions& options,
                             const std::function<Result<void>(const SweepBlock&)>& take);

}  // namespace ringside
