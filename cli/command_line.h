// CommandLine: the one seam to CLI11. Commands describe their flags here, in plain types; only command_line.cpp knows the
// parser, which is a heavy header.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/result.h"

namespace CLI {
class App;
}

namespace ringside {

/// What a command does once its flags are read: the exit code, or an error that main prints.
using Run = std::function<Result<int>()>;

/// One subcommand. A handle: cheap to copy, valid as long as its CommandLine.
class Command {
public:
    explicit Command(CLI::App& app) : app_(&app) {}

    /// An option with a value ("--model", "-o,--output"), or a positional argument ("scenario"). An empty value
    /// ("--devices $UNSET") is a slip, not a default, and refused. `type` stands for the value in the help.
    void option(const std::string& name, std::string& value, const std::string& help, const std::string& type, const std::string& group);
    /// The same with a fixed set of values.
    void choice(const std::string& name, std::string& value, const std::string& help, std::vector<std::string> allowed, const std::string& group);
    /// A positional argument that must be there.
    void required(const std::string& name, std::string& value, const std::string& help);
    /// An option that may be repeated.
    void repeated(const std::string& name, std::vector<std::string>& values, const std::string& help, const std::string& type, const std::string& group);
    /// An option with any number of values behind it, none included; `given` says whether it was there at all.
    void list(const std::string& name, bool& given, std::vector<std::string>& values, const std::string& help, const std::string& type, const std::string& group);
    void flag(const std::string& name, bool& value, const std::string& help, const std::string& group);
    void footer(const std::string& text);

    std::string name() const;
    std::string description() const;
    std::vector<std::string> longFlags() const;  ///< "--model", …, sorted

private:
    CLI::App* app_;
};

class CommandLine {
public:
    CommandLine(const std::string& description, const std::string& program, const std::string& version);
    ~CommandLine();

    /// `run` is what happens when this command is chosen.
    Command add(const std::string& name, const std::string& description, Run run);
    std::vector<Command> commands() const;

    /// Parses, runs the chosen command and returns its result. --help and --version print and return 0; what cannot be
    /// parsed is a usage error that names the nearest command or flag.
    Result<int> run(int argc, char** argv);

private:
    std::unique_ptr<CLI::App> app_;
    Run chosen_;
};

}  // namespace ringside
