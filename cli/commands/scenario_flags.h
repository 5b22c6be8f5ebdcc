// The flags that describe a scenario, laid over a scenario file.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "sim/scenario.h"

namespace ringside {

class ScenarioFlags {
public:
    /// Before addTo: this flag ("--devices", "--set") is not added, as the command has its own of that name.
    void leaveOut(const std::string& flag) { leftOut_.push_back(flag); }
    /// `withTraining` false: only the cluster (for `collective`).
    void addTo(Command& command, bool withTraining = true);
    /// File and flags as one document. Errors name the file or the flag.
    Result<Json> document() const;
    Result<Scenario> resolve(const Catalogs& catalogs) const;
    /// The same for a document that the caller has added to.
    Result<Scenario> resolve(const Json& document, const Catalogs& catalogs) const;
    /// What names the document in errors: the file, or "command line".
    std::string source() const;
    /// An error about the document, as resolve would give it: a key that a flag gave is named by the flag.
    Error named(Error error) const { return named(std::move(error), source()); }

private:
    struct Flag {
        std::string flag;  ///< "--seq-len"
        std::string key;   ///< scenario path: "training.seq_len"
        std::string value;
    };
    /// `type` is what the help shows for the value; a NAME stays a string even if it looks like a number. The help is that of
    /// the table of scenario keys, unless it is given (knobs, which differ from strategy to strategy).
    void add(Command& command, const std::string& flag, const std::string& key, const std::string& type, const std::string& group,
             const std::string& help = {});
    bool given(const std::string& key) const;
    /// A result names all three batches; when a flag changes one, the one that followed from the others goes.
    void dropDerivedBatch(Json& document) const;
    /// An error about a key that a flag gave names the flag, not the file.
    Error named(Error error, const std::string& source) const;

    bool isLeftOut(const std::string& flag) const;

    std::string file_;
    std::vector<std::string> leftOut_;
    std::vector<std::unique_ptr<Flag>> flags_;
    std::vector<std::string> assignments_;
    bool firstStep_ = false;
};

}  // namespace ringside
