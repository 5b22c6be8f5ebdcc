#include "calibrate/validate/validation_cases.h"

#include <algorithm>
#include <filesystem>

#include "calibrate/validate/validation_models.h"
#include "model/base/names.h"
#include "sim/scenario.h"
#include "sim/strategy/strategy.h"

namespace ringside {
namespace {

struct StrategyChoice {
    std::string given, name;
    std::vector<std::string> settings;
};

Result<StrategyChoice> strategyChoice(const std::string& given) {
    StrategyChoice choice{given, given.substr(0, given.find(':')), {}};
    const Result<std::unique_ptr<const Strategy>> known = strategyByName(choice.name);
    if (!known) return badInput("--strategies", known.error().message);
    for (std::size_t at = choice.name.size(); at < given.size();) {
        const std::size_t end = std::min(given.find(':', at + 1), given.size());
        choice.settings.push_back(given.substr(at + 1, end - at - 1));
        if (choice.settings.back().find('=') == std::string::npos)
            return badInput("--strategies", "'" + given + "': expected settings as KEY=VALUE, such as ddp:bucket_mb=1");
        at = end;
    }
    return choice;
}

Result<std::vector<ValidationModel>> modelsNamed(const std::string& name) {
    if (name == "single") return singleRankModels();
    if (name == "several") return severalRankModels();
    std::vector<std::string> names = {"single", "several"};
    for (ValidationModel& model : validationModels()) {
        if (model.name == name) return std::vector<ValidationModel>{std::move(model)};
        names.push_back(model.name);
    }
    if (!name.ends_with(".json")) return badInput("--models", unknownName("model", name, names));
    TRY(Json json, readJsonFile(name));
    if (!json.is_object()) return badInput(name, "expected a JSON object: a model configuration or a scenario");
    const std::string label = std::filesystem::path(name).stem().string();
    if (!json.contains("model")) return std::vector<ValidationModel>{{label, {{"model", name}}}};
    for (const char* key : {"device", "devices", "devices_per_node", "node", "cluster", "network", "strategy", "profile"}) json.erase(key);  // the run says these
    return std::vector<ValidationModel>{{label, std::move(json)}};
}

}  // namespace

Result<std::vector<ValidationCase>> validationCases(const std::vector<std::string>& strategies, const std::vector<std::string>& models, int ranks) {
    std::vector<StrategyChoice> choices;
    for (const std::string& given : strategies.empty() ? validationStrategies(ranks) : strategies) {
        TRY(choices.emplace_back(), strategyChoice(given));
    }
    std::vector<ValidationModel> chosen;
    for (const std::string& name : models) {
        TRY(const std::vector<ValidationModel> more, modelsNamed(name));
        chosen.insert(chosen.end(), more.begin(), more.end());
    }
    if (models.empty()) chosen = ranks == 1 ? singleRankModels() : severalRankModels();

    std::vector<ValidationCase> cases;
    for (const ValidationModel& model : chosen)
        for (const StrategyChoice& choice : choices) {
            ValidationCase& one = cases.emplace_back(ValidationCase{choice.given, model.name, choice.name == "single" ? 1 : ranks, model.document});
            one.document["strategy"] = {{"name", choice.name}};
            for (const std::string& setting : choice.settings) TRY_VOID(setScenarioKey(one.document, setting));
        }
    return cases;
}

}  // namespace ringside
