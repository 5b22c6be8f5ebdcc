// Fit stage: the unknown figures that one kind of rows speaks for, and their fit. Made once with all rows; solved for all of them and then,
// with the slopes already known, for all but some sources.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "calibrate/published/fit_rows.h"
#include "calibrate/published/log_fit.h"

namespace ringside {

class FitStage {
public:
    /// Takes the rows of `stage` among `rows`, which must outlive it; those that cannot be predicted are passed over. `progress` (may be
    /// empty) is told of passes over the rows.
    FitStage(FitRows stage, const std::vector<FitRow>& rows, int threads, std::function<void()> progress = {});

    std::size_t rowCount() const { return rows_.size(); }

    /// Figures fitted to the rows that `uses` names, on top of `base`. Those whose slope is nothing on every used row are left out: they
    /// stay at their prior. `refreshes`: how often slopes are computed; 0 takes those of the last solve, and starts from its answer.
    /// `start` (may be null): figures to begin with in the place of the priors.
    std::vector<PublishedFigure> solve(const PublishedFigures& base, const std::function<bool(const FitRow&)>& uses, int refreshes,
                                       const PublishedFigures* start = nullptr);

private:
    struct Unknown {
        const FitParameter* parameter = nullptr;
        std::string scope;
        double prior = 0, spread = 0, low = 0, high = 0;  ///< logarithms
    };
    void addUnknowns(FitRows stage);
    bool concerns(const Unknown& unknown, const FitRow& row) const;
    PublishedFigures figuresAt(const PublishedFigures& base, const Eigen::VectorXd& x) const;
    Eigen::VectorXd beginning(const LogProblem& problem, const PublishedFigures& start) const;
    double predicted(const FitRow& row, const PublishedFigures& figures) const;
    /// A figure that changes nothing where the fit begins (a host that is never waited for) has no slope to follow: larger and smaller
    /// values are tried, one figure after the other.
    Eigen::VectorXd awaken(Eigen::VectorXd x, const LogProblem& problem, const LogModel& model, const LogSlopes& slopes) const;

    std::vector<const FitRow*> rows_;
    std::vector<Unknown> unknowns_;
    int threads_;
    std::function<void()> progress_;
    Eigen::MatrixXd slopes_;  ///< of all rows, at lastX_
    Eigen::VectorXd lastX_;
};

}  // namespace ringside
