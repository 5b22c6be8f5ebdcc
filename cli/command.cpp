#include "cli/command.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "traces/export/atomic_file.h"

namespace ringside {

bool OutputFlags::wantsColor() const {
    if (color != "auto") return color == "always";
    const char* noColor = std::getenv("NO_COLOR");
    return (file.empty() || file == "-") && isatty(STDOUT_FILENO) != 0 && (noColor == nullptr || *noColor == '\0');
}

CLI::Validator notEmpty() {
    return CLI::Validator([](std::string& value) { return value.empty() ? std::string("expected a value, found nothing") : std::string(); }, "");
}

void addOutputFlags(CLI::App& command, OutputFlags& flags, bool csv) {
    command.add_flag("--json", flags.json, "print one JSON document")->group("Output");
    command.add_option("--format", flags.format, csv ? "text, json or csv" : "text or json")
        ->type_name("WORD")
        ->check(csv ? CLI::IsMember({"text", "json", "csv"}) : CLI::IsMember({"text", "json"}))
        ->group("Output");
    command.add_option("-o,--output", flags.file, "write the answer to this file instead of standard output")
        ->type_name("FILE")
        ->check(notEmpty())
        ->group("Output");
    command.add_option("--color", flags.color, "auto, always or never")
        ->type_name("WORD")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->group("Output");
}

Result<void> writeOutput(const OutputFlags& flags, const std::string& text) {
    if (!flags.file.empty() && flags.file != "-") return atomicWriteFile(flags.file, text);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        return failure(ErrorCode::RuntimeFailure, "standard output", errno == EPIPE ? "" : "cannot write; is the disk full?");
    return {};
}

}  // namespace ringside
