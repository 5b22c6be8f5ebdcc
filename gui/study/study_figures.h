// Study figures: the quantities that studies plot, the rows they are read from, and which rows nothing else beats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/catalog/price_catalog.h"
#include "sim/study/scaling.h"
#include "sim/study/sweep.h"

namespace ringside::gui {

enum class StudyFigure : std::uint8_t { StepTime, Throughput, Tokens, Mfu, ExposedShare, PeakMemory, UsdPerHour, UsdPerMillionSamples, Devices };
constexpr int kStudyFigures = 9;
std::string_view nameOf(StudyFigure figure);  ///< "Step time", …
std::string_view unitOf(StudyFigure figure);  ///< "ms", "samples/s", "GiB", "%", "USD"
bool moreIsBetter(StudyFigure figure);

/// One predicted scenario of a study.
struct StudyRow {
    std::size_t index = 0;
    std::string label;        ///< "strategy=zero3, micro_batch=4"
    std::int64_t devices = 0;
    std::string strategy;
    double stepSeconds = 0, samplesPerSecond = 0, tokensPerSecond = 0, mfu = 0, exposedSeconds = 0;
    Bytes peakBytes = 0;
    MemoryVerdict verdict = MemoryVerdict::Fits;
    std::optional<double> usdPerHour;  ///< of the whole cluster; empty where a device has no price
    Json document;            ///< its scenario, to open it
};

/// In unitOf's unit; empty where the row has none (a price that nobody said, tokens of an image model).
std::optional<double> figureOf(const StudyRow& row, StudyFigure figure);

/// Indices of the rows that fit in memory and that no other one beats in one figure without losing in the other, by x.
std::vector<std::size_t> bestRows(std::span<const StudyRow> rows, StudyFigure x, StudyFigure y);

struct SweepAnswer {
    std::vector<StudyRow> rows;   ///< those that could be predicted
    std::size_t failed = 0;
    std::string firstError;
    bool stopped = false;         ///< rows are those made until then
};

struct StudyWatch {
    std::function<bool()> stop = [] { return false; };
    std::function<void(std::size_t done, std::size_t all)> progress = [](std::size_t, std::size_t) {};
    int threads = 0;  ///< 0: all cores
};

/// Predicts every row of the grid; rows keep their order. Fails where the grid itself is off.
Result<SweepAnswer> sweepRows(const SweepDefinition& definition, const Catalogs& catalogs, const PriceCatalog& prices, const StudyWatch& watch);

/// The points of a scaling study as rows, priced; `base` is the scenario it was made from.
std::vector<StudyRow> rowsOf(const ScalingStudy& study, const Json& base, const Catalogs& catalogs, const PriceCatalog& prices);

/// "1, 2, 4-64" → 1, 2, 4, 8, 16, 32, 64 (a range doubles). The error says what was found.
Result<std::vector<std::int64_t>> parseDeviceCounts(const std::string& text);

/// The rows as a table, one line each, units in the header.
std::string toCsv(std::span<const StudyRow> rows);

}  // namespace ringside::gui
