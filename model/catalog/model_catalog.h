// ModelCatalog: the models that come with the program (workloads/*.json), by name.
//
// A workload file is {"models": [ … ]}. An entry holds the keys of a Hugging Face config.json (see hf_config.h) and "name",
// "aliases", "published_parameters" and "source".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/result.h"
#include "model/workload/model_spec.h"

namespace ringside {

class ModelCatalog {
public:
    /// Reads the embedded files; an error is a fault in one of them.
    static Result<ModelCatalog> builtin();

    /// In the order of the files.
    const std::vector<ModelSpec>& models() const { return models_; }
    std::vector<std::string> names() const;

    /// By name or alias, in any case, with or without an organisation in front ("meta-llama/Llama-3.1-8B"). The error names
    /// the nearest model.
    Result<ModelSpec> find(std::string_view name) const;

private:
    std::vector<ModelSpec> models_;
    std::vector<std::pair<std::string, std::size_t>> aliases_;
};

/// What a user means by a model: something that ends in .json is a Hugging Face config.json; a path with a slash that exists
/// is such a file or the directory that holds it; else a name of the catalogue; else any file or directory of that name.
Result<ModelSpec> resolveModel(const ModelCatalog& catalog, const std::string& nameOrConfigPath);

}  // namespace ringside
