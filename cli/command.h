// What every command shares: how it is registered, where it writes, what it returns.
//
// One command per file in commands/. A command adds its flags to a CLI11 subcommand and gives a function that does the work
// and returns a Result<int>: the exit code, or an error that main prints.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "model/base/result.h"

namespace ringside {

/// Flags that every command takes.
struct OutputFlags {
    bool json = false;
    std::string format = "text";  ///< text, json or csv
    std::string file;             ///< "" or "-": standard output
    std::string color = "auto";   ///< auto, always, never

    bool wantsJson() const { return json || format == "json"; }
    bool wantsCsv() const { return !json && format == "csv"; }
    bool wantsColor() const;      ///< auto: a terminal, and NO_COLOR is not set
};
/// A check for options: an empty value ("--devices $UNSET") is a slip, not a default.
CLI::Validator notEmpty();
void addOutputFlags(CLI::App& command, OutputFlags& flags, bool csv = false);
/// Writes a result: to standard output, or beside the file and renamed over it. A reader that has gone away
/// (`ringside … | head`) is an error without a message.
Result<void> writeOutput(const OutputFlags& flags, const std::string& text);

using Run = std::function<Result<int>()>;
/// Each adds its subcommand and, when that is the one chosen, stores what to run.
void addPredict(CLI::App& app, Run& run);
void addMemory(CLI::App& app, Run& run);
void addCollective(CLI::App& app, Run& run);
void addCatalog(CLI::App& app, Run& run);
void addCompletion(CLI::App& app, Run& run);

}  // namespace ringside
