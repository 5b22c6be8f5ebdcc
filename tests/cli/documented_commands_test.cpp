// Every ringside command that the documentation and the help show runs, and every link between pages leads somewhere.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace ringside {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = RINGSIDE_SOURCE_DIR;

std::string contentOf(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> pages() {
    std::vector<fs::path> out;
    for (const char* name : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) out.push_back(kRoot / name);
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
        if (entry.path().extension() == ".md") out.push_back(entry.path());
    return out;
}

/// The lines of ```sh blocks that call ringside; a backslash at the end joins the next line.
std::vector<std::string> commandsIn(const std::string& page) {
    std::vector<std::string> commands;
    std::istringstream text(page);
    std::string line, joined;
    bool inside = false;
    while (std::getline(text, line)) {
        if (line.starts_with("```")) {
            inside = line == "```sh";
            continue;
        }
        if (!inside) continue;
        const bool goesOn = line.ends_with("\\");
        joined += goesOn ? line.substr(0, line.size() - 1) : line;
        if (goesOn) continue;
        if (joined.find("ringside ") != std::string::npos && !joined.starts_with("make") && !joined.starts_with("git")) commands.push_back(joined);
        joined.clear();
    }
    return commands;
}

TEST(DocumentedCommands, AllRunWithExitCodeZeroOrTheAnswerNo) {
    const WorkDir dir;
    fs::create_directory(dir.path() / "docs");
    fs::copy(kRoot / "docs" / "examples", dir.path() / "docs" / "examples");
    std::size_t count = 0;
    for (const fs::path& page : pages())
        for (const std::string& command : commandsIn(contentOf(page))) {
            ++count;
            const ProgramRun run = dir.shell(command);
            EXPECT_LE(run.exitCode, 1) << page << ": " << command << "\n" << run.err;
            EXPECT_EQ(run.err, "") << page << ": " << command;
        }
    EXPECT_GE(count, 20U);
}

/// Told by content, so that its name may say gz.
const char* const kTinyTrace = R"([{"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 0, "dur": 5}])";

TEST(HelpExamples, AllRun) {
    const WorkDir dir;
    dir.write("scenario.json", R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8})");
    for (const char* name : {"rank0.json.gz", "rank1.json.gz", "before.json", "after.json"}) dir.write(name, kTinyTrace);
    for (const char* command : {"", "predict", "memory", "scale", "sweep", "compare", "plan", "collective", "trace", "catalog", "completion"}) {
        const ProgramRun help = dir.ringside(std::string(command) + " --help");
        std::istringstream text(help.out);
        std::string line;
        int examples = 0;
        while (std::getline(text, line)) {
            if (!line.starts_with("  ringside ") && !line.starts_with("  source <(ringside ")) continue;
            ++examples;
            const ProgramRun run = dir.shell(line);
            EXPECT_LE(run.exitCode, 1) << line << "\n" << run.err;
            EXPECT_EQ(run.err, "") << line;
        }
        EXPECT_GE(examples, 1) << command;
    }
}

TEST(Links, BetweenPagesLeadToFilesThatExist) {
    for (const fs::path& page : pages()) {
        const std::string text = contentOf(page);
        EXPECT_NE(text, "") << page;
        for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
            std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
            target = target.substr(0, target.find('#'));
            if (target.empty() || target.starts_with("http")) continue;
            EXPECT_TRUE(fs::exists(page.parent_path() / target)) << page << " links to " << target;
        }
    }
}

TEST(Readme, ShowsTheAnswerThatTheProgramGives) {
    const WorkDir dir;
    const std::string readme = contentOf(kRoot / "README.md");
    const std::string answer = dir.ringside("predict --model gpt2-xl --device a100-80gb-sxm --devices 16 --micro-batch 4").out;
    EXPECT_NE(readme.find(answer), std::string::npos) << "README.md shows another answer than:\n" << answer;
}

}  // namespace
}  // namespace ringside
