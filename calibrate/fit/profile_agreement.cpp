#include "calibrate/fit/profile_agreement.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "calibrate/fit/robust.h"
#include "model/base/units.h"
#include "model/cost/profile_fields.h"

namespace ringside {
namespace {

constexpr double kLeastSpread = 0.005;  // no timing is good to more than half a per cent

class Agreement {
public:
    Agreement(const Profile& a, const Profile& b) : a_(a), b_(b) {}

    ProfileAgreement run() {
        out_.sameMachine = a_.environment && b_.environment && fingerprint(*a_.environment) == fingerprint(*b_.environment);
        kernels();
        products();
        collectives();
        figures();
        for (const auto& [name, value] : a_.deviceFigures)
            if (const auto other = b_.deviceFigures.find(name); other != b_.deviceFigures.end() && value > 0 && other->second > 0) out_.withoutSpread.push_back({"device figures", name, value, other->second, 0});
        for (const ReferenceStep& step : a_.steps)
            for (const ReferenceStep& other : b_.steps)
                if (step.model == other.model && step.ranks == other.ranks) out_.withoutSpread.push_back({"reference steps", step.model, step.seconds, other.seconds, 0});
        summarise();
        return std::move(out_);
    }

private:
    void add(const std::string& group, std::string what, double a, double b, double spreadA, double spreadB) {
        if (!(a > 0) || !(b > 0)) return;
        entries_.push_back({group, std::move(what), a, b, std::max(kLeastSpread, std::hypot(spreadA, spreadB))});
    }

    void kernels() {
        for (const auto& [name, points] : a_.kernels) {
            if (name == kAnyMemoryKernel) continue;  // another name's points
            const auto others = b_.kernels.find(name);
            if (others == b_.kernels.end()) {
                out_.onlyA.push_back(name);
                continue;
            }
            for (const KernelPoint& one : points)
                for (const KernelPoint& other : others->second) {
                    if (one.flops != other.flops || one.bytes != other.bytes || !(one.shape == other.shape) || one.math != other.math || one.causal != other.causal) continue;
                    const std::string what = one.flops > 0 ? fmt::format("{} of {}", name, shapeOf(one.shape)) : fmt::format("{} of {}", name, formatBytes(static_cast<Bytes>(one.bytes)));
                    add(one.flops > 0 ? "kernels: arithmetic" : "kernels: memory", what, one.seconds, other.seconds, one.relativeSpread, other.relativeSpread);
                    break;
                }
        }
        for (const auto& [name, points] : b_.kernels)
            if (!a_.kernels.contains(name)) out_.onlyB.push_back(name);
    }

    void products() {
        for (const auto& [type, samples] : a_.gemmTable) {
            const auto others = b_.gemmTable.find(type);
            if (others == b_.gemmTable.end()) {
                out_.onlyA.push_back(fmt::format("products in {}", nameOf(type)));
                continue;
            }
            for (const GemmSample& one : samples)
                for (const GemmSample& other : others->second)
                    if (one.shape == other.shape) {
                        add("products", fmt::format("{} in {}", shapeOf(one.shape), nameOf(type)), one.tflops, other.tflops, one.relativeSpread, other.relativeSpread);
                        break;
                    }
        }
        for (const auto& [type, samples] : b_.gemmTable)
            if (!a_.gemmTable.contains(type)) out_.onlyB.push_back(fmt::format("products in {}", nameOf(type)));
    }

    static std::string shapeOf(const GemmShape& s) { return fmt::format("{}{} × {} × {}", s.batch > 1 ? fmt::format("{} × ", s.batch) : "", s.m, s.n, s.k); }
    static std::string nameOfCurve(const CollectiveCurve& c) { return fmt::format("{} of {} ranks over {}", nameOf(c.op), c.ranks, c.link.empty() ? "any link" : c.link); }
    static bool isSame(const CollectiveCurve& a, const CollectiveCurve& b) { return a.backend == b.backend && a.op == b.op && a.ranks == b.ranks && a.link == b.link; }

    void collectives() {
        for (const CollectiveCurve& curve : a_.collectives) {
            const auto same = std::find_if(b_.collectives.begin(), b_.collectives.end(), [&](const CollectiveCurve& c) { return isSame(curve, c); });
            if (same == b_.collectives.end()) {
                out_.onlyA.push_back(nameOfCurve(curve));
                continue;
            }
            for (const CollectivePoint& one : curve.points)
                for (const CollectivePoint& other : same->points)
                    if (one.bytes == other.bytes)
                        add(fmt::format("collectives over {}", curve.link.empty() ? "any link" : curve.link), fmt::format("{} of {}, {} ranks", nameOf(curve.op), formatBytes(one.bytes), curve.ranks), one.seconds,
                            other.seconds, one.relativeSpread, other.relativeSpread);
        }
        for (const CollectiveCurve& curve : b_.collectives)
            if (std::none_of(a_.collectives.begin(), a_.collectives.end(), [&](const CollectiveCurve& c) { return isSame(curve, c); })) out_.onlyB.push_back(nameOfCurve(curve));
    }

    void figures() {
        const auto compare = [&](std::string key, const Figure& one, const Figure& other) {
            if (one.provenance == Provenance::Measured && other.provenance == Provenance::Measured) add("figures", std::move(key), one.value, other.value, one.relativeSpread, other.relativeSpread);
        };
        for (const ProfileField& field : kProfileFields) compare(std::string(field.key), a_.*field.figure, b_.*field.figure);
        for (const auto& [type, figure] : a_.gemmEfficiency)
            if (const auto other = b_.gemmEfficiency.find(type); other != b_.gemmEfficiency.end()) compare(fmt::format("gemm_efficiency.{}", nameOf(type)), figure, other->second);
    }

    static AgreementGroup summaryOf(std::string name, const std::vector<const ProfileEntry*>& entries) {
        AgreementGroup group;
        group.name = std::move(name);
        group.entries = entries.size();
        if (entries.empty()) return group;
        std::vector<double> changes, sizes, spreads;
        double one = 0, two = 0;
        for (const ProfileEntry* entry : entries) {
            changes.push_back(entry->change());
            sizes.push_back(std::abs(entry->change()));
            spreads.push_back(entry->spread);
            one += entry->deviations() <= 1 ? 1 : 0;
            two += entry->deviations() <= 2 ? 1 : 0;
        }
        const double count = static_cast<double>(entries.size());
        group.bias = median(std::move(changes));
        group.typical = median(std::move(sizes));
        group.spread = median(std::move(spreads));
        group.withinOne = one / count;
        group.withinTwo = two / count;
        return group;
    }

    void summarise() {
        std::map<std::string, std::vector<const ProfileEntry*>> byGroup;
        std::vector<const ProfileEntry*> all;
        for (const ProfileEntry& entry : entries_) {
            byGroup[entry.group].push_back(&entry);
            all.push_back(&entry);
            if (entry.deviations() > 2) out_.farthest.push_back(entry);
        }
        for (const auto& [name, entries] : byGroup) out_.groups.push_back(summaryOf(name, entries));
        out_.all = summaryOf("all", all);
        std::stable_sort(out_.farthest.begin(), out_.farthest.end(), [](const ProfileEntry& x, const ProfileEntry& y) { return x.deviations() > y.deviations(); });
    }

    const Profile &a_, &b_;
    std::vector<ProfileEntry> entries_;
    ProfileAgreement out_;
};

Json toJson(const AgreementGroup& group) {
    return {{"name", group.name}, {"entries", group.entries}, {"bias", group.bias}, {"typical_change", group.typical}, {"spread", group.spread}, {"within_one", group.withinOne}, {"within_two", group.withinTwo}};
}

Json toJson(const ProfileEntry& entry) {
    Json json{{"group", entry.group}, {"what", entry.what}, {"a", entry.a}, {"b", entry.b}, {"change", entry.change()}};
    if (entry.spread > 0) {
        json["spread"] = entry.spread;
        json["deviations"] = entry.deviations();
    }
    return json;
}

Json listOf(const std::vector<ProfileEntry>& entries) {
    Json list = Json::array();
    for (const ProfileEntry& entry : entries) list.push_back(toJson(entry));
    return list;
}

}  // namespace

double ProfileEntry::deviations() const { return spread > 0 ? std::abs(std::log(b / a)) / spread : 0; }

ProfileAgreement compareProfiles(const Profile& a, const Profile& b) { return Agreement(a, b).run(); }

Json toJson(const ProfileAgreement& agreement) {
    Json groups = Json::array();
    for (const AgreementGroup& group : agreement.groups) groups.push_back(toJson(group));
    return {{"format", "ringside-profile-agreement"}, {"version", 1}, {"agree", agreement.agree()}, {"same_machine", agreement.sameMachine}, {"all", toJson(agreement.all)},
            {"groups", std::move(groups)}, {"farthest", listOf(agreement.farthest)}, {"without_spread", listOf(agreement.withoutSpread)}, {"only_a", agreement.onlyA}, {"only_b", agreement.onlyB}};
}

}  // namespace ringside
