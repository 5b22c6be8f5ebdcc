#include "calibrate/validate/torch_process.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "calibrate/ranks/launch.h"
#include "calibrate/ranks/run_command.h"
#include "calibrate/validate/torch_script.h"
#include "traces/export/atomic_file.h"

namespace ringside {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kLongestRun(10);  // Python says nothing while it works
constexpr const char* kShapedInterface = "eth0";

/// A folder of our own that goes when we do.
class TempFolder {
public:
    static Result<TempFolder> create() {
        std::string pattern = (fs::temp_directory_path() / "ringside-torch-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) return failure(ErrorCode::RuntimeFailure, pattern, "cannot make a folder for PyTorch's script");
        return TempFolder(pattern);
    }
    TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TempFolder& operator=(TempFolder&& other) noexcept {
        std::swap(path_, other.path_);
        return *this;
    }
    ~TempFolder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    std::string file(const std::string& name) const { return (path_ / name).string(); }

private:
    explicit TempFolder(fs::path path) : path_(std::move(path)) {}
    fs::path path_;
};

}  // namespace

Result<std::string> torchVersion() {
    const Result<std::string> python = findProgram("python3");
    const Result<std::string> version = python ? runCommand({*python, "-c", "import torch, torch.distributed.fsdp; print(torch.__version__)"}) : python;
    if (!version)
        return failure(ErrorCode::MissingCapability, "--against torch", "python3 cannot import torch; install PyTorch 2.6 or later (pip install torch), or leave --against out");
    return *version;
}

Result<TorchAnswers> runTorchRanks(int ranks, std::optional<double> linkBitsPerSecond, const Json& job) {
    TRY(const std::string python, findProgram("python3"));
    TRY(const TempFolder folder, TempFolder::create());
    TRY_VOID(atomicWriteFile(folder.file("train.py"), std::string(torchScript())));
    LaunchOptions launch;
    launch.timeout = kLongestRun;
    std::unique_ptr<ShapedLink> link;
    if (linkBitsPerSecond && ranks > 1) {
        TRY(link, ShapedLink::create({ranks, *linkBitsPerSecond}));
        launch.link = link.get();
    }
    const bool pinned = ranks <= static_cast<int>(std::thread::hardware_concurrency());
    TRY(const std::vector<std::string> written, launchLocalRanks(ranks, launch, [&](LocalRank& rank) -> Result<std::string> {
            const int r = rank.env().rank;
            Json own = job;
            own.update({{"rank", r}, {"world", ranks}, {"store", folder.file("store")}, {"interface", link ? kShapedInterface : "lo"}, {"core", pinned ? r : -1}, {"trace", folder.file("trace.json")}});
            const std::string in = folder.file(fmt::format("job{}.json", r)), out = folder.file(fmt::format("answer{}.json", r));
            TRY_VOID(atomicWriteFile(in, own.dump()));
            rank.progress("PyTorch");
            TRY_VOID(runCommand({python, folder.file("train.py"), in, out}));
            TRY(const Json answer, readJsonFile(out));
            return answer.dump();
        }));
    TorchAnswers answers;
    for (const std::string& text : written) {
        TRY(answers.ranks.emplace_back(), parseJson(text, "PyTorch's answer"));
    }
    if (fs::exists(folder.file("trace.json"))) {
        TRY(answers.profile, readTorchProfile(folder.file("trace.json")));
    }
    return answers;
}

}  // namespace ringside
