#include "calibrate/ranks/folder_store.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace ringside {
namespace {

namespace fs = std::filesystem;

/// Letters, digits, '-' and '_' stand for themselves, everything else becomes %xx: a file name for any key.
std::string fileNameOf(const std::string& key) {
    std::string name = "key-";
    for (const char c : key) {
        if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') name += c;
        else name += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
    return name;
}

class FolderStore : public KeyValueStore {
public:
    explicit FolderStore(fs::path folder) : folder_(std::move(folder)) {}

    Result<void> set(const std::string& key, const std::string& value) override {
        // Written beside and renamed, so that a reader sees all of it or nothing.
        const fs::path beside = folder_ / fmt::format(".{}.{}", fileNameOf(key), ::getpid());
        {
            std::ofstream out(beside, std::ios::binary);
            out << value;
            out.flush();
            if (!out) return failed("cannot write");
        }
        std::error_code error;
        fs::rename(beside, folder_ / fileNameOf(key), error);
        if (error) return failed(error.message());
        return {};
    }

    Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
        const auto deadline = std::chrono::steady_clock::now() + timeout;
        // Folders on a network file system tell nobody of changes: look again and again, ever more rarely.
        std::chrono::milliseconds pause(1);
        for (;;) {
            TRY(const bool there, has(key));
            if (there) break;
            if (std::chrono::steady_clock::now() >= deadline) {
                return failure(ErrorCode::RuntimeFailure, folder_.string(), fmt::format("nobody set '{}' within {} ms", key, timeout.count()));
            }
            std::this_thread::sleep_for(pause);
            pause = std::min(pause * 2, std::chrono::milliseconds(20));
        }
        return read(key);
    }

    Result<bool> has(const std::string& key) override {
        std::error_code error;
        const bool there = fs::exists(folder_ / fileNameOf(key), error);
        if (error) return failed(error.message());
        return there;
    }

    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        const int lock = ::open((folder_ / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (lock < 0 || ::flock(lock, LOCK_EX) != 0) {
            const std::string reason = std::strerror(errno);
            if (lock >= 0) ::close(lock);
            return failed(reason);
        }
        Result<std::int64_t> sum = addLocked(key, delta);
        ::close(lock);
        return sum;
    }

private:
    tl::unexpected<Error> failed(const std::string& reason) const {
        return failure(ErrorCode::RuntimeFailure, folder_.string(),
                       fmt::format("the folder in which ranks meet does not work: {}; it must be writable and seen by all ranks", reason));
    }
    Result<std::string> read(const std::string& key) const {
        std::ifstream in(folder_ / fileNameOf(key), std::ios::binary);
        std::stringstream out;
        out << in.rdbuf();
        if (!in) return failed(fmt::format("cannot read '{}'", key));
        return out.str();
    }
    Result<std::int64_t> addLocked(const std::string& key, std::int64_t delta) {
        std::int64_t sum = 0;
        TRY(const bool there, has(key));
        if (there) {
            TRY(const std::string text, read(key));
            std::from_chars(text.data(), text.data() + text.size(), sum);
        }
        sum += delta;
        TRY_VOID(set(key, std::to_string(sum)));
        return sum;
    }

    fs::path folder_;
};

}  // namespace

Result<std::unique_ptr<KeyValueStore>> makeFolderStore(const std::string& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || ::access(folder.c_str(), W_OK | X_OK) != 0) {
        return failure(ErrorCode::RuntimeFailure, folder,
                       fmt::format("cannot be used as the folder in which ranks meet: {}", error ? error.message() : std::strerror(errno)));
    }
    return std::make_unique<FolderStore>(folder);
}

}  // namespace ringside
