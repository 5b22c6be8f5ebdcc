#include "calibrate/published/log_fit.h"

#include <cmath>

#include <gtest/gtest.h>

namespace ringside {
namespace {

/// Rows that take a + b·i milliseconds: two unknowns, nearly linear in each.
Eigen::VectorXd stepsOf(const Eigen::VectorXd& x, Eigen::Index rows) {
    Eigen::VectorXd out(rows);
    for (Eigen::Index i = 0; i < rows; ++i) out[i] = std::log(std::exp(x[0]) + std::exp(x[1]) * static_cast<double>(i));
    return out;
}

LogProblem problemOf(const Eigen::VectorXd& measured) {
    LogProblem problem;
    problem.prior = Eigen::Vector2d(std::log(1.0), std::log(1.0));
    problem.spread = Eigen::Vector2d(1, 1);
    problem.low = Eigen::Vector2d(std::log(0.01), std::log(0.01));
    problem.high = Eigen::Vector2d(std::log(100.0), std::log(100.0));
    problem.measured = measured;
    problem.weight = Eigen::VectorXd::Ones(measured.size());
    return problem;
}

LogSlopes slopesBy(const LogModel& model) {
    return [model](const Eigen::VectorXd& x, const Eigen::VectorXd& at) {
        Eigen::MatrixXd out(at.size(), x.size());
        for (Eigen::Index j = 0; j < x.size(); ++j) {
            Eigen::VectorXd there = x;
            there[j] += 1e-3;
            out.col(j) = (model(there) - at) / 1e-3;
        }
        return out;
    };
}

LogSolution fit(const LogProblem& problem) {
    const LogModel model = [&](const Eigen::VectorXd& x) { return stepsOf(x, problem.measured.size()); };
    return fitLogs(problem, model, slopesBy(model), problem.prior, 4);
}

TEST(LogFit, RecoversTheFiguresThatMadeItsDataWithinItsOwnInterval) {
    const Eigen::Vector2d truth(std::log(3.0), std::log(0.4));
    const LogSolution solution = fit(problemOf(stepsOf(truth, 40)));
    for (Eigen::Index j = 0; j < 2; ++j) EXPECT_NEAR(solution.x[j], truth[j], 2 * solution.deviation[j]);
    EXPECT_NEAR(std::exp(solution.x[1]), 0.4, 0.02);
}

TEST(LogFit, IsMovedLittleByARowThatIsFarOff) {
    const Eigen::Vector2d truth(std::log(3.0), std::log(0.4));
    Eigen::VectorXd measured = stepsOf(truth, 40);
    measured[20] += std::log(10.0);
    EXPECT_NEAR(std::exp(fit(problemOf(measured)).x[1]), 0.4, 0.03);
}

TEST(LogFit, LeavesAFigureThatNoRowSpeaksForAtItsPrior) {
    LogProblem problem = problemOf(Eigen::VectorXd::Constant(10, std::log(5.0)));
    const LogModel model = [](const Eigen::VectorXd& x) -> Eigen::VectorXd { return Eigen::VectorXd::Constant(10, x[0]); };
    const LogSolution solution = fitLogs(problem, model, slopesBy(model), problem.prior);
    EXPECT_NEAR(std::exp(solution.x[0]), 5, 0.3);
    EXPECT_DOUBLE_EQ(solution.x[1], problem.prior[1]);
    EXPECT_DOUBLE_EQ(solution.deviation[1], problem.spread[1]);
}

TEST(LogFit, StaysWithinItsBounds) {
    LogProblem problem = problemOf(stepsOf(Eigen::Vector2d(std::log(3.0), std::log(0.4)), 40));
    problem.low[1] = std::log(0.5);
    EXPECT_DOUBLE_EQ(fit(problem).x[1], std::log(0.5));
}

}  // namespace
}  // namespace ringside
