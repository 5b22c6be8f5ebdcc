// Fit rows: published measurements that a fit can predict with any profile: kernels of the tables, steps of the runs, peaks of devices.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/published/fit_table.h"
#include "calibrate/published/published_runs.h"
#include "calibrate/published/records.h"
#include "model/hardware/device.h"

namespace ringside {

struct FitRow {
    std::string id, repository;
    FitRows kind = FitRows::Training;
    Device device;
    double measured = 0;  ///< seconds, or bytes
    /// The same quantity by the model; with the figures in the place of the shipped ones.
    std::function<Result<double>(const PublishedFigures&)> predict;
};

/// Rows of a fit, in the order of the records: at most `mostPerSource` of each repository and kind, spread evenly. Flagged records, those that cannot be
/// predicted, and steps of interleaved pipelines with thousands of passes (a fit predicts each row thousands of times) give none. `runs` as prepareRuns gives them; they must outlive the rows.
std::vector<FitRow> fitRows(const std::vector<PublishedRecord>& records, const std::vector<PublishedRun>& runs, const Catalogs& catalogs, std::size_t mostPerSource);

/// What kernels.json gives: matmuls (rows of a table, or the best shape of a device) and attention. Other kinds of kernel tables: none.
std::vector<FitRow> kernelRows(const PublishedRecord& record, const Catalogs& catalogs);

}  // namespace ringside
