// What every command shares: how it is registered, where it writes, what it returns.
//
// One command per file in commands/. A command adds its flags to the command line (command_line.h) and gives a function that
// does the work and returns a Result<int>: the exit code, or an error that main prints.
#pragma once

#include <string>

#include "cli/command_line.h"
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
void addOutputFlags(Command& command, OutputFlags& flags, bool csv = false);
/// Writes a result: to standard output, or beside the file and renamed over it. A reader that has gone away
/// (`ringside … | head`) is an error without a message.
Result<void> writeOutput(const OutputFlags& flags, const std::string& text);

/// Each adds its subcommand.
void addPredict(CommandLine& line);
void addMemory(CommandLine& line);
void addScale(CommandLine& line);
void addSweep(CommandLine& line);
void addCompare(CommandLine& line);
void addCollective(CommandLine& line);
void addRun(CommandLine& line);
void addCalibrate(CommandLine& line);
void addValidate(CommandLine& line);
void addTrace(CommandLine& line);
void addPlan(CommandLine& line);
void addCatalog(CommandLine& line);
void addCompletion(CommandLine& line);

}  // namespace ringside
