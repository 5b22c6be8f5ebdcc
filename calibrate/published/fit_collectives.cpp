#include "calibrate/published/fit_collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "calibrate/published/collective_rows.h"
#include "model/base/check.h"

namespace ringside {
namespace {

constexpr double kSmallWeight = 0.2;
constexpr int kSamplesPerOctave = 2;  // of a table in the fit: a thousand sizes say no more than twenty

struct Sample {
    Bytes bytes = 0;
    double seconds = 0;
};

struct Table {
    std::string source;
    CollectiveCase one;
    std::vector<Sample> all, thinned;
};

std::vector<Sample> thin(const std::vector<Sample>& samples) {
    std::vector<Sample> kept;
    int last = -1;
    for (const Sample& sample : samples) {
        const int octave = static_cast<int>(std::floor(kSamplesPerOctave * std::log2(static_cast<double>(sample.bytes)) + 1e-9));
        if (octave != last) kept.push_back(sample);
        last = octave;
    }
    return kept;
}

std::vector<Sample> samplesOf(const Json& record) {
    std::vector<Sample> samples;
    const auto table = record.find("table");
    if (table == record.end() || !table->is_array()) return samples;
    for (const Json& row : *table) {
        if (!row.is_array() || row.size() < 2 || !row[0].is_number() || !row[1].is_number()) continue;
        const Sample sample{static_cast<Bytes>(row[0].get<double>()), row[1].get<double>() * 1e-6};
        if (sample.bytes > 0 && sample.seconds > 0) samples.push_back(sample);
    }
    std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.bytes < b.bytes; });
    return samples;
}

std::string sourceOf(const Json& record) {
    const auto source = record.find("source");
    if (source == record.end() || !source->is_object()) return "unknown";
    const auto repo = source->find("repo");
    return repo != source->end() && repo->is_string() ? repo->get<std::string>() : "unknown";
}

std::vector<Table> tablesOf(const std::vector<Json>& records) {
    std::vector<Table> tables;
    for (const Json& record : records) {
        if (record.contains("flag") && !record["flag"].is_null()) continue;
        auto one = collectiveCase(record);
        if (!one) continue;
        Table table{sourceOf(record), std::move(*one), samplesOf(record), {}};
        table.thinned = thin(table.all);
        if (!table.all.empty()) tables.push_back(std::move(table));
    }
    return tables;
}

CollectiveModel modelWith(const CollectiveCase& one, const NcclAchieved& achieved) {
    CollectiveOptions options = one.options;
    options.nccl.achieved = achieved;
    auto model = CollectiveModel::create(one.cluster, one.shape, CollectiveBackend::Nccl, options);
    CHECK(model.has_value());  // the case was made with the same cluster and group
    return std::move(*model);
}

NcclAchieved achievedWith(const CollectiveCase& one, const CollectiveConstantValues& values) {
    Profile profile;
    setCollectiveFigures(profile, one.cluster.nodes[one.shape.nodeKind].kind.device, values);
    return ncclAchieved(profile);
}

double tableLoss(const Table& table, const NcclAchieved& achieved) {
    const CollectiveModel model = modelWith(table.one, achieved);
    double sum = 0, weights = 0;
    for (const Sample& sample : table.thinned) {
        const double weight = sample.bytes >= kMiB ? 1 : kSmallWeight;
        sum += weight * std::abs(std::log(model.cost(table.one.op, sample.bytes).seconds / sample.seconds));
        weights += weight;
    }
    return sum / weights;
}

/// Pattern search from `start`: each constant is tried a step up and down (in its logarithm); steps that help grow, others shrink.
class Search {
public:
    Search(std::vector<const Table*> tables, const CollectiveConstantValues& start, double firstStep)
        : tables_(std::move(tables)), values_(start), firstStep_(firstStep) {
        for (const Table* table : tables_) {
            achieved_.push_back(achievedWith(table->one, values_));
            losses_.push_back(tableLoss(*table, achieved_.back()));
        }
        tells_.fill(0);
    }

    CollectiveConstantValues run() {
        constexpr int rounds = 80;
        constexpr double lastStep = 0.01, mostStep = 0.4;
        std::array<double, kCollectiveConstants> steps{};
        steps.fill(firstStep_);
        for (int round = 0; round < rounds && *std::max_element(steps.begin(), steps.end()) > lastStep; ++round)
            for (std::size_t c = 0; c < kCollectiveConstants; ++c) {
                if (steps[c] <= lastStep) continue;
                const bool better = tryStep(c, steps[c]) || tryStep(c, -steps[c]);
                steps[c] = better ? std::min(mostStep, steps[c] * 1.3) : steps[c] * 0.6;
            }
        return values_;
    }

    const std::array<std::int64_t, kCollectiveConstants>& tells() const { return tells_; }

private:
    bool tryStep(std::size_t c, double step) {
        CollectiveConstantValues tried = values_;
        tried[c] *= std::exp(step);
        std::vector<NcclAchieved> achieved = achieved_;
        std::vector<double> losses = losses_;
        std::int64_t changed = 0;
        for (std::size_t i = 0; i < tables_.size(); ++i) {
            achieved[i] = achievedWith(tables_[i]->one, tried);
            if (achieved[i] == achieved_[i]) continue;
            losses[i] = tableLoss(*tables_[i], achieved[i]);
            changed += losses[i] != losses_[i];
        }
        tells_[c] = std::max(tells_[c], changed);
        if (std::accumulate(losses.begin(), losses.end(), 0.0) >= std::accumulate(losses_.begin(), losses_.end(), 0.0) - 1e-9) return false;
        values_ = tried;
        achieved_ = std::move(achieved);
        losses_ = std::move(losses);
        return true;
    }

    std::vector<const Table*> tables_;
    CollectiveConstantValues values_;
    double firstStep_;
    std::vector<NcclAchieved> achieved_;
    std::vector<double> losses_;
    std::array<std::int64_t, kCollectiveConstants> tells_{};
};

CollectiveConstantValues neutralValues() {
    CollectiveConstantValues values{};
    for (std::size_t c = 0; c < kCollectiveConstants; ++c) values[c] = collectiveConstants()[c].neutral;
    return values;
}

/// Delete-a-group jackknife: every tenth table left out, ten times.
std::array<double, kCollectiveConstants> relativeSpreads(const std::vector<Table>& tables, const CollectiveConstantValues& fitted) {
    constexpr std::size_t groups = 10;
    constexpr double nearStep = 0.05;  // the answer is near
    std::array<std::vector<double>, kCollectiveConstants> logs;
    for (std::size_t g = 0; g < groups; ++g) {
        std::vector<const Table*> kept;
        for (std::size_t i = 0; i < tables.size(); ++i)
            if (i % groups != g) kept.push_back(&tables[i]);
        if (kept.empty()) continue;
        const CollectiveConstantValues values = Search(std::move(kept), fitted, nearStep).run();
        for (std::size_t c = 0; c < kCollectiveConstants; ++c) logs[c].push_back(std::log(values[c]));
    }
    std::array<double, kCollectiveConstants> spreads{};
    for (std::size_t c = 0; c < kCollectiveConstants; ++c) {
        const double n = static_cast<double>(logs[c].size());
        if (n < 2) continue;
        const double mean = std::accumulate(logs[c].begin(), logs[c].end(), 0.0) / n;
        double sum = 0;
        for (const double value : logs[c]) sum += (value - mean) * (value - mean);
        spreads[c] = std::sqrt(sum * (n - 1) / n);
    }
    return spreads;
}

HeldOutCollectives judge(std::span<const Table* const> tables, const CollectiveConstantValues& values) {
    HeldOutCollectives out;
    std::int64_t largeTables = 0;
    for (const Table* table : tables) {
        ++out.tables;
        double large = 0;
        std::int64_t largeRows = 0;
        const CollectiveModel model = modelWith(table->one, achievedWith(table->one, values));
        for (const Sample& sample : table->all) {
            const double error = std::abs(model.cost(table->one.op, sample.bytes).seconds / sample.seconds - 1);
            if (sample.bytes >= kMiB) {
                large += error;
                ++largeRows;
            } else {
                out.mapeSmall += error;
                ++out.rowsSmall;
            }
        }
        out.mapeLarge += large;
        out.rowsLarge += largeRows;
        if (largeRows == 0) continue;
        out.mapeLargeByTable += large / static_cast<double>(largeRows);
        ++largeTables;
    }
    if (largeTables > 0) out.mapeLargeByTable /= static_cast<double>(largeTables);
    if (out.rowsLarge > 0) out.mapeLarge /= static_cast<double>(out.rowsLarge);
    if (out.rowsSmall > 0) out.mapeSmall /= static_cast<double>(out.rowsSmall);
    return out;
}

std::vector<const Table*> pointersTo(const std::vector<Table>& tables) {
    std::vector<const Table*> all;
    for (const Table& table : tables) all.push_back(&table);
    return all;
}

tl::unexpected<Error> noneUsable() { return badInput("collectives", "none of the tables can be used: the devices are unknown or every record is flagged"); }

}  // namespace

Result<CollectiveFit> fitCollectives(const std::vector<Json>& records) {
    constexpr double firstStep = 0.25;
    const std::vector<Table> tables = tablesOf(records);
    if (tables.empty()) return noneUsable();
    Search search(pointersTo(tables), neutralValues(), firstStep);
    CollectiveFit fit;
    fit.values = search.run();
    const auto spreads = relativeSpreads(tables, fit.values);
    for (std::size_t c = 0; c < kCollectiveConstants; ++c)
        fit.constants.push_back({std::string(collectiveConstants()[c].key), fit.values[c], spreads[c], search.tells()[c]});
    fit.tables = static_cast<std::int64_t>(tables.size());
    for (const Table& table : tables) fit.rows += static_cast<std::int64_t>(table.all.size());
    return fit;
}

Result<std::vector<HeldOutCollectives>> crossValidateCollectives(const std::vector<Json>& records, std::int64_t folds) {
    CHECK(folds >= 2);
    constexpr double firstStep = 0.25;
    const std::vector<Table> tables = tablesOf(records);
    if (tables.empty()) return noneUsable();
    std::map<std::string, std::int64_t> count;
    for (const Table& table : tables) ++count[table.source];
    std::vector<std::pair<std::string, std::int64_t>> sources(count.begin(), count.end());
    std::stable_sort(sources.begin(), sources.end(), [](const auto& a, const auto& b) { return a.second > b.second; });

    const std::size_t used = std::min(sources.size(), static_cast<std::size_t>(folds));
    std::vector<std::int64_t> filled(used, 0);
    std::map<std::string, std::size_t> foldOf;
    std::vector<std::string> names(used);
    for (const auto& [source, number] : sources) {
        const auto fold = static_cast<std::size_t>(std::min_element(filled.begin(), filled.end()) - filled.begin());
        filled[fold] += number;
        foldOf[source] = fold;
        names[fold] += (names[fold].empty() ? "" : ", ") + source;
    }
    std::vector<HeldOutCollectives> out;
    for (std::size_t fold = 0; fold < used; ++fold) {
        std::vector<const Table*> fitted, held;
        for (const Table& table : tables) (foldOf[table.source] == fold ? held : fitted).push_back(&table);
        const CollectiveConstantValues values = fitted.empty() ? neutralValues() : Search(std::move(fitted), neutralValues(), firstStep).run();
        out.push_back(judge(held, values));
        out.back().sources = names[fold];
    }
    return out;
}

Result<HeldOutCollectives> judgeCollectives(const std::vector<Json>& records, const CollectiveConstantValues& values) {
    const std::vector<Table> tables = tablesOf(records);
    if (tables.empty()) return noneUsable();
    const std::vector<const Table*> all = pointersTo(tables);
    HeldOutCollectives out = judge(all, values);
    out.sources = "all";
    return out;
}

}  // namespace ringside
