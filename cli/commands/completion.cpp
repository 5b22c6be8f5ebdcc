// ringside completion: shell completion, made from the same registry that parses the command line.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "model/base/names.h"

namespace ringside {
namespace {

std::string bashScript(const CommandLine& line) {
    std::vector<std::string> commands;
    std::string cases;
    for (const Command& command : line.commands()) {
        commands.push_back(command.name());
        cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name(), fmt::join(command.longFlags(), " "));
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

std::string fishScript(const CommandLine& line) {
    std::string text = "complete -c ringside -f\n";
    for (const Command& command : line.commands()) {
        text += fmt::format("complete -c ringside -n __fish_use_subcommand -a {} -d '{}'\n", command.name(), command.description());
        for (const std::string& flag : command.longFlags())
            text += fmt::format("complete -c ringside -n '__fish_seen_subcommand_from {}' -l {} -r\n", command.name(), flag.substr(2));
    }
    return text;
}

}  // namespace

void addCompletion(CommandLine& line) {
    auto shell = std::make_shared<std::string>();
    Command command = line.add("completion", "print the completion script of a shell (bash, zsh or fish)", [shell, &line]() -> Result<int> {
        const OutputFlags output;
        if (*shell == "fish") {
            TRY_VOID(writeOutput(output, fishScript(line)));
        } else if (*shell == "bash" || *shell == "zsh") {
            TRY_VOID(writeOutput(output, (*shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "") + bashScript(line)));
        } else {
            return badInput("completion", unknownName("shell", *shell, {"bash", "zsh", "fish"}));
        }
        return 0;
    });
    command.footer("Example:\n  source <(ringside completion bash)");
    command.required("shell", *shell, "bash, zsh or fish");
}

}  // namespace ringside
