#include "calibrate/published/log_fit.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Cholesky>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr int kRounds = 8;            // with the same slopes
constexpr double kConverged = 1e-3;   // of the largest change of a logarithm
constexpr double kLeastStep = 1.0 / 64;

Eigen::VectorXd clamped(const LogProblem& problem, const Eigen::VectorXd& x) { return x.cwiseMax(problem.low).cwiseMin(problem.high); }

/// wᵢ / scale², less for rows beyond the knee.
Eigen::VectorXd robustWeights(const LogProblem& problem, const Eigen::VectorXd& residual) {
    Eigen::VectorXd weights(residual.size());
    for (Eigen::Index i = 0; i < residual.size(); ++i) {
        const double distance = std::abs(residual[i]) / problem.scale;
        weights[i] = problem.weight[i] / (problem.scale * problem.scale) * std::min(1.0, problem.knee / std::max(distance, 1e-12));
    }
    return weights;
}

Eigen::MatrixXd curvature(const LogProblem& problem, const Eigen::MatrixXd& slopes, const Eigen::VectorXd& weights) {
    Eigen::MatrixXd normal = slopes.transpose() * weights.asDiagonal() * slopes;
    normal.diagonal() += problem.spread.cwiseAbs2().cwiseInverse();
    return normal;
}

}  // namespace

double lossOf(const LogProblem& problem, const Eigen::VectorXd& x, const Eigen::VectorXd& predicted) {
    double loss = ((x - problem.prior).cwiseQuotient(problem.spread)).squaredNorm();
    for (Eigen::Index i = 0; i < predicted.size(); ++i) {
        const double distance = std::abs(predicted[i] - problem.measured[i]) / problem.scale;
        loss += problem.weight[i] * (distance <= problem.knee ? distance * distance : problem.knee * (2 * distance - problem.knee));
    }
    return loss;
}

LogSolution fitLogs(const LogProblem& problem, const LogModel& model, const LogSlopes& slopes, Eigen::VectorXd start, int refreshes) {
    CHECK(problem.prior.size() == start.size() && problem.measured.size() == problem.weight.size());
    LogSolution out;
    out.x = clamped(problem, start);
    Eigen::VectorXd predicted = model(out.x);
    out.loss = lossOf(problem, out.x, predicted);
    for (int refresh = 0; refresh < std::max(1, refreshes); ++refresh) {
        out.slopes = slopes(out.x, predicted);
        bool moved = false;
        for (int round = 0; round < kRounds; ++round) {
            const Eigen::VectorXd residual = predicted - problem.measured, weights = robustWeights(problem, residual);
            const Eigen::VectorXd priorPull = (out.x - problem.prior).cwiseQuotient(problem.spread.cwiseAbs2());
            const Eigen::VectorXd gradient = out.slopes.transpose() * weights.cwiseProduct(residual) + priorPull;
            // An unknown at its bound that wants beyond it stays there; the others move as if it were known.
            Eigen::MatrixXd normal = curvature(problem, out.slopes, weights);
            Eigen::VectorXd rhs = -gradient;
            for (Eigen::Index j = 0; j < out.x.size(); ++j) {
                const bool stuck = (out.x[j] <= problem.low[j] && gradient[j] > 0) || (out.x[j] >= problem.high[j] && gradient[j] < 0);
                if (!stuck) continue;
                normal.row(j).setZero();
                normal.col(j).setZero();
                normal(j, j) = 1;
                rhs[j] = 0;
            }
            const Eigen::VectorXd step = normal.ldlt().solve(rhs);
            double length = 1;
            bool better = false;
            for (; length >= kLeastStep && !better; length /= 4) {
                const Eigen::VectorXd tried = clamped(problem, out.x + length * step);
                const Eigen::VectorXd there = model(tried);
                const double loss = lossOf(problem, tried, there);
                if (loss >= out.loss) continue;
                better = true;
                const double change = (tried - out.x).cwiseAbs().maxCoeff();
                out.x = tried;
                predicted = there;
                out.loss = loss;
                moved = moved || change > kConverged;
                if (change <= kConverged) round = kRounds;
            }
            if (!better) break;
        }
        if (!moved) break;  // at these slopes nothing is left to gain
    }
    const Eigen::MatrixXd normal = curvature(problem, out.slopes, robustWeights(problem, predicted - problem.measured));
    out.deviation = normal.ldlt().solve(Eigen::MatrixXd::Identity(normal.rows(), normal.cols())).diagonal().cwiseMax(0).cwiseSqrt();
    return out;
}

}  // namespace ringside
