#include "model/catalog/model_catalog.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "model/base/json_cursor.h"
#include "model/base/names.h"
#include "model/catalog/embedded_catalog.h"
#include "model/workload/hf_config.h"

namespace ringside {
namespace {

std::string normalized(std::string_view name) {
    if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
    std::string out(name);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

Result<ModelSpec> readConfigFile(const std::filesystem::path& path) {
    TRY(const Json json, readJsonFile(path.string()));
    TRY(ModelSpec model, modelFromHfConfig(JsonCursor(json, path.string())));
    if (model.source.empty()) model.source = path.string();
    // Without a name of its own the model takes that of the folder, which is what people name after it.
    const bool named = json.contains("name") || json.contains("_name_or_path");
    const std::string folder = path.parent_path().filename().string();
    if (!named && !folder.empty() && folder != "." && folder != "..") model.name = folder;
    return model;
}

}  // namespace

Result<ModelCatalog> ModelCatalog::builtin() {
    ModelCatalog catalog;
    for (const EmbeddedFile& file : embeddedCatalog()) {
        if (!file.path.starts_with("workloads/")) continue;
        const std::string source(file.path);
        TRY(const Json json, parseJson(file.text, source));
        const JsonCursor root(json, source);
        TRY_VOID(root.keys({"models"}));
        TRY(const JsonCursor list, root.at("models"));
        TRY(const std::vector<JsonCursor> entries, list.items());
        for (const JsonCursor& entry : entries) {
            TRY(ModelSpec model, modelFromHfConfig(entry));
            const std::size_t index = catalog.models_.size();
            if (const auto aliases = entry.find("aliases")) {
                TRY(const std::vector<JsonCursor> names, aliases->items());
                for (const JsonCursor& item : names) {
                    TRY(std::string alias, item.asString());
                    catalog.aliases_.emplace_back(std::move(alias), index);
                }
            }
            catalog.models_.push_back(std::move(model));
        }
    }
    return catalog;
}

std::vector<std::string> ModelCatalog::names() const {
    std::vector<std::string> out;
    out.reserve(models_.size());
    for (const ModelSpec& model : models_) out.push_back(model.name);
    return out;
}

Result<ModelSpec> ModelCatalog::find(std::string_view name) const {
    const std::string wanted = normalized(name);
    for (const ModelSpec& model : models_)
        if (model.name == wanted) return model;
    for (const auto& [alias, index] : aliases_)
        if (alias == wanted) return models_[index];
    return badInput("", unknownName("model", name, names(), "`ringside catalog models` lists them; a Hugging Face config.json works too"));
}

Result<ModelSpec> resolveModel(const ModelCatalog& catalog, const std::string& nameOrConfigPath) {
    const std::filesystem::path path(nameOrConfigPath);
    if (path.extension() == ".json") return readConfigFile(path);
    // A bare word is a name first; with a slash in it, a path that exists wins over "organisation/model".
    Result<ModelSpec> found = catalog.find(nameOrConfigPath);
    std::error_code ignored;
    const bool exists = std::filesystem::exists(path, ignored);
    if (!exists || (found && !path.has_parent_path())) return found;
    if (!std::filesystem::is_directory(path, ignored)) return readConfigFile(path);
    if (std::filesystem::exists(path / "config.json", ignored)) return readConfigFile(path / "config.json");
    return badInput(nameOrConfigPath, "this directory holds no config.json; expected a model name, a Hugging Face config.json or its directory");
}

}  // namespace ringside
