// The flags that describe a scenario, laid over a scenario file.
#pragma once

#include <string>
#include <utility>
#include <vector>


#include <CLI/CLI.hpp>

#include "sim/scenario.h"

namespace ringside {

class ScenarioFlags {
public:
    /// `withTraining` false: only the cluster (for `collective`).
    void addTo(CLI::App& command, bool withTraining = true);
    /// File and flags as one document. Errors name the file or the flag.
    Result<Json> document() const;
    Result<Scenario> resolve(const Catalogs& catalogs) const;

private:
    struct Flag {
        std::string key;  ///< scenario path
        std::string value;
    };
    void add(CLI::App& command, const std::string& flag, const std::string& key, const std::string& help, const std::string& group);

    std::string file_;
    std::vector<std::unique_ptr<Flag>> flags_;
    std::vector<std::string> assignments_;
    bool firstStep_ = false;
};

}  // namespace ringside
