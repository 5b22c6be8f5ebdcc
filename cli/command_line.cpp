#include "cli/command_line.h"

#include <algorithm>
#include <set>

#include <CLI/CLI.hpp>

#include "model/base/names.h"

namespace ringside {
namespace {

CLI::Validator notEmpty() {
    return CLI::Validator([](std::string& value) { return value.empty() ? std::string("expected a value, found nothing") : std::string(); }, "");
}

/// CLI11 says only that a command is missing; say which word was taken for one, and name the nearest flag.
std::string usageMessage(const CommandLine& line, const CLI::ParseError& error, int argc, char** argv) {
    if (argc < 2) return "no command given; expected one of the commands that `ringside --help` lists";
    const std::string first = argv[1];
    std::vector<std::string> names, flags;
    for (const Command& command : line.commands()) {
        names.push_back(command.name());
        if (command.name() == first) flags = command.longFlags();
    }
    const bool isCommand = std::find(names.begin(), names.end(), first) != names.end();
    if (!isCommand) return first.starts_with("-") ? error.what() : unknownName("command", first, names);
    const std::string text = error.what();  // "The following argument was not expected: --modle"
    const std::size_t dashes = text.find("expected: --");
    if (dashes == std::string::npos) return text;
    std::string flag = text.substr(dashes + 10);
    flag = flag.substr(0, flag.find_first_of(" ="));
    return unknownName("flag", flag, flags, "`ringside " + first + " --help` lists them");
}

}  // namespace

void Command::option(const std::string& name, std::string& value, const std::string& help, const std::string& type, const std::string& group) {
    CLI::Option* option = app_->add_option(name, value, help)->type_name(type)->check(notEmpty());
    if (!group.empty()) option->group(group);
}

void Command::choice(const std::string& name, std::string& value, const std::string& help, std::vector<std::string> allowed, const std::string& group) {
    app_->add_option(name, value, help)->type_name("WORD")->check(CLI::IsMember(std::move(allowed)))->group(group);
}

void Command::required(const std::string& name, std::string& value, const std::string& help) {
    app_->add_option(name, value, help)->type_name("WORD")->required();
}

void Command::repeated(const std::string& name, std::vector<std::string>& values, const std::string& help, const std::string& type, const std::string& group) {
    app_->add_option(name, values, help)->type_name(type)->expected(1)->take_all()->allow_extra_args(false)->group(group);
}

void Command::list(const std::string& name, bool& given, std::vector<std::string>& values, const std::string& help, const std::string& type, const std::string& group) {
    const auto take = [&given, &values](const std::vector<std::string>& found) {
        given = true;
        for (const std::string& value : found)
            if (!value.empty()) values.push_back(value);  // none at all comes as one empty value
    };
    app_->add_option_function<std::vector<std::string>>(name, take, help)->type_name(type)->expected(0, CLI::detail::expected_max_vector_size)->group(group);
}

void Command::flag(const std::string& name, bool& value, const std::string& help, const std::string& group) {
    app_->add_flag(name, value, help)->group(group);
}

void Command::footer(const std::string& text) { app_->footer(text); }
std::string Command::name() const { return app_->get_name(); }
std::string Command::description() const { return app_->get_description(); }

std::vector<std::string> Command::longFlags() const {
    std::set<std::string> flags;
    for (const CLI::Option* option : app_->get_options())
        for (const std::string& name : option->get_lnames()) flags.insert("--" + name);
    return {flags.begin(), flags.end()};
}

CommandLine::CommandLine(const std::string& description, const std::string& program, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, program)) {
    app_->require_subcommand(1);
    app_->set_version_flag("--version", version);
    app_->fallthrough(false);
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const std::string& name, const std::string& description, Run run) {
    CLI::App* command = app_->add_subcommand(name, description);
    command->callback([this, run = std::move(run)] { chosen_ = run; });
    return Command(*command);
}

std::vector<Command> CommandLine::commands() const {
    std::vector<Command> all;
    for (CLI::App* command : app_->get_subcommands({})) all.emplace_back(*command);
    return all;
}

Result<int> CommandLine::run(int argc, char** argv) {
    try {
        app_->parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app_->exit(error);  // --help, --version
        return failure(ErrorCode::Usage, "", usageMessage(*this, error, argc, argv) + "\nRun 'ringside --help' or 'ringside COMMAND --help' for what is possible.");
    }
    return chosen_();
}

}  // namespace ringside
