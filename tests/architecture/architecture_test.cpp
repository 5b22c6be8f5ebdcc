// The house rules that a machine can check: the include staircase, header hygiene, folder pages, documents that link both ways.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ringside {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = RINGSIDE_SOURCE_DIR;

std::string contentsOf(const fs::path& path) {
    std::ifstream in(path);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
}

struct SourceFile {
    std::string path, folder, text;
};

/// .h, .cpp, .cu and .cuh below the given folders of the project.
std::vector<SourceFile> sources(const std::vector<std::string>& folders) {
    std::vector<SourceFile> files;
    for (const std::string& folder : folders) {
        if (!fs::exists(kRoot / folder)) continue;
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / folder)) {
            const std::string extension = entry.path().extension().string();
            if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
            const fs::path relative = fs::relative(entry.path(), kRoot);
            files.push_back({relative.generic_string(), relative.parent_path().generic_string(), contentsOf(entry.path())});
        }
    }
    return files;
}

const std::vector<std::string> kProduct = {"model", "traces", "sim", "kernels", "calibrate", "cli", "gui"};

/// Folders whose headers a file includes ("model/base"), and the angle-bracket headers.
struct Includes {
    std::set<std::string> own, outside;
};
Includes includesOf(const std::string& text) {
    static const std::regex line(R"re((^|\n)[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"])re");
    Includes includes;
    for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it) {
        if ((*it)[2] == "<") includes.outside.insert((*it)[3]);
        else includes.own.insert(fs::path((*it)[3].str()).parent_path().generic_string());
    }
    return includes;
}

bool below(const std::string& folder, const std::string& top) { return folder == top || folder.substr(0, top.size() + 1) == top + "/"; }

// What each folder may include besides itself. A folder that is not listed takes the line of the nearest one above it.
const std::map<std::string, std::vector<std::string>> kStaircase = {
    {"model/base", {}},
    {"model/training", {"model/base"}},
    {"model/workload", {"model/base", "model/training"}},
    {"model/hardware", {"model/base"}},
    {"model/cost", {"model/base", "model/training", "model/workload", "model/hardware"}},
    {"model/memory", {"model/base", "model/training", "model/workload"}},
    {"model/catalog", {"model"}},
    {"traces", {"model/base"}},
    {"sim/engine", {"model/base"}},
    {"sim/resource", {"model/base", "model/hardware", "sim/engine"}},
    {"sim/collective", {"model/base", "model/hardware", "model/cost", "sim/engine", "sim/resource"}},
    {"sim/schedule", {"model/base", "model/workload", "model/hardware", "model/cost"}},
    {"sim/strategy", {"model", "sim/schedule"}},
    {"sim/player", {"model", "traces", "sim/schedule", "sim/collective", "sim/resource", "sim/engine"}},
    {"sim", {"model", "traces"}},
    {"kernels", {"model"}},
    {"calibrate/ranks", {"model/base"}},
    {"calibrate/comm", {"model/base", "kernels", "calibrate/ranks"}},
    {"calibrate/fit", {"model", "traces"}},
    {"calibrate/published", {"model", "traces", "sim"}},
    {"calibrate", {"model", "traces", "sim", "kernels"}},
    {"cli", {"model", "traces", "sim", "kernels", "calibrate"}},
    {"gui/timeline", {"model/base", "traces"}},
    {"gui/core", {"model", "traces", "sim", "gui/timeline"}},
    {"gui/canvas", {"model", "traces", "sim", "gui/timeline", "gui/core"}},
    {"gui/panels", {"model", "traces", "sim", "gui/timeline", "gui/core", "gui/canvas"}},
    {"gui", {"model", "traces", "sim", "calibrate/fit"}},
};

TEST(Staircase, EveryFolderIncludesOnlyWhatIsBelowIt) {
    int checked = 0;
    for (const SourceFile& file : sources(kProduct)) {
        std::string rule = file.folder;
        while (!kStaircase.contains(rule) && rule.find('/') != std::string::npos) rule = fs::path(rule).parent_path().generic_string();
        ASSERT_TRUE(kStaircase.contains(rule)) << file.path << ": its folder has no line in the staircase";
        for (const std::string& folder : includesOf(file.text).own) {
            ++checked;
            bool allowed = below(folder, rule);
            for (const std::string& lower : kStaircase.at(rule)) allowed = allowed || below(folder, lower);
            EXPECT_TRUE(allowed) << file.path << " includes from " << folder << ", which is not below " << rule;
        }
    }
    EXPECT_GT(checked, 100) << "the test looks at the wrong place";
}

TEST(Staircase, NobodyIncludesTestsAndIncludesAreFromTheRoot) {
    for (const SourceFile& file : sources(kProduct))
        for (const std::string& folder : includesOf(file.text).own) {
            EXPECT_FALSE(below(folder, "tests")) << file.path;
            EXPECT_TRUE(fs::exists(kRoot / folder)) << file.path << " includes from '" << folder << "'; name headers from the project's root";
        }
}

TEST(Staircase, LibrariesThatNeedAGpuOrADisplayStayInTheirRooms) {
    const std::regex gpu(R"(^(cuda|cublas|cudnn|nccl|nvtx|nvml).*)"), display(R"(^(Q[A-Z]|QtCore|QtGui|QtWidgets|QtCharts).*)"), mpi(R"(^mpi\.h$)");
    for (const SourceFile& file : sources(kProduct))
        for (const std::string& header : includesOf(file.text).outside) {
            if (!below(file.folder, "kernels/cuda") && !below(file.folder, "calibrate")) {
                EXPECT_FALSE(std::regex_match(header, gpu)) << file.path << " includes " << header;
            }
            if (!below(file.folder, "gui") || below(file.folder, "gui/timeline")) {
                EXPECT_FALSE(std::regex_match(header, display)) << file.path << " includes " << header;
            }
            if (below(file.folder, "model") || below(file.folder, "traces")) {
                EXPECT_FALSE(std::regex_match(header, mpi)) << file.path << " includes " << header;
            }
        }
}

TEST(Headers, AreIncludedOnceAndSayWhatTheyAreAbout) {
    for (const SourceFile& file : sources(kProduct)) {
        if (!file.path.ends_with(".h")) continue;
        EXPECT_NE(file.text.find("#pragma once"), std::string::npos) << file.path;
        EXPECT_EQ(file.text.substr(0, 3), "// ") << file.path << ": the first line says what it is about";
        EXPECT_EQ(file.text.find("using namespace"), std::string::npos) << file.path;
    }
}

TEST(Sources, NameNoPlaceOfTheMachineTheyWereWrittenOn) {
    // Split, so that this file does not name them either.
    const std::vector<std::string> places = {std::string("/wo") + "rk/", std::string("/ho") + "me/", std::string("/tm") + "p/", std::string("/ro") + "ot/"};
    std::vector<std::string> folders = kProduct;
    folders.insert(folders.end(), {"tests"});
    std::vector<SourceFile> files = sources(folders);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / "docs"))
        if (entry.is_regular_file()) files.push_back({fs::relative(entry.path(), kRoot).generic_string(), "docs", contentsOf(entry.path())});
    for (const SourceFile& file : files)
        for (const std::string& place : places) EXPECT_EQ(file.text.find(place), std::string::npos) << file.path << " names " << place;
}

TEST(Sources, FitInTheHead) {
    for (const SourceFile& file : sources(kProduct)) {
        const auto lines = std::count(file.text.begin(), file.text.end(), '\n');
        EXPECT_LE(lines, 600) << file.path << ": one idea per file, rarely over 400 lines";
    }
}

TEST(Folders, HaveAPageOfAtMostFifteenLines) {
    std::set<std::string> folders;
    for (const SourceFile& file : sources({"model", "traces", "sim", "kernels", "calibrate", "gui"})) folders.insert(file.folder);
    for (const std::string& folder : folders) {
        const fs::path page = kRoot / folder / "README.md";
        if (folder == "sim" || folder == "model/base") continue;  // the folders below it have their own; base is its file names
        ASSERT_TRUE(fs::exists(page)) << folder << " has no README.md: the question it answers, its files in reading order, what it must not depend on";
        const std::string text = contentsOf(page);
        EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 15) << folder << "/README.md";
    }
}

/// Paths of ours that a page names in full.
std::vector<std::string> filesNamedBy(const std::string& text) {
    static const std::regex full(R"((^|[^a-z0-9_/])((model|traces|sim|kernels|calibrate|cli|gui|tests)/[a-z0-9_/]+\.(h|cpp|cu|json)))");
    std::vector<std::string> files;
    for (std::sregex_iterator it(text.begin(), text.end(), full), end; it != end; ++it) files.push_back((*it)[2]);
    return files;
}

std::vector<fs::path> modelPages() {
    std::vector<fs::path> pages;
    for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "docs/models"))
        if (entry.path().extension() == ".md" && entry.path().filename() != "README.md") pages.push_back(entry.path());
    return pages;
}

TEST(ModelPages, NameOnlyFilesThatExist) {
    EXPECT_GT(modelPages().size(), 10U) << "the test looks at the wrong place";
    for (const fs::path& page : modelPages())
        for (const std::string& file : filesNamedBy(contentsOf(page))) EXPECT_TRUE(fs::exists(kRoot / file)) << page.filename() << " names " << file;
}

TEST(ModelPages, ThatSourcesNameExist) {
    const std::regex page(R"(docs/[a-z]+/[a-z0-9_-]+\.(md|json))");
    for (const SourceFile& file : sources(kProduct))
        for (std::sregex_iterator it(file.text.begin(), file.text.end(), page), end; it != end; ++it)
            EXPECT_TRUE(fs::exists(kRoot / it->str())) << file.path << " names " << it->str() << ", which does not exist";
}

TEST(ModelPages, AreLinkedWithTheCodeOneWayOrTheOther) {
    std::string all;
    for (const SourceFile& file : sources(kProduct)) all += file.text;
    for (const std::string& folder : kProduct)
        if (fs::exists(kRoot / folder))
            for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / folder))
                if (entry.path().filename() == "README.md") all += contentsOf(entry.path());
    for (const fs::path& page : modelPages()) {
        const bool named = all.find("docs/models/" + page.filename().string()) != std::string::npos;
        EXPECT_TRUE(named || !filesNamedBy(contentsOf(page)).empty()) << "no source names " << page.filename() << ", and it names no source";
    }
}

}  // namespace
}  // namespace ringside
