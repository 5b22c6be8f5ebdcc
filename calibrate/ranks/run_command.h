// runCommand: runs a program to its end and captures what it says.
#pragma once

#include <string>
#include <vector>

#include "model/base/result.h"

namespace ringside {

/// The path of a program on PATH or in the folders where system tools live; fails (missing capability) when there is none.
Result<std::string> findProgram(const std::string& name);

/// `input` becomes its standard input (at most 64 KiB). Fails (runtime failure) when it exits with other than 0, with what it said.
Result<std::string> runCommand(const std::vector<std::string>& command, const std::string& input = {});

}  // namespace ringside
