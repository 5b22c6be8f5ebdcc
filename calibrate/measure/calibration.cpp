#include "calibrate/measure/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <unistd.h>

#include <fmt/format.h>

#include "calibrate/fit/assemble_profile.h"
#include "calibrate/fit/overhead_fit.h"
#include "calibrate/fit/repeat_spread.h"
#include "calibrate/fit/robust.h"
#include "calibrate/measure/collective_bench.h"
#include "calibrate/measure/compute_bench.h"
#include "calibrate/measure/machine.h"
#include "calibrate/measure/product_bench.h"
#include "kernels/device.h"
#include "model/cost/measured_collectives.h"
#include "model/workload/kernels_of.h"
#include "sim/prediction.h"
#include "sim/scenario.h"

namespace ringside {
namespace {

double memoryBytesHere() { return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)); }

constexpr double kMostSpread = 10;  // that a profile may state
constexpr double kSlowRank = 1.15;  // over the median of the ranks: worth a word

struct Plan {
    std::vector<CalibrationModel> models;
    ProductBenchOptions products;
    CollectiveBenchOptions collectives;
    ComputeBenchOptions compute;
};

Plan planOf(const CalibrationOptions& options) {
    Plan plan;
    plan.models = calibrationModels(options.effort);
    using enum CollectiveOp;
    plan.collectives.ops = {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, SendRecv};
    plan.collectives.link = options.link;
    plan.collectives.beside = true;
    const auto sizes = [&](std::initializer_list<Bytes> kib) {
        for (const Bytes k : kib) plan.collectives.sizes.push_back(k * kKiB);
    };
    for (const GemmShape shape : {GemmShape{1, 16, 256, 256}, {1, 64, 256, 256}, {1, 64, 1024, 256}, {1, 256, 256, 256}, {1, 256, 1024, 256}, {1, 128, 512, 512}, {1, 512, 512, 512}, {1, 512, 2048, 512}, {1, 1024, 1024, 1024}})
        plan.products.shapes.push_back(shape);
    if (options.effort == CalibrationEffort::Normal || options.effort == CalibrationEffort::Thorough)
        for (const std::int64_t m : {8, 32, 128, 512, 2048})
            for (const std::int64_t n : {64, 256, 1024, 4096})
                for (const std::int64_t k : {64, 256, 1024}) plan.products.shapes.push_back({1, m, n, k});
    switch (options.effort) {
        case CalibrationEffort::Trial:
            sizes({4, 512, 4096});
            plan.collectives.seconds = 0.02;
            plan.compute.seconds = 0.1;
            plan.products.shapes.resize(3);
            plan.products.seconds = 0.02;
            break;
        case CalibrationEffort::Quick:
            if (options.link == "loopback") sizes({4, 64, 512, 4096, 16384});
            else sizes({4, 64, 512, 1024, 4096, 16384, 32768});  // a slow link's queues fill up only in long transfers
            plan.collectives.seconds = 0.12;
            plan.compute.seconds = 0.9;
            break;
        case CalibrationEffort::Normal:
            sizes({1, 4, 16, 64, 256, 1024, 4096, 16384});
            plan.collectives.seconds = 0.4;
            plan.compute.seconds = 2;
            break;
        case CalibrationEffort::Thorough:
            sizes({1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536});
            plan.collectives.seconds = 1;
            plan.compute.seconds = 4;
            plan.compute.maxSteps = 400;
            break;
    }
    return plan;
}

/// What a model's steps gave, as series of the sample file: one per kernel, and last the steps themselves.
class StepSeries {
public:
    static std::string stepKey(const std::string& model) { return "step " + model; }

    static std::vector<StoredSeries> store(const std::string& model, const std::vector<StepTimings>& ranks, const Json& settings, const std::string& fingerprint) {
        std::vector<StoredSeries> out;
        const auto add = [&](std::string key, Json own, std::vector<double> seconds) {
            StoredSeries& series = out.emplace_back();
            series.key = std::move(key);
            series.settings = settings;
            series.settings.update(own);
            series.fingerprint = fingerprint;
            series.seconds = std::move(seconds);
            series.converged = true;
        };
        // Ranks that run at the same time are repetitions of each other.
        const StepTimings& first = ranks.front();
        for (std::size_t k = 0; k < first.kernels.size(); ++k) {
            std::vector<double> seconds;
            for (const StepTimings& rank : ranks)
                if (k < rank.kernels.size() && rank.kernels[k].work == first.kernels[k].work) seconds.insert(seconds.end(), rank.kernels[k].seconds.begin(), rank.kernels[k].seconds.end());
            add(fmt::format("kernel {} of {} #{}", first.kernels[k].name, model, k), {{"model", model}, {"work", toJson(first.kernels[k].work)}}, thinned(std::move(seconds)));
        }
        for (const StepCollective& collective : first.collectives)
            add(fmt::format("{} {} in steps of {}", nameOf(collective.op), collective.bytes, model), {{"model", model}, {"collective", nameOf(collective.op)}, {"bytes", collective.bytes}}, thinned(collective.seconds));
        std::vector<double> copies;
        for (const double rate : first.copyBytesPerSecond) copies.push_back(1 / rate);
        if (!copies.empty()) add("copy of " + model, {{"model", model}}, thinned(std::move(copies)));
        std::vector<double> steps;
        for (const StepTimings& rank : ranks) steps.insert(steps.end(), rank.stepSeconds.begin(), rank.stepSeconds.end());
        std::vector<double> overheads;
        for (const StepTimings& rank : ranks) overheads.push_back(rank.overheadSeconds);
        add(stepKey(model), {{"model", model}, {"tasks", first.tasks}, {"overhead_s", median(overheads)}}, steps);
        return out;
    }

private:
    /// At most so many, evenly from the sorted ones: medians and spreads stay what they are.
    static std::vector<double> thinned(std::vector<double> seconds) {
        constexpr std::size_t kMost = 64;
        if (seconds.size() <= kMost) return seconds;
        std::sort(seconds.begin(), seconds.end());
        std::vector<double> out;
        for (std::size_t i = 0; i < kMost; ++i) out.push_back(seconds[(2 * i + 1) * seconds.size() / (2 * kMost)]);
        return out;
    }
};

class Calibrator {
public:
    Calibrator(const CalibrationOptions& options, const CalibrationProgress& progress, SampleFile file, Environment environment, int ranks, int ranksHere)
        : options_(options), progress_(progress), plan_(planOf(options)), file_(std::move(file)), environment_(std::move(environment)), fingerprint_(fingerprint(environment_)), ranks_(ranks), ranksHere_(ranksHere) {
        if (ranks > 1 && options.effort != CalibrationEffort::Trial)
            for (CalibrationModel& model : strategyModels(ranks)) plan_.models.push_back(std::move(model));
        settings_ = {{"ranks", ranks}, {"threads", options.ranks.threads}, {"effort", static_cast<int>(options.effort)}};
        if (options.link != "loopback") settings_["link"] = options.link;
    }

    /// In a process that is not rank 0 it only takes part: rank 0 says what is measured, keeps the samples and makes the profile.
    Result<Calibration> run() {
        for (const std::string& note : file_.notes()) out_.notes.push_back(note);
        TRY(const Catalogs catalogs, Catalogs::builtin());
        if (!options_.collectivesOnly)
            for (std::size_t m = 0; m < plan_.models.size(); ++m) {
                report(kComputeShare() * static_cast<double>(m) / static_cast<double>(plan_.models.size()), plan_.models[m].name);
                TRY_VOID(measureModel(plan_.models[m], catalogs));
            }
        if (!options_.collectivesOnly) {
            report(kComputeShare() * 0.95, "matrix products");
            TRY_VOID(measureProducts());
        }
        if (options_.collectivesOnly && ranks_ > 1 && options_.link == "loopback" && options_.effort != CalibrationEffort::Trial) {
            plan_.compute.warmUp = 1;
            plan_.compute.minSteps = 2;
            const std::vector<CalibrationModel> models = strategyModels(ranks_);
            for (std::size_t m = 0; m < models.size(); m += 3) {  // one of each strategy
                report(0.3 * static_cast<double>(m) / static_cast<double>(models.size()), models[m].name);
                TRY_VOID(measureModel(models[m], catalogs));
            }
        }
        if (ranks_ > 1)
            for (std::size_t i = 0; i < plan_.collectives.ops.size(); ++i) {
                const CollectiveOp op = plan_.collectives.ops[i];
                report(kComputeShare() + (1 - kComputeShare()) * static_cast<double>(i) / static_cast<double>(plan_.collectives.ops.size()), fmt::format("{} of {} ranks over {}", nameOf(op), ranks_, options_.link));
                TRY_VOID(measureCollective(op, plan_.collectives, options_.link));
            }
        // A slow link loses where both of its directions are full; on loopback what messages take is the cores' time.
        if (ranks_ > 1 && options_.link != "loopback") {
            CollectiveBenchOptions bothWays = plan_.collectives;
            const Bytes most = (options_.effort == CalibrationEffort::Trial ? 4 : 16) * kMiB;
            bothWays.sizes = {most / 4, most};
            bothWays.bothWays = true;
            bothWays.beside = false;
            TRY_VOID(measureCollective(CollectiveOp::SendRecv, bothWays, bothWaysOf(options_.link)));
        }
        if (!isFirst()) return Calibration{};
        findSlowLinks();
        report(1, "fitting");
        TRY_VOID(assemble());
        return std::move(out_);
    }

private:
    double kComputeShare() const { return options_.collectivesOnly ? 0.3 : ranks_ > 1 ? 0.7 : 1; }
    void report(double share, const std::string& what) const {
        if (progress_ && isFirst()) progress_(share, what);
    }

    /// What is timed by itself is timed by two generations of processes: what they differ by (where their memory lies, who else was at
    /// work) belongs to the spread, and repetitions within one do not show it.
    int rounds() const { return options_.effort == CalibrationEffort::Trial ? 1 : 2; }
    static void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

    bool isFirst() const { return !options_.ranks.launched || options_.ranks.launched->isFirst(); }
    /// As rank 0 says: only it has the samples.
    Result<bool> agreed(bool mine) const {
        if (!options_.ranks.launched) return mine;
        TRY(const std::string word, options_.ranks.launched->agree(mine ? "reuse" : "measure"));
        return word == "reuse";
    }

    const StoredSeries* known(const std::string& key, const Json& settings) const { return options_.fresh ? nullptr : file_.find(key, settings, fingerprint_); }

    /// Series of the model in the file, if all of them are there: the one of its steps is written last.
    bool reuse(const std::string& model) {
        if (options_.fresh) return false;
        bool complete = false;
        std::map<std::string, const StoredSeries*> own;  // the latest of each
        for (const StoredSeries& series : file_.series()) {
            if (series.fingerprint != fingerprint_ || series.settings.value("model", "") != model || series.settings.value("ranks", 0) != ranks_ || series.settings.value("effort", -1) != settings_["effort"] || series.settings.value("link", "loopback") != options_.link) continue;
            own[series.key] = &series;
            complete = complete || series.key == StepSeries::stepKey(model);
        }
        if (!complete) return false;
        for (const auto& [key, series] : own) take(*series);
        out_.reused += static_cast<int>(own.size());
        return true;
    }

    void take(const StoredSeries& series) {
        if (series.settings.contains("work")) {
            KernelTimings& timings = kernels_.emplace_back();
            timings.name = series.settings["work"]["name"].get<std::string>();
            timings.work = kernelWorkFrom(series.settings["work"]);
            timings.seconds = series.seconds;
        } else if (series.settings.contains("collective")) {
            inSteps_.push_back({series.settings["collective"].get<std::string>(), series.settings["bytes"].get<double>(), median(series.seconds)});
        } else if (series.key.starts_with("copy of ")) {
            for (const double inverse : series.seconds) copyRates_.push_back(1 / inverse);
        } else if (series.settings.contains("overhead_s")) {
            steps_[series.settings["model"].get<std::string>()] = median(series.seconds);
            if (series.settings["tasks"] != 0) overheads_.push_back({series.settings["tasks"].get<double>(), series.settings["overhead_s"].get<double>()});
        }
    }

    Result<void> measureModel(const CalibrationModel& model, const Catalogs& catalogs) {
        TRY(const bool reused, agreed(reuse(model.name)));
        if (reused) return {};
        TRY(const Scenario scenario, resolveScenario(model.document, model.name, catalogs));
        const bool several = scenario.cluster.deviceCount() > 1;
        TRY(const std::vector<StepTimings> timings, several ? benchStrategy(scenario, options_.ranks, plan_.compute) : benchSteps(scenario, options_.ranks, plan_.compute));
        if (timings.empty()) return {};  // not rank 0
        findSlowRanks(model.name, timings);
        for (StoredSeries& series : StepSeries::store(model.name, timings, settings_, fingerprint_)) {
            take(series);
            TRY_VOID(file_.append(std::move(series)));
            ++out_.measured;
        }
        return {};
    }

    Result<void> measureProducts() {
        const auto keyOf = [](const KernelWork& work) { return fmt::format("product {} {}x{}x{}", nameOf(work.math), work.shape.m, work.shape.n, work.shape.k); };
        bool all = !options_.fresh;
        std::vector<KernelTimings> known;
        for (const DType type : plan_.products.types)
            for (const GemmShape& shape : plan_.products.shapes) {
                const KernelWork work = gemmWork("product", shape, type, type);
                const StoredSeries* series = all ? this->known(keyOf(work), settings_) : nullptr;
                all = all && series;
                if (series) known.push_back({"", work, series->seconds});
            }
        TRY(all, agreed(all));
        if (all) {
            out_.reused += static_cast<int>(known.size());
            kernels_.insert(kernels_.end(), known.begin(), known.end());
            return {};
        }
        ProductBenchOptions bench = plan_.products;
        bench.seconds /= rounds();
        TRY(std::vector<KernelTimings> timings, benchProducts(options_.ranks, bench, dropped_));
        for (int round = 1; round < rounds(); ++round) {
            TRY(const std::vector<KernelTimings> again, benchProducts(options_.ranks, bench, dropped_));
            for (std::size_t i = 0; i < again.size(); ++i) append(timings[i].seconds, again[i].seconds);
        }
        for (const KernelTimings& product : timings) {
            StoredSeries series;
            series.key = keyOf(product.work);
            series.settings = settings_;
            series.fingerprint = fingerprint_;
            series.seconds = product.seconds;
            series.converged = true;
            TRY_VOID(file_.append(std::move(series)));
            ++out_.measured;
            kernels_.push_back(product);
        }
        return {};
    }

    void findSlowRanks(const std::string& model, const std::vector<StepTimings>& ranks) {
        if (ranks.size() < 2) return;
        std::vector<double> steps;
        for (const StepTimings& rank : ranks) steps.push_back(median(rank.stepSeconds));
        const double middle = median(steps);
        for (std::size_t r = 0; r < steps.size(); ++r)
            if (steps[r] > kSlowRank * middle) slow_[r].push_back(fmt::format("{} by {:.0f} %", model, (steps[r] / middle - 1) * 100));
    }

    Result<void> measureCollective(CollectiveOp op, CollectiveBenchOptions bench, const std::string& link) {
        const auto keyOf = [&](Bytes bytes) { return fmt::format("collective {} {} over {}", nameOf(op), bytes, link); };
        const auto besideKeyOf = [&](Bytes bytes) { return keyOf(bytes) + " beside kernels"; };
        Json settings = settings_;
        settings["link"] = link;
        bool all = true;
        for (const Bytes bytes : bench.sizes) all = all && known(keyOf(bytes), settings);
        TRY(all, agreed(all));
        if (all) {
            if (!isFirst()) return {};
            for (const Bytes bytes : bench.sizes) {
                const StoredSeries* series = known(keyOf(bytes), settings);
                const StoredSeries* beside = known(besideKeyOf(bytes), settings);  // not there for those that take long
                collectives_.push_back({CollectiveBackend::Gloo, op, ranks_, link, bytes, series->seconds, series->cpuSeconds, beside ? beside->seconds : std::vector<double>()});
                out_.reused += beside ? 2 : 1;
            }
            return {};
        }
        bench.ops = {op};
        bench.link = link;
        bench.beside = bench.beside && !overLoopback(op);
        bench.seconds /= rounds();
        bench.minRepeats = (bench.minRepeats + rounds() - 1) / rounds();
        bench.warmUp = std::max(1, bench.warmUp / rounds());
        TRY(CollectiveBenchResult result, benchCollectives(options_.ranks, bench));
        bench.beside = false;
        for (int round = 1; round < rounds(); ++round) {
            TRY(const CollectiveBenchResult again, benchCollectives(options_.ranks, bench));
            for (std::size_t i = 0; i < again.timings.size(); ++i) append(result.timings[i].seconds, again.timings[i].seconds);
            for (std::size_t r = 0; r < again.rankSeconds.size(); ++r) result.rankSeconds[r] += again.rankSeconds[r];
        }
        const auto keep = [&](std::string key, std::vector<double> seconds, std::vector<double> cpuSeconds) -> Result<void> {
            StoredSeries series;
            series.key = std::move(key);
            series.settings = settings;
            series.fingerprint = fingerprint_;
            series.seconds = std::move(seconds);
            series.cpuSeconds = std::move(cpuSeconds);
            series.converged = true;
            ++out_.measured;
            return file_.append(std::move(series));
        };
        for (const CollectiveTimings& timings : result.timings) {
            if (!timings.besideSeconds.empty()) TRY_VOID(keep(besideKeyOf(timings.bytes), timings.besideSeconds, {}));
            TRY_VOID(keep(keyOf(timings.bytes), timings.seconds, timings.cpuSeconds));
            collectives_.push_back(timings);
        }
        if (bench.bothWays) return {};  // the first has all the work
        rankSeconds_.resize(result.rankSeconds.size());
        for (std::size_t r = 0; r < result.rankSeconds.size(); ++r) rankSeconds_[r] += result.rankSeconds[r];
        return {};
    }

    void findSlowLinks() {
        if (rankSeconds_.empty()) return;
        const double middle = median(rankSeconds_);
        for (std::size_t r = 0; r < rankSeconds_.size(); ++r)
            if (rankSeconds_[r] > kSlowRank * middle) slow_[r].push_back(fmt::format("collectives by {:.0f} %", (rankSeconds_[r] / middle - 1) * 100));
    }

    Result<void> assemble() {
        Profile& profile = out_.profile;
        if (options_.base) {
            profile = *options_.base;
        } else {
            Device host;
            host.name = "cpu";
            profile = datasheetProfile(host);
            profile.gemmEfficiency.clear();
        }
        profile.name = fmt::format("{} measured, {} rank{} over {}", environment_.cpuModel, ranks_, ranks_ == 1 ? "" : "s", options_.link);
        profile.device = "cpu";
        if (!options_.collectivesOnly) {
            const OverheadFit overhead = fitOverhead(overheads_);
            for (KernelTimings& timings : kernels_)
                for (double& seconds : timings.seconds) seconds += overhead.perTask;
            TRY_VOID(addKernelTimings(profile, pooled()));
            // What stands for memory kernels that no model here has: a copy, or the next best thing.
            for (const char* name : {"copy", "add"})
                if (const auto points = profile.kernels.find(name); points != profile.kernels.end()) {
                    profile.kernels[kAnyMemoryKernel] = points->second;
                    break;
                }
            deriveFigures(profile, "measured by ringside calibrate");
            // Kernels that have nothing to do here would count as infinitely fast: the bandwidth is that of real copies or sums.
            double bandwidth = 0;
            for (const KernelPoint& point : profile.kernels[kAnyMemoryKernel]) bandwidth = std::max(bandwidth, point.bytes / point.seconds);
            if (bandwidth > 0) profile.deviceFigures["memory_bandwidth_gb_per_s"] = bandwidth / 1e9;
            const auto set = [&](Figure& figure, double value, double spread) { figure = {value, spread, Provenance::Measured, "measured by ringside calibrate"}; };
            set(profile.hostStepUs, overhead.perStep * 1e6, overhead.perStep > 0 ? std::min(kMostSpread, overhead.perStepSpread / overhead.perStep) : 0);
            // What issuing a task costs is in the kernels' own times already, as are the rest of these: what a GPU has and a host has not.
            const auto assume = [](Figure& figure, double value, const char* why) { figure = {value, 0, Provenance::Assumed, why}; };
            assume(profile.launchUs, 0.2, "issuing a task to a thread; its cost is in the measured kernels");
            assume(profile.collectiveLaunchUs, 0.5, "as launch_us");
            assume(profile.kernelFixedUs, 0.1, "in the measured kernels");
            assume(profile.contextBytes, 0, "a host has no device context");
            assume(profile.ncclBytes, 0, "Gloo's buffers are the sockets'");
            assume(profile.interference, 0, "measured for each collective instead");
            if (!copyRates_.empty()) {
                const Estimate rate = robustEstimate(copyRates_);
                profile.deviceFigures["pcie_gb_per_s"] = rate.value / 1e9;
                set(profile.copyEfficiency, 1, rate.relativeSpread);
            }
            profile.deviceFigures["memory_bytes"] = memoryBytesHere() / ranksHere_;
            set(profile.hostMemoryGbPerS, profile.deviceFigures["memory_bandwidth_gb_per_s"], profile.memoryEfficiency.relativeSpread);
            widen(profile);
            for (auto& [type, samples] : profile.gemmTable) shareSpread(samples);
            addTaskSpread(profile, overhead.perTaskSpread);
            profile.steps.clear();
            for (const CalibrationModel& model : referenceModels())
                if (const auto step = steps_.find(model.name); step != steps_.end()) profile.steps.push_back({model.name, ranks_, step->second});
        }
        if (!collectives_.empty()) {
            std::vector<CollectiveTimings> means = collectives_;
            for (CollectiveTimings& timings : means) {
                for (std::vector<double>* series : {&timings.seconds, &timings.cpuSeconds, &timings.besideSeconds})
                    if (!series->empty()) *series = blockMeans(*series);
            }
            TRY_VOID(addCollectiveTimings(profile, means));
            if (options_.link == "loopback") fitToSteps(profile);  // over a slow wire what one rank sees of the other's early part is not the whole
            for (CollectiveCurve& curve : profile.collectives)
                if (curve.ranks == ranks_ && curve.link == options_.link) shareSpread(curve.points);
            for (CollectiveCurve& curve : profile.collectives) {
                const CollectiveCurve* same = overLoopback(curve.op);
                if (!same || curve.ranks != ranks_ || curve.link != options_.link) continue;
                curve.cpuSecondsPerCall = same->cpuSecondsPerCall;
                curve.cpuSecondsPerByte = same->cpuSecondsPerByte;
                curve.slowdownByCompute = 1;
            }
            if (options_.link == "loopback") TRY_VOID(fitSeveralRanks(profile));
            if (options_.link == "loopback") {
                double best = 0;  // of one connection between two processes
                for (const CollectiveTimings& timings : collectives_)
                    if (timings.op == CollectiveOp::SendRecv) best = std::max(best, static_cast<double>(timings.bytes) / median(timings.seconds));
                if (best > 0) profile.deviceFigures["loopback_gb_per_s"] = best / 1e9;
            }
        }
        profile.environment = environment_;
        std::vector<double> spreads;
        for (const auto& [name, points] : profile.kernels)
            for (const KernelPoint& point : points) spreads.push_back(point.relativeSpread);
        if (!spreads.empty()) out_.noise = median(spreads);
        if (dropped_ > 0) out_.notes.push_back(fmt::format("{} samples of products were left out: the thread waited for its core, or they were outliers", dropped_));
        for (const auto& [rank, what] : slow_) {
            std::string all;
            for (const std::string& one : what) all += (all.empty() ? "" : ", ") + one;
            out_.notes.push_back(fmt::format("rank {} is slower than the others: {}", rank, all));
        }
        return {};
    }

    /// The base's curve of the same operation over loopback, if this is another link. What a collective takes from a core does not
    /// depend on the wire, and on a slow one it drowns in the noise of the kernels that are needed to outlast it.
    const CollectiveCurve* overLoopback(CollectiveOp op) const {
        if (!options_.base || options_.link == "loopback") return nullptr;
        for (const CollectiveCurve& curve : options_.base->collectives)
            if (curve.op == op && curve.ranks == ranks_ && curve.link == "loopback") return &curve;
        return nullptr;
    }

    struct InStep {
        std::string op;
        double bytes = 0, seconds = 0;
    };

    /// A collective takes longer in a step than in a bench: what it sends has just been written by a kernel, and it may have to be
    /// gathered first. Each curve is scaled by the median of the quotients, for short messages and long ones apart.
    void fitToSteps(Profile& profile) const {
        constexpr double kShort = 128.0 * kKiB;
        for (CollectiveCurve& curve : profile.collectives) {
            if (curve.ranks != ranks_ || curve.link != options_.link) continue;
            std::vector<double> quotients[2];
            for (const InStep& one : inSteps_)
                if (one.op == nameOf(curve.op)) quotients[one.bytes < kShort ? 0 : 1].push_back(one.seconds / measuredTime(curve, static_cast<Bytes>(one.bytes)).seconds);
            for (CollectivePoint& point : curve.points) {
                const std::vector<double>& own = quotients[static_cast<double>(point.bytes) < kShort ? 0 : 1];
                if (own.size() < 2) continue;
                point.seconds *= median(own);
                point.relativeSpread = std::hypot(point.relativeSpread, scaledMad(own) / median(own) / std::sqrt(static_cast<double>(own.size())));
            }
            for (std::size_t i = 1; i < curve.points.size(); ++i) curve.points[i].seconds = std::max(curve.points[i].seconds, curve.points[i - 1].seconds);
        }
    }

    /// Kernels among collectives take longer than the tables say: caches are cold after a collective, and whoever comes first waits for the
    /// slower rank. One factor for all of them, from the strategies' own steps; what they differ by from it is the model's spread.
    Result<void> fitSeveralRanks(Profile& profile) const {
        const auto set = [&](Figure& figure, double value, double spread, const char* how) { figure = {value, spread, Provenance::Measured, how}; };
        set(profile.severalRanks, 1, 0, "no strategy was measured");
        TRY(const Catalogs catalogs, Catalogs::builtin());
        // By the factor, the logarithm of what is measured over what is predicted, of each strategy and model.
        std::vector<std::pair<Scenario, double>> measured;
        for (const CalibrationModel& model : strategyModels(ranks_)) {
            const auto step = steps_.find(model.name);
            if (step == steps_.end()) continue;
            TRY(Scenario scenario, resolveScenario(model.document, model.name, catalogs));
            for (std::size_t g = 0; g < scenario.profiles.size(); ++g) {
                Device& device = scenario.cluster.nodes[g].kind.device;
                TRY(device, withMeasuredFigures(device, profile));
                scenario.profiles[g] = profile;
            }
            measured.emplace_back(std::move(scenario), step->second);
        }
        if (measured.size() < 3) return {};
        const auto residuals = [&](double factor) -> Result<std::vector<double>> {
            std::vector<double> out;
            for (auto& [scenario, seconds] : measured) {
                for (Profile& own : scenario.profiles) own.severalRanks.value = factor;
                TRY(const Prediction prediction, predict(scenario, {false, false, false, false}));
                out.push_back(std::log(seconds / prediction.stepSeconds));
            }
            return out;
        };
        // A step is nearly proportional to it: a few corrections by the median are enough.
        double factor = 1;
        for (int i = 0; i < 4; ++i) {
            TRY(const std::vector<double> off, residuals(factor));
            factor = std::clamp(factor * std::exp(median(off)), 0.8, 1.5);
        }
        TRY(const std::vector<double> left, residuals(factor));
        set(profile.severalRanks, factor, scaledMad(left) / std::sqrt(static_cast<double>(left.size())), "steps of strategies in ringside calibrate");
        set(profile.modelSpreadNode, scaledMad(left), 0.3, "steps of strategies in ringside calibrate, over their predictions");
        profile.modelSpreadNetwork = profile.modelSpreadNode;
        return {};
    }

    /// Repetitions agree better than a table read between its points: kernels of shapes that were not measured are off by about this
    /// much (docs/validation.md), and the band must say so.
    static void widen(Profile& profile) {
        constexpr double kBetweenPoints = 0.05;
        std::vector<Figure*> figures{&profile.memoryEfficiency, &profile.convolutionEfficiency, &profile.attentionForwardEfficiency, &profile.attentionBackwardEfficiency, &profile.sustainedClock};
        for (auto& [type, figure] : profile.gemmEfficiency) figures.push_back(&figure);
        for (Figure* figure : figures) figure->relativeSpread = std::max(figure->relativeSpread, kBetweenPoints);
    }

    /// Equal kernels of several models are one series.
    std::vector<KernelTimings> pooled() const {
        std::map<std::pair<std::string, std::string>, KernelTimings> byWork;
        for (const KernelTimings& timings : kernels_) {
            KernelTimings& into = byWork[{timings.name, toJson(timings.work).dump()}];
            into.name = timings.name;
            into.work = timings.work;
            into.seconds.insert(into.seconds.end(), timings.seconds.begin(), timings.seconds.end());
        }
        std::vector<KernelTimings> out;
        for (auto& [key, timings] : byWork) out.push_back(std::move(timings));
        return out;
    }

    const CalibrationOptions& options_;
    const CalibrationProgress& progress_;
    Plan plan_;
    SampleFile file_;
    Environment environment_;
    std::string fingerprint_;
    int ranks_, ranksHere_;
    Json settings_;
    Calibration out_;
    std::vector<KernelTimings> kernels_;
    std::vector<double> copyRates_;
    std::vector<StepOverhead> overheads_;
    std::vector<CollectiveTimings> collectives_;
    std::vector<InStep> inSteps_;
    std::map<std::string, double> steps_;  // by model
    std::vector<double> rankSeconds_;  // of all collectives measured
    std::map<std::size_t, std::vector<std::string>> slow_;
    int dropped_ = 0;
};

}  // namespace

Environment calibrationEnvironment(int threadsPerRank, const std::string& link, const std::string& version) {
    return environmentHere(threadsPerRank, link, {{"ringside", version}, {"kernels", cpuLibraries()}});
}

Result<Calibration> calibrateMachine(const CalibrationOptions& given, const CalibrationProgress& progress) {
    CalibrationOptions options = given;
    TRY(const int ranks, rankCount(options.ranks));
    TRY_VOID(joinLaunchedRanks(options.ranks));
    SampleFile file;
    if (!options.ranks.launched || options.ranks.launched->isFirst()) {
        TRY(file, SampleFile::open(options.samplesPath));
    }
    int ranksHere = ranks;
    if (options.ranks.launched) {
        TRY(ranksHere, options.ranks.launched->ranksHere());
    }
    const Environment environment = calibrationEnvironment(options.ranks.threads, options.link, options.version);
    return Calibrator(options, progress, std::move(file), environment, ranks, ranksHere).run();
}

}  // namespace ringside
