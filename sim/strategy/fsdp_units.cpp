#include "sim/strategy/fsdp_units.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/base/names.h"

namespace ringside {
namespace {

std::int64_t roundUp(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

/// Local parameters of a layer that make up one module.
using Module = std::vector<int>;

/// PyTorch's size_based_auto_wrap_policy over the tree that dotted names make: a module is wrapped when what its children
/// left unwrapped reaches the limit; below the limit its children are not even looked at.
class SizePolicy {
public:
    SizePolicy(const LayerType& type, double least, const std::vector<bool>& apart) : type_(type), least_(least), apart_(apart) {}

    std::vector<Module> units() {
        Module all;
        for (int p = 0; p < static_cast<int>(type_.parameters.size()); ++p)
            if (!apart_[static_cast<std::size_t>(p)]) all.push_back(p);
        // A layer whose names are full (an embedding, a head) is no module: its parts are the model's own children.
        if (type_.localNames) visit(all, 0);
        else visitChildren(all, 0);
        return std::move(units_);
    }

private:
    double elements(const Module& module) const {
        double sum = 0;
        for (const int p : module) sum += static_cast<double>(type_.parameters[static_cast<std::size_t>(p)].elements());
        return sum;
    }

    /// What is left unwrapped.
    Module visit(const Module& module, std::size_t depth) {
        if (elements(module) < least_) return module;
        Module rest = visitChildren(module, depth);
        if (elements(rest) < least_) return rest;
        units_.push_back(std::move(rest));
        return {};
    }

    Module visitChildren(const Module& module, std::size_t depth) {
        Module rest;
        for (std::size_t i = 0; i < module.size();) {
            const std::string& name = type_.parameters[static_cast<std::size_t>(module[i])].name;
            const std::size_t end = name.find('.', depth);
            if (end == std::string::npos) {  // the module's own
                rest.push_back(module[i++]);
                continue;
            }
            Module child;
            for (; i < module.size() && type_.parameters[static_cast<std::size_t>(module[i])].name.compare(0, end + 1, name, 0, end + 1) == 0; ++i)
                child.push_back(module[i]);
            for (const int p : visit(child, end + 1)) rest.push_back(p);
        }
        return rest;
    }

    const LayerType& type_;
    double least_;
    const std::vector<bool>& apart_;  // parameters that are none of its business
    std::vector<Module> units_;
};

class UnitBuilder {
public:
    UnitBuilder(StepWriter& step, const UnitRules& rules) : step_(step), rules_(rules), workload_(step.workload()), parallel_(step.input().parallel) {}

    Result<FsdpUnits> build() {
        TRY_VOID(findNamedLayers());
        units_.layerUnits.resize(workload_.layers.size());
        units_.innerUnits.resize(workload_.layers.size());
        units_.unitOf.assign(step_.parameters().size(), kNoUnit);
        for (std::size_t c = 0; c < step_.part().chunks.size(); ++c) addChunk(c);
        TRY_VOID(checkTies());
        return std::move(units_);
    }

private:
    bool byName() const { return parallel_.wrap == "layers" || (!parallel_.wrapLayers.empty() && parallel_.given.count("wrap") == 0); }

    Result<void> findNamedLayers() {
        named_.assign(workload_.layers.size(), false);
        if (!byName()) {
            if (!parallel_.wrapLayers.empty()) return badInput("strategy.wrap_layers", fmt::format("goes with wrap 'layers', found '{}'; leave one of them out", parallel_.wrap));
            return {};
        }
        if (parallel_.wrapLayers.empty()) return badInput("strategy.wrap", "'layers' needs the layers' names; give wrap_layers");
        std::vector<std::string> names;
        for (const Layer& layer : workload_.layers) names.push_back(layer.name);
        for (const std::string& name : parallel_.wrapLayers) {
            const auto found = std::find(names.begin(), names.end(), name);
            if (found == names.end()) return badInput("strategy.wrap_layers", unknownName("layer", name, names));
            named_[static_cast<std::size_t>(found - names.begin())] = true;
        }
        return {};
    }

    void addChunk(std::size_t chunk) {
        const LayerRange layers = step_.part().chunks[chunk];
        const auto root = static_cast<std::uint32_t>(units_.all.size());
        units_.all.emplace_back().chunk = chunk;
        std::vector<std::uint32_t> backward;  // in post-forward order, the root last
        for (std::size_t l = layers.begin; l < layers.end; ++l) addLayer(chunk, l, backward);
        for (std::uint32_t p = 0; p < units_.unitOf.size(); ++p) {
            const auto layer = static_cast<std::size_t>(step_.parameters()[p].layer);
            if (units_.unitOf[p] == kNoUnit && layer >= layers.begin && layer < layers.end) add(root, p);
        }
        const bool hasRoot = !units_.all[root].parameters.empty();
        units_.roots.push_back(hasRoot ? root : kNoUnit);
        if (hasRoot) backward.push_back(root);
        for (std::uint32_t u = hasRoot ? root : root + 1; u + 1 < units_.all.size(); ++u) units_.all[u].nextForward = u + 1;
        for (std::size_t i = backward.size(); i-- > 1;) units_.all[backward[i]].nextBackward = backward[i - 1];
    }

    void addLayer(std::size_t chunk, std::size_t layer, std::vector<std::uint32_t>& postForward) {
        const LayerType& type = workload_.typeOf(layer);
        const std::size_t before = units_.all.size();
        std::vector<Module> inner;
        if (parallel_.wrap == "size" && !byName()) inner = sizeModules(layer);
        if (rules_.batchNormApart)
            for (const Op& op : type.ops)
                if (op.kind == OpKind::BatchNorm && !op.parameters.empty()) inner.push_back(op.parameters);
        const bool whole = byName() ? named_[layer] : parallel_.wrap == "block" && type.isBlock;
        std::vector<bool> taken(type.parameters.size());
        for (const Module& module : inner)
            for (const int p : module) taken[static_cast<std::size_t>(p)] = true;
        if (whole) addWholeLayer(chunk, layer, taken);
        const std::size_t firstInner = units_.all.size();
        for (const Module& module : inner) addInner(chunk, layer, module);
        std::sort(units_.all.begin() + static_cast<std::ptrdiff_t>(firstInner), units_.all.end(), [](const FsdpUnit& a, const FsdpUnit& b) { return a.firstOp < b.firstOp; });
        for (std::size_t u = firstInner; u < units_.all.size(); ++u) {
            units_.innerUnits[layer].push_back(static_cast<std::uint32_t>(u));
            for (const std::uint32_t p : units_.all[u].parameters) units_.unitOf[p] = static_cast<std::uint32_t>(u);
            postForward.push_back(static_cast<std::uint32_t>(u));
        }
        for (std::size_t u = before; u < firstInner; ++u) {
            units_.layerUnits[layer].push_back(static_cast<std::uint32_t>(u));
            postForward.push_back(static_cast<std::uint32_t>(u));
        }
    }

    std::vector<Module> sizeModules(std::size_t layer) {
        const LayerType& type = workload_.typeOf(layer);
        // Tied parameters stay in the root, where both modules find them; batch norms are units of their own already.
        std::vector<bool> apart(type.parameters.size());
        if (rules_.batchNormApart)
            for (const Op& op : type.ops)
                if (op.kind == OpKind::BatchNorm)
                    for (const int p : op.parameters) apart[static_cast<std::size_t>(p)] = true;
        bool hasTie = false;
        for (const TiedParameter& tie : workload_.ties)
            for (const auto& [l, p] : {std::pair{tie.layer, tie.parameter}, std::pair{tie.ownerLayer, tie.ownerParameter}})
                if (l == static_cast<int>(layer)) hasTie = apart[static_cast<std::size_t>(p)] = true;
        if (hasTie) return SizePolicy(type, parallel_.minWrapElements, apart).units();
        const auto [it, isNew] = modulesOfType_.try_emplace(workload_.layers[layer].type);
        if (isNew) it->second = SizePolicy(type, parallel_.minWrapElements, apart).units();
        return it->second;
    }

    void addWholeLayer(std::size_t chunk, std::size_t layer, const std::vector<bool>& taken) {
        const std::size_t count = workload_.typeOf(layer).parameters.size();
        for (const bool experts : {false, true}) {
            if (experts && !rules_.expertsApart) break;
            FsdpUnit unit;
            unit.chunk = chunk;
            unit.layer = static_cast<std::int32_t>(layer);
            unit.expert = experts;
            const auto index = static_cast<std::uint32_t>(units_.all.size());
            units_.all.push_back(unit);
            for (std::size_t local = 0; local < count; ++local) {
                const std::uint32_t p = step_.parameterOf(layer, static_cast<int>(local));
                const ModelParameter& parameter = step_.parameters()[p];
                const bool mine = parameter.layer == static_cast<std::int32_t>(layer);  // not another layer's, tied
                if (mine && !taken[local] && (!rules_.expertsApart || parameter.expert == experts)) add(index, p);
            }
            if (units_.all.back().parameters.empty()) units_.all.pop_back();
        }
    }

    void addInner(std::size_t chunk, std::size_t layer, const Module& module) {
        const LayerType& type = workload_.typeOf(layer);
        FsdpUnit& unit = units_.all.emplace_back();
        unit.chunk = chunk;
        unit.layer = static_cast<std::int32_t>(layer);
        for (int o = 0; o < static_cast<int>(type.ops.size()); ++o)
            for (const int p : type.ops[static_cast<std::size_t>(o)].parameters)
                if (std::find(module.begin(), module.end(), p) != module.end()) {
                    if (unit.firstOp < 0) unit.firstOp = o;
                    unit.lastOp = o;
                    unit.fullPrecision = rules_.batchNormApart && type.ops[static_cast<std::size_t>(o)].kind == OpKind::BatchNorm;
                }
        for (const int local : module) {
            const std::uint32_t p = step_.parameterOf(layer, local);
            unit.parameters.push_back(p);
            unit.elements += step_.parameters()[p].elements;
        }
    }

    void add(std::uint32_t unit, std::uint32_t parameter) {
        units_.all[unit].parameters.push_back(parameter);
        units_.all[unit].elements += step_.parameters()[parameter].elements;
        units_.unitOf[parameter] = unit;
    }

    /// A unit gathers its parameters for its own module only: another module that uses one of them must be in it too.
    Result<void> checkTies() const {
        for (const TiedParameter& tie : workload_.ties) {
            const auto owner = static_cast<std::size_t>(tie.ownerLayer), user = static_cast<std::size_t>(tie.layer);
            const auto inPart = [&](std::size_t l) {
                for (const LayerRange& chunk : step_.part().chunks)
                    if (l >= chunk.begin && l < chunk.end) return true;
                return false;
            };
            if (!inPart(owner) || !inPart(user)) continue;
            const FsdpUnit& unit = units_.all[units_.unitOf[step_.parameterOf(owner, tie.ownerParameter)]];
            if (!unit.isRoot())
                return badInput("strategy.wrap_layers", fmt::format("{} is tied to {}, which would be in another unit; leave both in the root (do not name '{}')",
                                                                    parameterName(workload_, user, tie.parameter), parameterName(workload_, owner, tie.ownerParameter),
                                                                    workload_.layers[owner].name));
        }
        return {};
    }

    StepWriter& step_;
    UnitRules rules_;
    const Workload& workload_;
    const ParallelConfig& parallel_;
    std::vector<bool> named_;
    std::map<int, std::vector<Module>> modulesOfType_;
    FsdpUnits units_;
};

}  // namespace

Result<FsdpUnits> fsdpUnits(StepWriter& step, const UnitRules& rules) { return UnitBuilder(step, rules).build(); }

std::vector<std::int64_t> flatPlaces(std::span<const std::int64_t> tensors, std::int64_t alignedTo) {
    std::vector<std::int64_t> places;
    places.reserve(tensors.size());
    std::int64_t end = 0;
    for (const std::int64_t elements : tensors) {
        places.push_back(alignedTo > 0 ? roundUp(end, alignedTo) : end);
        end = places.back() + elements;
    }
    return places;
}

std::int64_t flatElements(std::span<const std::int64_t> tensors, std::int64_t alignedTo, std::int64_t ranks) {
    return tensors.empty() ? 0 : roundUp(flatPlaces(tensors, alignedTo).back() + tensors.back(), ranks);
}

std::int64_t shardRows(const Shape& shape, std::int64_t ranks) { return shape.empty() ? 1 : (shape[0] + ranks - 1) / ranks; }

std::int64_t shardElements(const Shape& shape, std::int64_t ranks) {
    return shape.empty() ? 1 : shardRows(shape, ranks) * (elementCount(shape) / shape[0]);
}

}  // namespace ringside
