#include "calibrate/execute/launched_ranks.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "calibrate/ranks/prefixed_store.h"
#include "calibrate/ranks/tcp_store.h"

namespace ringside {
namespace {

// A message of the store is limited, and parameters of a model may be larger.
constexpr std::size_t kPart = 4 << 20;
// Ranks that fail for the same cause fail at about the same time: those who have said nothing by then are gone, or hang.
constexpr std::chrono::milliseconds kSettle(1000);

std::string keyOf(int rank, std::size_t part) { return fmt::format("result/{}/{}", rank, part); }

Result<void> tell(KeyValueStore& store, int rank, const std::string& text) {
    const std::size_t parts = (text.size() + kPart - 1) / kPart;
    for (std::size_t i = 0; i < parts; ++i) TRY_VOID(store.set(keyOf(rank, i + 1), text.substr(i * kPart, kPart)));
    return store.set(keyOf(rank, 0), std::to_string(parts));
}

Result<std::string> hear(KeyValueStore& store, int rank, std::chrono::milliseconds timeout) {
    TRY(const std::string parts, store.get(keyOf(rank, 0), timeout));
    std::string text;
    for (std::size_t i = 0; i < std::stoul(parts); ++i) {
        TRY(const std::string part, store.get(keyOf(rank, i + 1), timeout));
        text += part;
    }
    return text;
}

}  // namespace

Result<std::shared_ptr<LaunchedRanks>> LaunchedRanks::join(const RankEnv& env, std::chrono::milliseconds timeout) {
    std::shared_ptr<LaunchedRanks> ranks(new LaunchedRanks(env, timeout));
    TRY(ranks->store_, makeTcpStore(env, timeout));
    return ranks;
}

std::shared_ptr<KeyValueStore> LaunchedRanks::storeOfNextRun() { return std::make_shared<PrefixedStore>(store_, fmt::format("run/{}/", runs_++)); }

Result<std::string> LaunchedRanks::agree(const std::string& word) {
    const std::string key = fmt::format("word/{}", words_++);
    if (!isFirst()) return store_->get(key, timeout_);
    TRY_VOID(store_->set(key, word));
    return word;
}

Result<int> LaunchedRanks::ranksHere() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");  // the same in all containers of a machine
    std::string machine;
    std::getline(file, machine);
    const auto machineKey = [](int rank) { return fmt::format("machine/{}", rank); };
    TRY_VOID(store_->set(machineKey(env_.rank), machine));
    int count = 0;
    for (int rank = 0; rank < env_.size; ++rank) {
        Result<std::string> other = store_->get(machineKey(rank), timeout_);
        if (!other) return failure(ErrorCode::RuntimeFailure, "rendezvous", fmt::format("rank {} has not come ({}); check that it was started, or allow more time with --timeout", rank, other.error().message));
        count += *other == machine ? 1 : 0;
    }
    return count;
}

Result<std::optional<std::vector<std::string>>> LaunchedRanks::gather(KeyValueStore& store, const Result<std::string>& mine) {
    if (!isFirst()) {
        // Rank 0 may be the one that is gone: then our own error says more than that it cannot be told.
        const Result<void> told = tell(store, env_.rank, mine ? "+" + *mine : "-" + mine.error().toString());
        if (!mine) return tl::unexpected<Error>(mine.error());
        TRY_VOID(told);
        return std::optional<std::vector<std::string>>();
    }
    std::vector<std::string> results(static_cast<std::size_t>(env_.size));
    std::string said, silent;
    const auto settled = std::chrono::steady_clock::now() + kSettle;
    for (int rank = 1; rank < env_.size; ++rank) {
        std::chrono::milliseconds wait = timeout_;
        if (!mine || !said.empty()) wait = std::max(std::chrono::milliseconds(1), std::chrono::duration_cast<std::chrono::milliseconds>(settled - std::chrono::steady_clock::now()));
        const Result<std::string> text = hear(store, rank, wait);
        if (!text) silent += fmt::format("{}{}", silent.empty() ? "" : ", ", rank);
        else if (text->starts_with("-")) said += fmt::format("{}rank {}: {}", said.empty() ? "" : "; ", rank, text->substr(1));
        else results[static_cast<std::size_t>(rank)] = text->substr(1);
    }
    if (mine && said.empty() && silent.empty()) {
        results.front() = *mine;
        return std::optional(std::move(results));
    }
    Error error = mine ? Error{ErrorCode::RuntimeFailure, {}, "run"} : mine.error();
    const auto add = [&](const std::string& words) { error.message += (error.message.empty() ? "" : "; ") + words; };
    if (!said.empty()) add(said);
    if (!silent.empty()) add(fmt::format("no word came from rank {}: it died or hangs; see its own messages", silent));
    return tl::unexpected<Error>(std::move(error));
}

}  // namespace ringside
