#include "calibrate/published/fit_stage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr double kStep = 0.05;        // of a logarithm, for slopes
constexpr double kLeastSlope = 0.003; // a row whose time changes by less than so much of the figure's change says nothing about it
constexpr double kLeastSpread = 0.02; // no prior is surer

double fourDigits(double value) { return std::stod(fmt::format("{:.4g}", value)); }

std::string scopeOf(FitScope scope, const Device& device) {
    return scope == FitScope::All ? std::string(kEveryDevice) : scope == FitScope::Generation ? generationScope(device) : device.name;
}

}  // namespace

FitStage::FitStage(FitRows stage, const std::vector<FitRow>& rows, int threads, std::function<void()> progress) : threads_(threads), progress_(std::move(progress)) {
    std::vector<const FitRow*> own;
    for (const FitRow& row : rows)
        if (row.kind == stage) own.push_back(&row);
    std::vector<char> good(own.size(), 0);
    forEachOnThreads(own.size(), threads_, [&](std::size_t i) {
        const auto value = own[i]->predict({});
        good[i] = value && *value > 0 && std::isfinite(*value) ? 1 : 0;
    });
    for (std::size_t i = 0; i < own.size(); ++i)
        if (good[i]) rows_.push_back(own[i]);
    addUnknowns(stage);
}

void FitStage::addUnknowns(FitRows stage) {
    for (const FitParameter& parameter : fitParameters()) {
        if (parameter.rows != stage) continue;
        std::map<std::string, std::map<std::string, Figure>> priors;  // by scope, by device
        for (const FitRow* row : rows_) {
            std::map<std::string, Figure>& own = priors[scopeOf(parameter.scope, row->device)];
            if (own.contains(row->device.name)) continue;
            const Profile profile = datasheetProfile(row->device, {});
            const Figure* figure = findProfileFigure(profile, parameter.key);
            if (figure && figure->value > 0) own[row->device.name] = *figure;
        }
        for (const auto& [scope, figures] : priors) {
            if (figures.empty()) continue;
            Unknown unknown{&parameter, scope, 0, 0, std::log(parameter.min), std::log(parameter.max)};
            for (const auto& [device, figure] : figures) {
                unknown.prior += std::log(figure.value) / static_cast<double>(figures.size());
                unknown.spread = std::max({unknown.spread, figure.relativeSpread, kLeastSpread});
            }
            unknown.prior = std::clamp(unknown.prior, unknown.low, unknown.high);
            unknowns_.push_back(std::move(unknown));
        }
    }
}

bool FitStage::concerns(const Unknown& unknown, const FitRow& row) const { return scopeOf(unknown.parameter->scope, row.device) == unknown.scope; }

PublishedFigures FitStage::figuresAt(const PublishedFigures& base, const Eigen::VectorXd& x) const {
    PublishedFigures figures = base;
    for (std::size_t j = 0; j < unknowns_.size(); ++j) {
        const FitParameter& parameter = *unknowns_[j].parameter;
        const Figure figure{std::exp(x[static_cast<Eigen::Index>(j)]), unknowns_[j].spread, Provenance::Published, {}};
        figures.figures.push_back({std::string(parameter.key), unknowns_[j].scope, figure, 0});
        if (!parameter.also.empty()) figures.figures.push_back({std::string(parameter.also), unknowns_[j].scope, figure, 0});
    }
    return figures;
}

double FitStage::predicted(const FitRow& row, const PublishedFigures& figures) const {
    const auto value = row.predict(figures);
    return value && *value > 0 ? std::log(*value) : std::log(row.measured);  // it was predicted before; without a value it says nothing
}

Eigen::VectorXd FitStage::awaken(Eigen::VectorXd x, const LogProblem& problem, const LogModel& model, const LogSlopes& slopes) const {
    const Eigen::VectorXd at = model(x);
    const Eigen::MatrixXd before = slopes(x, at);
    double loss = lossOf(problem, x, at);
    for (Eigen::Index j = 0; j < x.size(); ++j) {
        if (before.col(j).cwiseAbs().maxCoeff() >= kLeastSlope) continue;
        for (const double spreads : {1.0, 2.0, 3.0, -1.0}) {
            Eigen::VectorXd tried = x;
            tried[j] = std::clamp(problem.prior[j] + spreads * problem.spread[j], problem.low[j], problem.high[j]);
            const double there = lossOf(problem, tried, model(tried));
            if (there >= loss) continue;
            loss = there;
            x = tried;
        }
    }
    return x;
}

Eigen::VectorXd FitStage::beginning(const LogProblem& problem, const PublishedFigures& start) const {
    Eigen::VectorXd x = problem.prior;
    for (std::size_t j = 0; j < unknowns_.size(); ++j)
        for (const PublishedFigure& one : start.figures)
            if (one.key == unknowns_[j].parameter->key && one.scope == unknowns_[j].scope && one.figure.value > 0) x[static_cast<Eigen::Index>(j)] = std::log(one.figure.value);
    return x;
}

std::vector<PublishedFigure> FitStage::solve(const PublishedFigures& base, const std::function<bool(const FitRow&)>& uses, int refreshes, const PublishedFigures* start) {
    const auto unknowns = static_cast<Eigen::Index>(unknowns_.size());
    std::vector<std::size_t> used;
    std::map<std::string, std::size_t> perSource;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (!uses(*rows_[i])) continue;
        used.push_back(i);
        ++perSource[rows_[i]->repository];
    }
    if (used.empty() || unknowns == 0) return {};
    const auto count = static_cast<Eigen::Index>(used.size());

    LogProblem problem;
    for (Eigen::VectorXd* vector : {&problem.prior, &problem.spread, &problem.low, &problem.high}) vector->resize(unknowns);
    for (Eigen::Index j = 0; j < unknowns; ++j) {
        const Unknown& unknown = unknowns_[static_cast<std::size_t>(j)];
        problem.prior[j] = unknown.prior;
        problem.spread[j] = unknown.spread;
        problem.low[j] = unknown.low;
        problem.high[j] = unknown.high;
    }
    problem.measured.resize(count);
    problem.weight.resize(count);
    for (Eigen::Index i = 0; i < count; ++i) {
        const FitRow& row = *rows_[used[static_cast<std::size_t>(i)]];
        problem.measured[i] = std::log(row.measured);
        // Rows of one source share what it does not tell: together they weigh the root of their number.
        problem.weight[i] = 1 / std::sqrt(static_cast<double>(perSource[row.repository]));
    }
    const LogModel model = [&](const Eigen::VectorXd& x) {
        const PublishedFigures figures = figuresAt(base, x);
        Eigen::VectorXd out(count);
        forEachOnThreads(used.size(), threads_, [&](std::size_t i) { out[static_cast<Eigen::Index>(i)] = predicted(*rows_[used[i]], figures); });
        if (progress_) progress_();
        return out;
    };
    const LogSlopes computed = [&](const Eigen::VectorXd& x, const Eigen::VectorXd& at) {
        std::vector<PublishedFigures> moved;
        std::vector<std::pair<std::size_t, Eigen::Index>> cells;
        for (Eigen::Index j = 0; j < unknowns; ++j) {
            Eigen::VectorXd there = x;
            there[j] += kStep;
            moved.push_back(figuresAt(base, there));
            for (std::size_t i = 0; i < used.size(); ++i)
                if (concerns(unknowns_[static_cast<std::size_t>(j)], *rows_[used[i]])) cells.emplace_back(i, j);
        }
        Eigen::MatrixXd out = Eigen::MatrixXd::Zero(count, unknowns);
        forEachOnThreads(cells.size(), threads_, [&](std::size_t c) {
            const auto [i, j] = cells[c];
            const auto row = static_cast<Eigen::Index>(i);
            out(row, j) = (predicted(*rows_[used[i]], moved[static_cast<std::size_t>(j)]) - at[row]) / kStep;
        });
        if (progress_) progress_();
        return out;
    };
    const LogSlopes known = [&](const Eigen::VectorXd&, const Eigen::VectorXd&) {
        Eigen::MatrixXd out(count, unknowns);
        for (Eigen::Index i = 0; i < count; ++i) out.row(i) = slopes_.row(static_cast<Eigen::Index>(used[static_cast<std::size_t>(i)]));
        return out;
    };
    const bool again = refreshes == 0;
    CHECK(!again || slopes_.rows() == static_cast<Eigen::Index>(rows_.size()));
    const Eigen::VectorXd first = again ? lastX_ : start ? beginning(problem, *start) : awaken(problem.prior, problem, model, computed);
    const LogSolution solution = fitLogs(problem, model, again ? known : computed, first, std::max(1, refreshes));
    if (!again) {
        slopes_ = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(rows_.size()), unknowns);
        for (Eigen::Index i = 0; i < count; ++i) slopes_.row(static_cast<Eigen::Index>(used[static_cast<std::size_t>(i)])) = solution.slopes.row(i);
        lastX_ = solution.x;
    }

    std::vector<PublishedFigure> out;
    for (Eigen::Index j = 0; j < unknowns; ++j) {
        const Unknown& unknown = unknowns_[static_cast<std::size_t>(j)];
        std::set<std::string> sources;
        std::int64_t speaking = 0;
        for (Eigen::Index i = 0; i < count; ++i)
            if (std::abs(solution.slopes(i, j)) >= kLeastSlope) {
                ++speaking;
                sources.insert(rows_[used[static_cast<std::size_t>(i)]]->repository);
            }
        if (speaking == 0) continue;
        std::string names;
        for (const std::string& source : sources) names += (names.empty() ? "" : ", ") + source;
        Figure figure{fourDigits(std::exp(solution.x[j])), fourDigits(solution.deviation[j]), Provenance::Published, fmt::format("fit to {}: {}", nameOf(unknown.parameter->rows), names)};
        out.push_back({std::string(unknown.parameter->key), unknown.scope, figure, speaking});
        if (!unknown.parameter->also.empty()) out.push_back({std::string(unknown.parameter->also), unknown.scope, figure, speaking});
    }
    return out;
}

}  // namespace ringside
