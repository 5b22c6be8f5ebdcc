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

void addOutputFlags(Command& command, OutputFlags& flags, bool csv) {
    command.flag("--json", flags.json, "print one JSON document", "Output");
    if (csv)
        command.choice("--format", flags.format, "text, json or csv", {"text", "json", "csv"}, "Output");
    else
        command.choice("--format", flags.format, "text or json", {"text", "json"}, "Output");
    command.option("-o,--output", flags.file, "write the answer to this file instead of standard output", "FILE", "Output");
    command.choice("--color", flags.color, "auto, always or never", {"auto", "always", "never"}, "Output");
}

Result<void> writeOutput(const OutputFlags& flags, const std::string& text) {
    if (!flags.file.empty() && flags.file != "-") return atomicWriteFile(flags.file, text);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        return failure(ErrorCode::RuntimeFailure, "standard output", errno == EPIPE ? "" : "cannot write; is the disk full?");
    return {};
}

}  // namespace ringside
