#include "gui/scenario/scenario_form.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "model/catalog/profile_catalog.h"
#include "model/training/parallel_knobs.h"
#include "sim/scenario_keys.h"
#include "sim/study/scenario_patch.h"

namespace ringside::gui {
namespace {

constexpr const char* kSource = "scenario";

FieldGroup groupOf(const std::string& path) {
    const std::string section = path.substr(0, path.find('.'));
    if (section == "model") return FieldGroup::Model;
    if (section == "training") return FieldGroup::Training;
    if (section == "strategy" || section == "step") return FieldGroup::Strategy;
    if (section == "collectives" || section == "memory") return FieldGroup::Collectives;
    if (section == "perturbation") return FieldGroup::Chance;
    if (section == "what_if") return FieldGroup::WhatIf;
    return FieldGroup::Hardware;
}

/// "training.micro_batch" → "Micro batch"; a unit at the end of a key is shown beside the value instead.
std::string labelOf(const std::string& path) {
    std::string label = path.substr(path.rfind('.') + 1);
    if (path == "strategy.name") label = "strategy";
    for (const std::string_view unit : {"_mb", "_us", "_ms", "_elements"})
        if (label.ends_with(unit)) label = label.substr(0, label.size() - unit.size());
    std::replace(label.begin(), label.end(), '_', ' ');
    if (label.size() == 2) return path.starts_with("strategy.") ? std::string{static_cast<char>(std::toupper(label[0])), static_cast<char>(std::toupper(label[1]))} : label;
    label[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(label[0])));
    for (const auto& [plain, proper] : {std::pair{"Nccl", "NCCL"}, std::pair{"cpu", "CPU"}, std::pair{"Cpu", "CPU"}, std::pair{"Seq len", "Sequence length"},
                                        std::pair{"Grad accum", "Gradient accumulation"}, std::pair{"Powersgd", "PowerSGD"}})
        if (const std::size_t at = label.find(plain); at != std::string::npos) label.replace(at, std::string(plain).size(), proper);
    return label;
}

std::string sizeText(const ModelSpec& model) {
    return model.publishedParameters ? formatShortCount(static_cast<double>(*model.publishedParameters)) + " parameters" : std::string();
}

std::vector<FieldChoice> namedChoices(const std::string& path, const Catalogs& catalogs) {
    std::vector<FieldChoice> choices;
    const HardwareCatalog& hardware = catalogs.hardware;
    if (path == "model")
        for (const ModelSpec& model : catalogs.models.models()) choices.push_back({model.name, sizeText(model)});
    else if (path == "device")
        for (const Device& device : hardware.devices())
            choices.push_back({device.name, device.memoryGb ? fmt::format("{}, {:g} GB", device.fullName, *device.memoryGb) : device.fullName});
    else if (path == "node")
        for (const CatalogNodeKind& node : hardware.nodeKinds())
            choices.push_back({node.kind.name, fmt::format("{} × {}, {}", node.kind.devices, node.anyDevice ? "any device" : node.kind.device.fullName, nameOf(node.kind.fabric))});
    else if (path == "network")
        for (const NamedNetwork& network : hardware.networks())
            choices.push_back({network.spec.name, network.nics.count == 0 ? "not connected" : fmt::format("{} × {:g} Gbit/s in each node", network.nics.count, network.nics.gbitPerS)});
    else if (path == "cluster")
        for (const Cluster& cluster : hardware.clusters()) choices.push_back({cluster.name, fmt::format("{} devices in {} nodes", cluster.deviceCount(), cluster.nodeCount())});
    else if (path == "profile")
        for (const std::string& name : profileNames()) choices.push_back({name, ""});
    else if (path == "strategy.name")
        for (const auto& strategy : strategies()) choices.push_back({std::string(strategy->name()), std::string(strategy->summary())});
    return choices;
}

FormField fieldOfKey(const ScenarioKey& key, const Catalogs& catalogs) {
    FormField field{key.path, labelOf(key.path), groupOf(key.path), key.spec, namedChoices(key.path, catalogs), false, key.defaultValue, key.help};
    for (const std::string& word : key.spec.choices) field.choices.push_back({word, ""});
    field.otherTextAllowed = key.path == "model" || key.path == "cluster" || key.path == "profile";
    return field;
}

FormField fieldOfKnob(const Knob& knob, bool mesh) {
    FormField field{"strategy." + knob.key, labelOf("strategy." + knob.key), mesh ? FieldGroup::Mesh : FieldGroup::Strategy, parallelKnobSpec(knob.key), {}, false, knob.defaultValue, knob.help};
    for (const std::string& word : field.spec.choices) field.choices.push_back({word, ""});
    return field;
}

/// The value at a dotted path; null where there is none. A section given by its name has that name.
const Json* at(const Json& document, std::string_view path) {
    const std::size_t dot = path.find('.');
    const auto found = document.find(std::string(path.substr(0, dot)));
    if (found == document.end() || found->is_null()) return nullptr;
    if (dot == std::string_view::npos) return &*found;
    const std::string_view rest = path.substr(dot + 1);
    if (found->is_string()) return rest == "name" ? &*found : nullptr;
    return found->is_object() ? at(*found, rest) : nullptr;
}

void eraseAt(Json& document, const std::string& path) {
    const std::size_t dot = path.find('.');
    const std::string head = path.substr(0, dot);
    const auto found = document.find(head);
    if (found == document.end()) return;
    if (dot == std::string::npos || found->is_string()) {
        document.erase(head);
        return;
    }
    if (!found->is_object()) return;
    eraseAt(*found, path.substr(dot + 1));
    if (found->empty()) document.erase(head);
}

/// What a scenario says of itself only through its cluster.
Json hardwareValue(const Scenario& scenario, std::string_view path) {
    const Cluster& cluster = scenario.cluster;
    const NodeKind& kind = cluster.nodes.front().kind;
    if (path == "device") return kind.device.name;
    if (path == "devices") return cluster.deviceCount();
    if (path == "devices_per_node") return kind.devices;
    if (path == "node") return kind.name;
    if (path == "network") return cluster.network.name;
    return nullptr;
}

std::string strategyIn(const Json& document) {
    const Json* name = at(document, "strategy.name");
    return name && name->is_string() ? name->get<std::string>() : std::string();
}

}  // namespace

std::string_view nameOf(FieldGroup group) {
    switch (group) {
        case FieldGroup::Model: return "Model";
        case FieldGroup::Hardware: return "Hardware";
        case FieldGroup::Training: return "Training";
        case FieldGroup::Strategy: return "Strategy";
        case FieldGroup::Mesh: return "Device mesh";
        case FieldGroup::Collectives: return "Collectives and memory";
        case FieldGroup::Chance: return "Ranks that differ";
        case FieldGroup::WhatIf: return "What if";
    }
    return "?";
}

ScenarioForm::ScenarioForm(std::shared_ptr<const Catalogs> catalogs, Json document) : catalogs_(std::move(catalogs)), document_(std::move(document)) {
    if (!document_.is_object() || document_.empty()) document_ = Json{{"model", "gpt2"}, {"device", "a100-80gb-sxm"}, {"devices", 8}};
    resolve();
}

Result<void> ScenarioForm::setDocument(Json document) {
    if (!document.is_object()) return badInput("", "expected a JSON object: a scenario, or a result that holds one");
    if (const Json* format = at(document, "format"); format && *format == "ringside-result") {
        const Json* scenario = at(document, "scenario");
        if (!scenario || !scenario->is_object()) return badInput("scenario", "the result holds no scenario");
        document = Json(*scenario);
    }
    if (const Json* format = at(document, "format"); format && *format != "ringside-scenario")
        return badInput("format", fmt::format("expected \"ringside-scenario\" or \"ringside-result\", found {}", format->dump()));
    document_ = std::move(document);
    resolve();
    return {};
}

const FormField* ScenarioForm::find(std::string_view path) const {
    const auto found = std::find_if(fields_.begin(), fields_.end(), [&](const FormField& field) { return field.path == path; });
    return found == fields_.end() ? nullptr : &*found;
}

bool ScenarioForm::isGiven(std::string_view path) const { return at(document_, path) != nullptr; }

Json ScenarioForm::shown(std::string_view path) const {
    if (const Json* given = at(document_, path)) {
        if (path != "device" || !given->is_object()) return *given;
        return given->contains("name") ? (*given)["name"] : Json(nullptr);
    }
    if (scenario_) {
        const Json hardware = hardwareValue(*scenario_, path);
        if (!hardware.is_null() && !(path == "device" && isGiven("cluster"))) return hardware;
    }
    if (path == "cluster" || path.starts_with("what_if.")) return nullptr;
    // Knobs of a strategy that is no longer chosen say nothing.
    if (path.starts_with("strategy.") && path != "strategy.name" && resolvedStrategy_ != strategyIn(document_) && !strategyIn(document_).empty()) return nullptr;
    const Json* value = at(resolved_, path);
    return value ? *value : Json(nullptr);
}

/// A cluster in one piece, taken apart, so that one of its properties can be another.
void ScenarioForm::moveToDevices() {
    if (!document_.contains("cluster") || !scenario_) return;
    const Cluster& cluster = scenario_->cluster;
    const NodeKind& kind = cluster.nodes.front().kind;
    document_.erase("cluster");
    document_["device"] = kind.device.name;
    document_["devices"] = cluster.deviceCount();
    if (catalogs_->hardware.findNodeKind(kind.name)) document_["node"] = kind.name;
    if (!document_.contains("network") && catalogs_->hardware.findNetwork(cluster.network.name)) document_["network"] = cluster.network.name;
}

void ScenarioForm::set(const std::string& path, const Json& value) {
    if (value.is_null()) {
        eraseAt(document_, path);
    } else if (path == "strategy.name") {
        setStrategy(document_, value.is_string() ? value.get<std::string>() : value.dump());
    } else if (path == "devices" && document_.contains("cluster") && value.is_number_integer() && setDevices(document_, value.get<std::int64_t>(), kSource, *catalogs_)) {
        makeRoomFor(document_, {"training.micro_batch"});  // a batch over all ranks follows from theirs
    } else {
        if (path == "device" || path == "devices" || path == "devices_per_node" || path == "node") moveToDevices();
        if (path == "device" && at(document_, "device") != nullptr) {
            // Another device comes with its own figures, node and network.
            for (const char* old : {"device", "node", "network", "devices_per_node"}) document_.erase(old);
        }
        makeRoomFor(document_, {path});
        Json* node = &document_;
        std::size_t begin = 0;
        for (std::size_t dot = path.find('.'); dot != std::string::npos; begin = dot + 1, dot = path.find('.', begin)) {
            Json& child = (*node)[path.substr(begin, dot - begin)];
            if (child.is_string()) child = Json{{"name", child}};
            if (!child.is_object()) child = Json::object();
            node = &child;
        }
        (*node)[path.substr(begin)] = value;
    }
    resolve();
}

void ScenarioForm::resolve() {
    Result<Scenario> scenario = resolveScenario(document_, kSource, *catalogs_);
    if (scenario) {
        scenario_ = std::make_shared<const Scenario>(std::move(*scenario));
        resolved_ = toJson(*scenario_);
        resolvedStrategy_ = scenario_->parallel.strategy;
        error_.reset();
    } else {
        scenario_.reset();
    }
    listFields();
    if (!scenario) error_ = located(scenario.error());
}

void ScenarioForm::listFields() {
    fields_.clear();
    const std::string chosen = strategyIn(document_);
    const auto strategy = strategyByName(chosen.empty() ? resolvedStrategy_ : chosen);
    for (const ScenarioKey& key : scenarioKeys()) {
        fields_.push_back(fieldOfKey(key, *catalogs_));
        if (key.path != "strategy.name" || !strategy) continue;
        const std::vector<Knob> mesh = meshKnobs();
        for (const Knob& knob : (*strategy)->knobs())
            fields_.push_back(fieldOfKnob(knob, std::any_of(mesh.begin(), mesh.end(), [&](const Knob& other) { return other.key == knob.key; })));
    }
    std::stable_sort(fields_.begin(), fields_.end(), [](const FormField& a, const FormField& b) { return a.group < b.group; });
}

FormError ScenarioForm::located(const Error& error) const {
    std::string path = error.place;
    const std::string prefix = std::string(kSource) + ": ";
    if (path.starts_with(prefix)) path = path.substr(prefix.size());
    if (path == kSource) path.clear();
    if (path.starts_with("--")) {  // hardware names its flags
        path = path.substr(2);
        std::replace(path.begin(), path.end(), '-', '_');
    }
    if (const std::size_t index = path.find('['); index != std::string::npos) path.resize(index);
    // The field itself, else the nearest section that has one.
    for (std::string candidate = path; !candidate.empty();) {
        if (find(candidate)) return {candidate, error.message};
        if (find(candidate + ".name")) return {candidate + ".name", error.message};
        const std::size_t dot = candidate.rfind('.');
        candidate = dot == std::string::npos ? std::string() : candidate.substr(0, dot);
    }
    if (path.empty() && !isGiven("model")) return {"model", error.message};
    if (path.empty() && !isGiven("device") && !isGiven("cluster") && !isGiven("node")) return {"device", error.message};
    return {"", path.empty() ? error.message : path + ": " + error.message};
}

Json valueOfText(const ValueSpec& spec, const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    if (first == std::string::npos) return nullptr;
    const std::string trimmed = text.substr(first, last - first + 1);
    if (spec.kind == ValueKind::Name || spec.kind == ValueKind::Word) return trimmed;
    if (const Result<Json> parsed = parseJson(trimmed, "")) return spec.kind == ValueKind::List && !parsed->is_array() ? Json::array({*parsed}) : *parsed;
    if (spec.kind != ValueKind::List) return trimmed;
    Json list = Json::array();
    for (std::size_t begin = 0; begin <= trimmed.size();) {
        const std::size_t end = std::min(trimmed.find(',', begin), trimmed.size());
        const Json entry = valueOfText({ValueKind::Number}, trimmed.substr(begin, end - begin));
        if (!entry.is_null()) list.push_back(entry);
        begin = end + 1;
    }
    return list;
}

std::string textOfValue(const Json& value) {
    if (value.is_null()) return {};
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
    return value.dump();
}

}  // namespace ringside::gui
