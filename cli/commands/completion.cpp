// ringside completion: shell completion, made from the same registry that parses the command line.
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "model/base/names.h"

namespace ringside {
namespace {

std::vector<std::string> flagsOf(const CLI::App& command) {
    std::set<std::string> flags;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) flags.insert("--" + name);
    return {flags.begin(), flags.end()};
}

std::string bashScript(const CLI::App& app) {
    std::vector<std::string> commands;
    std::string cases;
    for (const CLI::App* command : app.get_subcommands({})) {
        commands.push_back(command->get_name());
        cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), fmt::join(flagsOf(*command), " "));
    }
    return fmt::format(
        "_ringside() {{\n"
        "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"\"\n"
        "  if [ \"$COMP_CWORD\" -eq 1 ]; then words=\"{}\"; else\n"
        "    case \"${{COMP_WORDS[1]}}\" in\n{}    esac\n"
        "  fi\n"
        "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
        "  [ \"${{#COMPREPLY[@]}}\" -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
        "}}\n"
        "complete -F _ringside ringside\n",
        fmt::join(commands, " "), cases);
}

std::string fishScript(const CLI::App& app) {
    std::string text = "complete -c ringside -f\n";
    for (const CLI::App* command : app.get_subcommands({})) {
        text += fmt::format("complete -c ringside -n __fish_use_subcommand -a {} -d '{}'\n", command->get_name(), command->get_description());
        for (const std::string& flag : flagsOf(*command))
            text += fmt::format("complete -c ringside -n '__fish_seen_subcommand_from {}' -l {} -r\n", command->get_name(), flag.substr(2));
    }
    return text;
}

}  // namespace

void addCompletion(CLI::App& app, Run& run) {
    auto shell = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand("completion", "print the completion script of a shell (bash, zsh or fish)");
    command->footer("Example:\n  source <(ringside completion bash)");
    command->add_option("shell", *shell, "bash, zsh or fish")->required();
    command->callback([shell, &app, &run] {
        run = [shell, &app]() -> Result<int> {
            OutputFlags output;
            if (*shell == "fish") {
                TRY_VOID(writeOutput(output, fishScript(app)));
            } else if (*shell == "bash" || *shell == "zsh") {
                TRY_VOID(writeOutput(output, (*shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "") + bashScript(app)));
            } else {
                return badInput("completion", unknownName("shell", *shell, {"bash", "zsh", "fish"}));
            }
            return 0;
        };
    });
}

}  // namespace ringside
