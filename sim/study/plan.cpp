#include "sim/study/plan.h"

#include <algorithm>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/parallel_for.h>

#include "model/base/names.h"
#include "sim/study/money.h"
#include "sim/study/pareto.h"
#include "sim/study/plan_trial.h"

namespace ringside {
namespace {

constexpr std::int64_t kSimulatedFailures = 100'000;  // per interval of the goodput check: some milliseconds
constexpr std::uint64_t kGoodputSeed = 1609;

/// Everything that shares hardware, device count and strategy. Within one, the fastest is also the cheapest.
struct Group {
    const HardwareOption* option = nullptr;
    std::int64_t devices = 1;
    const Strategy* strategy = nullptr;
    std::vector<Candidate> fits;  ///< fastest first
    Trial best;                   ///< where nothing fits: the trial that came closest
    std::int64_t evaluated = 0;
};

bool fasterThan(const Candidate& a, const Candidate& b) { return a.secondsPerSample < b.secondsPerSample; }

class Planner {
public:
    Planner(const PlanQuery& query, const Catalogs& catalogs) : query_(query), catalogs_(catalogs) {}

    Result<Plan> run(const PlanProgress& progress) {
        TRY_VOID(readQuery());
        TRY_VOID(makeGroups());
        search(progress);
        report();
        return std::move(plan_);
    }

private:
    /// The model and the batch, from the first hardware: every scenario shares them.
    Result<void> readQuery() {
        if (query_.hardware.empty()) return badInput("--hardware", "no hardware given; name devices or clusters, as in --hardware h100-sxm,a100-80gb-sxm");
        const int amounts = query_.tokens.has_value() + query_.samples.has_value() + query_.steps.has_value();
        if (amounts > 1) return failure(ErrorCode::Usage, "--tokens", "give one of --tokens, --samples and --steps");
        if (query_.deadlineDays && amounts == 0)
            return failure(ErrorCode::Usage, "--deadline-days", "a deadline needs an amount of work; add --tokens (or --samples, --steps)");
        Json document = query_.base;
        const HardwareOption& any = query_.hardware.front();
        TRY_VOID(layHardware(document, any, any.kind == HardwareOption::Kind::Cluster ? any.cluster.deviceCount() : 1));
        document.erase("strategy");
        std::optional<std::int64_t> batchOfBase;
        if (const auto training = JsonCursor(query_.base, query_.source).find("training"); training && training->value().is_object()) {
            TRY(const std::int64_t batch, training->intOr("global_batch", 0, 1, std::int64_t{1} << 40));
            if (batch > 0) batchOfBase = batch;
            for (const char* key : {"grad_accum", "global_batch"}) document["training"].erase(key);
        }
        TRY(const Scenario scenario, resolveScenario(document, query_.source, catalogs_));
        TRY(const Workload workload, buildWorkload(scenario.model, scenario.training));
        plan_.model = scenario.model.name;
        plan_.parameters = parameterCount(workload);
        plan_.seqLen = scenario.training.seqLen;
        plan_.tokensPerSample = workload.tokensPerSample;
        const std::optional<std::int64_t> given = query_.globalBatch ? query_.globalBatch : batchOfBase;
        plan_.globalBatchGiven = given.has_value();
        plan_.globalBatch = given.value_or(defaultGlobalBatch(plan_.parameters, workload.tokensPerSample));
        if (workload.tokensPerSample == 0 && (query_.tokens || query_.tokensPerSecond))
            return badInput(query_.tokens ? "--tokens" : "--target-tokens-per-s", fmt::format("{} reads no tokens; give the amount with --samples or --steps, and the goal with --deadline-days", plan_.model));
        if (query_.tokens) plan_.samples = *query_.tokens / static_cast<double>(workload.tokensPerSample);
        if (query_.samples) plan_.samples = query_.samples;
        if (query_.steps) plan_.samples = *query_.steps * static_cast<double>(plan_.globalBatch);
        // A missing price is a question to the user, not a reason to lose.
        for (const HardwareOption& option : query_.hardware) TRY_VOID(clusterUsdPerHour(option.cluster, query_.prices, query_.commitment));
        return {};
    }

    Result<void> makeGroups() {
        const auto given = query_.base.find("strategy");
        if (given != query_.base.end() && given->is_object()) fixedKnobs_ = *given;
        const bool one = given != query_.base.end() && (given->is_string() || given->contains("name"));
        std::vector<std::string> wanted = query_.strategies;
        if (wanted.empty() && one) wanted.push_back(given->is_string() ? given->get<std::string>() : textOrEmpty((*given)["name"]));
        if (wanted.empty()) {
            for (auto& strategy : strategies())
                if (isPlannedByDefault(strategy->name())) strategies_.push_back(std::move(strategy));
        }
        for (const std::string& name : wanted) {
            auto found = strategyByName(name);
            if (!found) return badInput("--strategies", found.error().message);
            strategies_.push_back(std::move(*found));
        }
        std::set<std::string> known{"name"};
        for (const auto& strategy : strategies_)
            for (const Knob& knob : strategy->knobs()) known.insert(knob.key);
        for (const auto& entry : fixedKnobs_.items())
            if (!known.contains(entry.key()))
                return badInput(query_.source + ": strategy." + entry.key(), "none of the planned strategies has such a setting; leave it out, or name the strategy that has it with --strategies");
        for (const HardwareOption& option : query_.hardware)
            for (const std::int64_t devices : option.counts)
                for (const auto& strategy : strategies_) {
                    if (strategy->name() == "single" && devices > 1) continue;
                    // On one device every strategy is the plain loop; the others would only be its echoes.
                    if (devices == 1 && strategy->name() != "single" && hasSingle()) continue;
                    Group& group = groups_.emplace_back();
                    group.option = &option;
                    group.devices = devices;
                    group.strategy = strategy.get();
                }
        if (groups_.empty()) return badInput("--strategies", "'single' trains on one device; add --devices 1, or other strategies");
        return {};
    }

    static std::string textOrEmpty(const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); }
    bool hasSingle() const {
        return std::any_of(strategies_.begin(), strategies_.end(), [](const auto& strategy) { return strategy->name() == "single"; });
    }

    void search(const PlanProgress& progress) {
        std::mutex reporting;
        std::size_t done = 0;
        tbb::parallel_for(std::size_t{0}, groups_.size(), [&](std::size_t g) {
            searchGroup(groups_[g]);
            if (!progress) return;
            const std::lock_guard lock(reporting);
            progress(++done, groups_.size());
        });
    }

    std::vector<Recompute> recomputeChoices() const {
        if (const auto training = query_.base.find("training"); training != query_.base.end() && training->is_object())
            if (const auto given = training->find("recompute"); given != training->end() && given->is_string())
                if (const auto recompute = recomputeByName(given->get<std::string>())) return {*recompute};
        return {Recompute::None, Recompute::Selective, Recompute::Full};
    }

    std::vector<std::int64_t> microBatches(std::int64_t replicas) const {
        if (const auto training = query_.base.find("training"); training != query_.base.end() && training->is_object())
            if (const auto given = training->find("micro_batch"); given != training->end() && given->is_number_integer()) return {given->get<std::int64_t>()};
        std::vector<std::int64_t> sizes;
        for (std::int64_t micro = 1; micro * replicas <= plan_.globalBatch; micro *= 2)
            if (plan_.globalBatch % (micro * replicas) == 0) sizes.push_back(micro);
        return sizes;
    }

    void searchGroup(Group& group) const {
        // Cutting the model costs communication all the time: it is for models that do not fit whole, and for batches smaller
        // than the ranks.
        const std::vector<Json> settings = knobSettings(*group.strategy, fixedKnobs_, group.devices, group.option->devicesPerNode());
        for (const bool cut : {false, true}) {
            if (cut && !group.fits.empty()) break;
            for (const Json& knobs : settings)
                if ((modelParallelDevices(knobs) > 1) == cut || fixesMesh()) searchKnobs(group, knobs);
            if (fixesMesh()) break;
        }
        std::stable_sort(group.fits.begin(), group.fits.end(), fasterThan);
    }

    /// The query says how the model is cut.
    bool fixesMesh() const { return modelParallelDevices(fixedKnobs_.is_object() ? fixedKnobs_ : Json::object()) > 1; }

    /// Recompute from light to heavy, micro-batch growing. Memory grows with the micro-batch, so the first that does not fit
    /// ends a row; recompute buys nothing but memory, so a heavier one starts where the lighter one ended.
    void searchKnobs(Group& group, const Json& knobs) const {
        const std::int64_t replicas = std::max<std::int64_t>(1, group.devices / modelParallelDevices(knobs));
        const std::vector<std::int64_t> sizes = microBatches(replicas);
        const std::vector<Recompute> recomputes = recomputeChoices();
        if (sizes.empty()) return note(group, refusedBatch(replicas));
        // The least memory that these knobs can do with: if that does not fit, nothing does.
        std::size_t first = 0;
        Trial smallest = attempt(group, {sizes[first], recomputes.back(), knobs});
        while (smallest.outcome == Trial::Outcome::Refused) {
            note(group, smallest);
            if (++first == sizes.size()) return;
            smallest = attempt(group, {sizes[first], recomputes.back(), knobs});
        }
        if (smallest.outcome == Trial::Outcome::OutOfMemory) return note(group, smallest);
        const std::size_t tried = first;
        for (const Recompute recompute : recomputes) {
            for (; first < sizes.size(); ++first) {
                const bool known = first == tried && recompute == recomputes.back();
                Trial trial = known ? smallest : attempt(group, {sizes[first], recompute, knobs});
                if (trial.outcome == Trial::Outcome::Fits) {
                    group.fits.push_back(std::move(trial.candidate));
                    continue;
                }
                note(group, trial);
                if (trial.outcome == Trial::Outcome::OutOfMemory) break;
            }
        }
    }

    Trial attempt(Group& group, const TrialSetting& setting) const {
        ++group.evaluated;
        return tryOut(query_, catalogs_, *group.option, group.devices, std::string(group.strategy->name()), setting, plan_.globalBatch, plan_.samples);
    }

    Trial refusedBatch(std::int64_t replicas) const {
        Trial trial;
        const std::string samples = fmt::format("{} samples a step{}", formatCount(plan_.globalBatch),
                                                plan_.tokensPerSample > 0 ? fmt::format(" of {} tokens each", formatCount(plan_.tokensPerSample)) : "");
        trial.reason = plan_.globalBatch < replicas
                           ? fmt::format("{} are fewer than {} ranks; raise --global-batch{}", samples, formatCount(replicas), plan_.tokensPerSample > 0 ? " or lower --seq-len" : "")
                           : fmt::format("{} do not split evenly over {} ranks; take a multiple with --global-batch", samples, formatCount(replicas));
        return trial;
    }

    /// Keeps the failure that says most: the one that lacks the least memory, else the first refusal.
    static void note(Group& group, const Trial& trial) {
        const bool memory = trial.outcome == Trial::Outcome::OutOfMemory, had = group.best.outcome == Trial::Outcome::OutOfMemory;
        if (group.best.reason.empty() || (memory && (!had || trial.lackingBytes < group.best.lackingBytes))) group.best = trial;
    }

    /// What stands between a candidate and the goal; empty: it meets it.
    std::string miss(const Candidate& c) const {
        if (query_.deadlineDays && *c.days > *query_.deadlineDays)
            return fmt::format("misses the deadline by {:.3g} days (it takes {:.3g})", *c.days - *query_.deadlineDays, *c.days);
        if (query_.tokensPerSecond && c.tokensPerSecond < *query_.tokensPerSecond)
            return fmt::format("reaches {} tokens/s, {:.3g} % below the target", formatCount(static_cast<std::int64_t>(c.tokensPerSecond)),
                               100 * (1 - c.tokensPerSecond / *query_.tokensPerSecond));
        return {};
    }

    /// Groups on the front of those that meet the goal, fastest first; of equal ones the first. Where none meets it: the fastest.
    std::vector<Group*> winners() {
        std::vector<Group*> meeting;
        Group* fastest = nullptr;
        std::vector<Tradeoff> points;
        for (Group& group : groups_) {
            if (group.fits.empty()) continue;
            const Candidate& c = group.fits.front();
            if (fastest == nullptr || fasterThan(c, fastest->fits.front())) fastest = &group;
            if (!miss(c).empty()) continue;
            meeting.push_back(&group);
            points.push_back({c.secondsPerSample, c.usdPerSample});
        }
        if (meeting.empty()) return fastest != nullptr ? std::vector<Group*>{fastest} : std::vector<Group*>{};
        std::vector<Group*> front;
        std::optional<Tradeoff> last;
        for (const std::size_t i : paretoFront(points)) {
            if (last && *last == points[i]) continue;
            last = points[i];
            front.push_back(meeting[i]);
        }
        return front;
    }

    void report() {
        const std::vector<Group*> best = winners();
        const bool met = !best.empty() && miss(best.front()->fits.front()).empty();
        for (const Group* group : best) {
            if (met) plan_.pareto.push_back(group->fits.front());
            else plan_.nearestMiss = group->fits.front();
        }
        for (const Group& group : groups_) {
            plan_.evaluated += group.evaluated;
            if (met && std::find(best.begin(), best.end(), &group) != best.end()) continue;
            plan_.rejected.push_back(rejectionOf(group));
        }
        if (!met) return addWarnings();
        addCheck(plan_.pareto.front());
        if (plan_.pareto.size() > 1) addCheck(plan_.pareto.back());
        addWarnings();
    }

    static void addCheck(Candidate& c) { c.goodputCheck = checkGoodput(c.goodput, kSimulatedFailures, kGoodputSeed); }

    Rejection rejectionOf(const Group& group) const {
        Rejection out;
        out.hardware = group.option->name;
        out.devices = group.devices;
        out.strategy = group.strategy->name();
        if (group.fits.empty()) {
            out.reason = group.best.reason;
            out.why = group.best.outcome == Trial::Outcome::OutOfMemory ? Rejection::Why::OutOfMemory : Rejection::Why::Refused;
            out.lackingBytes = group.best.lackingBytes;
            return out;
        }
        out.candidate = group.fits.front();
        const std::string missed = miss(*out.candidate);
        out.why = missed.empty() ? Rejection::Why::Dominated : Rejection::Why::MissesGoal;
        out.reason = missed.empty() ? whyDominated(*out.candidate) : missed;
        if (out.candidate->exposedShare >= 0.05) out.reason += fmt::format("; exposed communication is {:.0f} % of the step", 100 * out.candidate->exposedShare);
        return out;
    }

    /// "12 %", or "4.2 times" where a percentage is no longer read.
    static std::string more(double ratio) { return ratio < 2 ? fmt::format("{:.3g} %", 100 * (ratio - 1)) : fmt::format("{:.3g} times", ratio); }

    std::string whyDominated(const Candidate& c) const {
        // The front member to name: same devices if there is one, else the fastest that beats it.
        const Candidate* by = nullptr;
        const Tradeoff point{c.secondsPerSample, c.usdPerSample};
        for (const Candidate& other : plan_.pareto) {
            const Tradeoff better{other.secondsPerSample, other.usdPerSample};
            if (better == point) return fmt::format("as good as {}, which comes first", labelOf(other));
            if (!dominates(better, point)) continue;
            if (other.hardware == c.hardware && other.devices == c.devices)
                return fmt::format("{} slower than {} on the same devices ({} a step)", more(c.secondsPerSample / other.secondsPerSample), other.strategy, formatSeconds(c.stepSeconds));
            if (by == nullptr) by = &other;
        }
        if (by == nullptr) return "dominated";
        return fmt::format("dominated by {}: {} slower and {} dearer", labelOf(*by), more(c.secondsPerSample / by->secondsPerSample), more(c.usdPerSample / by->usdPerSample));
    }

    void addWarnings() {
        std::set<std::string> assumed, unpowered;
        for (const HardwareOption& option : query_.hardware)
            for (const NodeGroup& group : option.cluster.nodes) {
                const DevicePrice* price = query_.prices.find(group.kind.device.name);
                if (price != nullptr && price->provenance == "assumed") assumed.insert(price->device);
                if (!group.kind.device.tdpW) unpowered.insert(group.kind.device.name);
            }
        if (!assumed.empty()) plan_.warnings.push_back(fmt::format("the price of {} is assumed, not read in a price list; give yours with --price", fmt::join(assumed, ", ")));
        if (!unpowered.empty()) plan_.warnings.push_back(fmt::format("no energy for {}: its power draw is not known; give it with --set device.tdp_w=WATTS", fmt::join(unpowered, ", ")));
    }

    const PlanQuery& query_;
    const Catalogs& catalogs_;
    Plan plan_;
    Json fixedKnobs_ = Json::object();
    std::vector<std::unique_ptr<const Strategy>> strategies_;
    std::vector<Group> groups_;
};

}  // namespace

Result<Plan> makePlan(const PlanQuery& query, const Catalogs& catalogs, const PlanProgress& progress) { return Planner(query, catalogs).run(progress); }

std::string labelOf(const Candidate& candidate) { return fmt::format("{} × {} with {}", formatCount(candidate.devices), candidate.hardware, candidate.strategy); }

}  // namespace ringside
