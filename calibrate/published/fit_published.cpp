#include "calibrate/published/fit_published.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibrate/published/fit_collectives.h"
#include "calibrate/published/fit_stage.h"
#include "model/base/check.h"

namespace ringside {
namespace {

constexpr double kP90 = 1.2815515655446004;
constexpr double kCovered = 0.80;
constexpr std::size_t kLeastRows = 8;  // fewer say nothing about a spread of their own
constexpr double kMostSpread = 1.5;
constexpr double kLeastInterval = 0.1;  // of a spread itself

struct SpreadClass {
    const char* group;  ///< classOf
    const char* key;
};
constexpr SpreadClass kModelSpreads[] = {{"single device", "model_spread_device"},
                                         {"single-node data parallel", "model_spread_node"},
                                         {"multi-node data parallel", "model_spread_network"},
                                         {"hybrid (tp/pp/cp)", "model_spread_mesh"},
                                         {"memory", "model_spread_memory"}};
constexpr SpreadClass kCollectiveSpreads[] = {{"collectives >= 1 MiB", "collective_bandwidth_factor"}, {"collectives < 1 MiB", "collective_latency_factor"}};

double threeDigits(double value) { return std::stod(fmt::format("{:.3g}", value)); }

std::vector<PublishedConstant> constantsOf(const CollectiveFit& fit) {
    std::vector<PublishedConstant> out;
    for (const FittedConstant& one : fit.constants)
        if (one.tables > 0) out.push_back({one.key, threeDigits(one.value), std::max(0.01, std::stod(fmt::format("{:.2g}", one.relativeSpread)))});
    return out;
}

void append(PublishedFigures& to, std::vector<PublishedFigure> more) {
    for (PublishedFigure& one : more) to.figures.push_back(std::move(one));
}

PublishedFigure* findFigure(PublishedFigures& figures, const PublishedFigure& like) {
    for (PublishedFigure& one : figures.figures)
        if (one.key == like.key && one.scope == like.scope) return &one;
    return nullptr;
}

/// Delete-a-group jackknife over the folds: how much a figure depends on which sources were there.
void addJackknife(PublishedFigures& all, std::vector<Fold>& folds) {
    const double k = static_cast<double>(folds.size());
    for (PublishedFigure& one : all.figures) {
        double sum = 0, squares = 0;
        std::size_t n = 0;
        for (Fold& fold : folds)
            if (const PublishedFigure* own = findFigure(fold.figures, one); own && own->figure.value > 0) {
                const double distance = std::log(own->figure.value / one.figure.value);
                sum += distance;
                squares += distance * distance;
                ++n;
            }
        if (n < 2) continue;
        const double mean = sum / static_cast<double>(n);
        const double variance = (k - 1) / k * std::max(0.0, squares - static_cast<double>(n) * mean * mean);
        one.figure.relativeSpread = threeDigits(std::max(one.figure.relativeSpread, std::sqrt(variance)));
    }
    for (Fold& fold : folds)
        for (PublishedFigure& one : fold.figures.figures)
            if (const PublishedFigure* whole = findFigure(all, one)) one.figure.relativeSpread = whole->figure.relativeSpread;
}

/// What a row of a verdict with held-out figures says about a spread.
struct Residual {
    std::string group, repository, sweep;
    double logError = 0, spread = 0;
};

std::vector<Residual> residualsOf(const PublishedVerdict& verdict, RecordKind kind) {
    std::vector<Residual> out;
    for (const JudgedRow& row : verdict.rows)
        if (row.kind == kind && row.p90) out.push_back({row.group, row.repository, row.sweep, std::log(row.measured / row.predicted), std::log(*row.p90 / row.predicted) / kP90});
    return out;
}

/// Of the residuals of a class whose repository is not held out by `fold` (null: all of them).
double spreadOf(const std::vector<Residual>& residuals, const std::string& group, const Fold* fold, bool bySweep) {
    std::vector<double> errors, spreads;
    std::vector<std::string> sources;  // tables of collectives are curves: their rows weigh the root of their number together
    for (const bool anyClass : {false, true}) {  // a class of too few rows is spoken for by all
        if (errors.size() >= kLeastRows) break;
        errors.clear();
        spreads.clear();
        sources.clear();
        for (const Residual& one : residuals) {
            if ((!anyClass && one.group != group) || (fold && fold->holdsOut(one.repository))) continue;
            errors.push_back(one.logError);
            spreads.push_back(one.spread);
            sources.push_back(bySweep ? one.sweep : one.repository);
        }
    }
    if (errors.empty()) return 0;
    // What is predicted next is of another source: its own offset comes on top of how well those of k sources are known.
    const double k = static_cast<double>(std::set<std::string>(sources.begin(), sources.end()).size());
    return threeDigits(coveringSpread(errors, spreads, bySweep ? sources : std::vector<std::string>()) * std::sqrt(1 + 1 / k));
}

void setFigure(PublishedFigures& figures, PublishedFigure figure) {
    if (PublishedFigure* there = findFigure(figures, figure)) *there = std::move(figure);
    else figures.figures.push_back(std::move(figure));
}

std::string sourceOfSpread(const char* group) { return fmt::format("four fifths of the {} rows of held-out sources lie in the band", group); }

/// REQUIRES: at least one fold besides the held-out one has such rows; else the class keeps what all classes say.
void setCollectiveSpreads(PublishedFit& fit, const PublishedVerdict& heldOut) {
    const std::vector<Residual> residuals = residualsOf(heldOut, RecordKind::Collective);
    const auto set = [&](PublishedFigures& figures, const Fold* fold) {
        for (const SpreadClass& one : kCollectiveSpreads) {
            std::vector<Residual> plain = residuals;
            for (Residual& residual : plain) residual.spread = 0;  // this very spread made the band
            const double spread = spreadOf(plain, one.group, fold, true);
            if (spread > 0) setFigure(figures, {one.key, std::string(kEveryDevice), {1, spread, Provenance::Published, sourceOfSpread(one.group)}, static_cast<std::int64_t>(residuals.size())});
        }
    };
    set(fit.figures, nullptr);
    for (Fold& fold : fit.folds) set(fold.figures, &fold);
}

void setModelSpreads(PublishedFigures& figures, const std::function<double(const char*)>& value, std::int64_t rows) {
    for (const SpreadClass& one : kModelSpreads) setFigure(figures, {one.key, std::string(kEveryDevice), {value(one.group), kLeastInterval, Provenance::Published, sourceOfSpread(one.group)}, rows});
}

class Fitter {
public:
    Fitter(const std::vector<PublishedRecord>& records, const Catalogs& catalogs, const PublishedFitOptions& options) : records_(records), catalogs_(catalogs), options_(options) {}

    Result<PublishedFit> run() {
        say(0.0, "mapping and predicting the records");
        runs_ = prepareRuns(records_, catalogs_, options_.threads);
        rows_ = fitRows(records_, runs_, catalogs_, options_.mostPerSource);
        for (const PublishedRecord& record : records_)
            if (record.kind == RecordKind::Collective) tables_.push_back(&record);
        if (rows_.empty() && tables_.empty()) return badInput("--from-published", "no record can be used: every one is flagged or cannot be predicted");
        fit_.folds = dealFolds(records_, std::max<std::size_t>(2, options_.folds));
        TRY_VOID(fitCollectiveTables());
        for (const FitRows stage : {FitRows::Kernels, FitRows::Training, FitRows::Memory}) fitRowsOf(stage);
        addJackknife(fit_.figures, fit_.folds);
        spreads();
        addJackknife(fit_.figures, fit_.folds);  // of the spreads themselves; the others stay
        judgeAll();
        count();
        return std::move(fit_);
    }

private:
    void say(double share, const std::string& doing) const {
        if (options_.progress) options_.progress(share, doing);
    }

    std::vector<Json> tablesWithout(const Fold* fold) const {
        std::vector<Json> out;
        for (const PublishedRecord* table : tables_)
            if (!fold || !fold->holdsOut(table->repository)) out.push_back(table->json);
        return out;
    }

    Result<void> fitCollectiveTables() {
        say(0.10, "fitting collectives");
        if (tables_.empty()) return {};
        TRY(const CollectiveFit whole, fitCollectives(tablesWithout(nullptr)));
        fit_.figures.collectives = constantsOf(whole);
        fit_.rows += static_cast<std::size_t>(whole.rows);
        for (Fold& fold : fit_.folds) {
            const std::vector<Json> rest = tablesWithout(&fold);
            if (rest.size() == tables_.size()) {
                fold.figures.collectives = fit_.figures.collectives;
                continue;
            }
            const auto part = fitCollectives(rest);
            if (part) fold.figures.collectives = constantsOf(*part);  // none left: neutral
        }
        return {};
    }

    void fitRowsOf(FitRows kind) {
        const double at = kind == FitRows::Kernels ? 0.2 : kind == FitRows::Training ? 0.3 : 0.75;
        const std::string doing = fmt::format("fitting {}", nameOf(kind));
        say(at, doing);
        std::size_t pass = 0;
        FitStage stage(kind, rows_, options_.threads, [&] { say(at + (kind == FitRows::Training ? 0.45 : 0.05) * (1 - 1 / (1 + 0.1 * static_cast<double>(++pass))), doing); });
        fit_.rows += stage.rowCount();
        if (stage.rowCount() == 0) return;
        append(fit_.figures, stage.solve(fit_.figures, [](const FitRow&) { return true; }, 2));
        for (Fold& fold : fit_.folds) append(fold.figures, stage.solve(fold.figures, [&](const FitRow& row) { return !fold.holdsOut(row.repository); }, 0));
    }

    PublishedVerdict heldOutVerdict(const std::vector<PublishedRecord>& records, const std::vector<PublishedRun>& runs) const {
        return judgeRuns(records, runs, [&](const PublishedRecord& record) -> const PublishedFigures& {
            for (const Fold& fold : fit_.folds)
                if (fold.holdsOut(record.repository)) return fold.figures;
            return fit_.figures;
        }, options_.threads);
    }

    void spreads() {
        say(0.8, "judging sources that were held out");
        std::vector<PublishedRecord> tables;
        for (const PublishedRecord* table : tables_) tables.push_back(*table);
        setCollectiveSpreads(fit_, heldOutVerdict(tables, std::vector<PublishedRun>(tables.size())));
        for (Fold& fold : fit_.folds) setModelSpreads(fold.figures, [](const char*) { return 0.0; }, 0);
        setModelSpreads(fit_.figures, [](const char*) { return 0.0; }, 0);
        const PublishedVerdict heldOut = heldOutVerdict(records_, runs_);
        std::vector<Residual> residuals = residualsOf(heldOut, RecordKind::Training);
        const auto rows = static_cast<std::int64_t>(residuals.size());
        const std::vector<Residual> memory = residualsOf(heldOut, RecordKind::Memory);
        residuals.insert(residuals.end(), memory.begin(), memory.end());
        setModelSpreads(fit_.figures, [&](const char* group) { return spreadOf(residuals, group, nullptr, false); }, rows);
        for (Fold& fold : fit_.folds) setModelSpreads(fold.figures, [&](const char* group) { return spreadOf(residuals, group, &fold, false); }, rows);
    }

    void judgeAll() {
        say(0.88, "judging in sample and held out");
        fit_.verdict = judgeRuns(records_, runs_, [&](const PublishedRecord&) -> const PublishedFigures& { return fit_.figures; }, options_.threads);
        addHeldOut(fit_.verdict, heldOutVerdict(records_, runs_));
    }

    void count() {
        std::set<std::string> shared;  // one value under two keys
        for (const FitParameter& parameter : fitParameters())
            if (!parameter.also.empty()) shared.insert(std::string(parameter.also));
        fit_.constants = fit_.figures.collectives.size();
        for (const PublishedFigure& one : fit_.figures.figures) fit_.constants += shared.contains(one.key) ? 0 : 1;
    }

    const std::vector<PublishedRecord>& records_;
    const Catalogs& catalogs_;
    const PublishedFitOptions& options_;
    std::vector<PublishedRun> runs_;
    std::vector<FitRow> rows_;
    std::vector<const PublishedRecord*> tables_;
    PublishedFit fit_;
};

}  // namespace

Result<PublishedFit> fitPublished(const std::vector<PublishedRecord>& records, const Catalogs& catalogs, const PublishedFitOptions& options) { return Fitter(records, catalogs, options).run(); }

double coveringSpread(const std::vector<double>& logErrors, const std::vector<double>& spreads, const std::vector<std::string>& sources) {
    CHECK(logErrors.size() == spreads.size() && (sources.empty() || spreads.size() == sources.size()));
    std::map<std::string, double> number;
    for (const std::string& source : sources) ++number[source];
    const auto coverage = [&](double sigma) {
        double in = 0, all = 0;
        for (std::size_t i = 0; i < logErrors.size(); ++i) {
            const double weight = sources.empty() ? 1 : 1 / std::sqrt(number[sources[i]]);
            all += weight;
            if (std::abs(logErrors[i]) <= kP90 * std::hypot(spreads[i], sigma)) in += weight;
        }
        return all > 0 ? in / all + 1e-9 : 1;  // eight of ten are four fifths, whatever rounding says
    };
    double low = 0, high = kMostSpread;
    if (coverage(low) >= kCovered) return 0;
    for (int i = 0; i < 40; ++i) {
        const double middle = (low + high) / 2;
        (coverage(middle) >= kCovered ? high : low) = middle;
    }
    return high;
}

}  // namespace ringside
