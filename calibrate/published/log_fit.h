// Log fit: figures that make predictions agree with measurements, both as logarithms. Pure numbers; knows no profile.
//
// Minimises Σ wᵢ·ρ((ln predictedᵢ − ln measuredᵢ) / scale) + Σ ((xⱼ − priorⱼ) / spreadⱼ)² over x = ln figure, with Huber's ρ: a row that is
// far off pulls as hard as one at the knee, not harder. Gauss–Newton with reweighting; a step's time is nearly linear in each figure, so
// few rounds suffice. docs/models/published-fit.md.
#pragma once

#include <functional>
#include <vector>

#include <Eigen/Core>

namespace ringside {

struct LogProblem {
    Eigen::VectorXd prior, spread, low, high;  ///< of the unknowns, as logarithms
    Eigen::VectorXd measured, weight;          ///< of the rows; measured as a logarithm
    double scale = 0.1;  ///< of a residual that surprises nobody
    double knee = 1.5;   ///< in scales: where Huber's loss turns linear
};

/// Logarithms of the predictions of all rows at x.
using LogModel = std::function<Eigen::VectorXd(const Eigen::VectorXd& x)>;
/// d ln predicted / dx at x, where the predictions are `at`.
using LogSlopes = std::function<Eigen::MatrixXd(const Eigen::VectorXd& x, const Eigen::VectorXd& at)>;

struct LogSolution {
    Eigen::VectorXd x;
    Eigen::VectorXd deviation;  ///< one standard deviation of each, from the curvature
    Eigen::MatrixXd slopes;     ///< last computed
    double loss = 0;
};

/// `slopes` are computed `refreshes` times at most (each time the rounds before have converged or stalled); in between they are reused.
/// REQUIRES: spreads, weights and scale positive; low ≤ prior ≤ high.
LogSolution fitLogs(const LogProblem& problem, const LogModel& model, const LogSlopes& slopes, Eigen::VectorXd start, int refreshes = 2);

/// The value of the loss. Exposed for tests.
double lossOf(const LogProblem& problem, const Eigen::VectorXd& x, const Eigen::VectorXd& predicted);

}  // namespace ringside
