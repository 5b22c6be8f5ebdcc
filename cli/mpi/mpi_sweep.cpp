// Rank 0 hands out blocks of rows, makes some itself, and takes all back in order. Two blocks are always with a rank, so that
// it never waits for the next one. Only the main thread of a rank speaks MPI.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <mpi.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>

#include "cli/mpi/rank_session.h"
#include "sim/study/threads.h"

namespace ringside {
namespace {

constexpr int kAssign = 1, kResult = 2;  // tags
constexpr std::size_t kMostBlockRows = 128;
constexpr std::size_t kBlocksAhead = 16;  // per rank: how far rows may be made ahead of the one that is written next
constexpr int kInHand = 2;                // blocks that a rank has at a time

struct Assignment {
    std::uint64_t first = 0, count = 0;  // count 0: no more
};

void rest() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }  // MPI's own waiting spins, and there is work to do

/// A block's rows made by the threads of this rank.
SweepBlock makeBlock(const SweepPlan& plan, const Assignment& wanted, const SweepOptions& options) {
    std::vector<SweepBlock> rows(wanted.count);
    onThreads(options.threads, [&] {
        tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) { rows[i] = plan.block(wanted.first + i, 1, options.format); });
    });
    SweepBlock block;
    block.first = wanted.first;
    for (const SweepBlock& row : rows) {
        block.count += row.count;
        block.text += row.text;
        for (std::size_t o = 0; o < kRowOutcomes; ++o) block.outcomes[o] += row.outcomes[o];
        if (block.firstError.empty()) block.firstError = row.firstError;
    }
    return block;
}

/// first, count, outcomes, length of the text; the text; the error.
std::string packed(const SweepBlock& block) {
    std::vector<std::uint64_t> numbers = {block.first, block.count};
    numbers.insert(numbers.end(), block.outcomes.begin(), block.outcomes.end());
    numbers.push_back(block.text.size());
    return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::uint64_t)) + block.text + block.firstError;
}

SweepBlock unpacked(const std::string& message) {
    std::array<std::uint64_t, 3 + kRowOutcomes> numbers{};
    std::memcpy(numbers.data(), message.data(), sizeof numbers);
    SweepBlock block;
    block.first = numbers[0];
    block.count = numbers[1];
    std::copy(numbers.begin() + 2, numbers.begin() + 2 + kRowOutcomes, block.outcomes.begin());
    block.text = message.substr(sizeof numbers, numbers.back());
    block.firstError = message.substr(sizeof numbers + numbers.back());
    return block;
}

/// Rank 0's own share: a thread that makes what is put in.
class OwnWork {
public:
    OwnWork(const SweepPlan& plan, const SweepOptions& options) : thread_([this, &plan, &options] { run(plan, options); }) {}
    ~OwnWork() {
        put({0, 0});
        thread_.join();
    }
    void put(const Assignment& assignment) {
        const std::lock_guard lock(mutex_);
        wanted_.push_back(assignment);
        changed_.notify_one();
    }
    std::optional<SweepBlock> take() {
        const std::lock_guard lock(mutex_);
        if (made_.empty()) return std::nullopt;
        SweepBlock block = std::move(made_.front());
        made_.pop_front();
        return block;
    }

private:
    void run(const SweepPlan& plan, const SweepOptions& options) {
        while (true) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return !wanted_.empty(); });
            const Assignment next = wanted_.front();
            wanted_.pop_front();
            lock.unlock();
            if (next.count == 0) return;
            SweepBlock block = makeBlock(plan, next, options);
            lock.lock();
            made_.push_back(std::move(block));
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Assignment> wanted_;
    std::deque<SweepBlock> made_;
    std::thread thread_;  // last: starts when the rest is there
};

class MpiSession : public RankSession {
public:
    MpiSession() {
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
    }
    ~MpiSession() override {
        constexpr int kInternal = 70;
        if (std::uncaught_exceptions() > 0) MPI_Abort(MPI_COMM_WORLD, kInternal);
        MPI_Finalize();
    }

    int rank() const override { return rank_; }

    std::string broadcast(const std::string& text) override {
        std::uint64_t length = text.size();
        MPI_Bcast(&length, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        std::string all = rank_ == 0 ? text : std::string(length, '\0');
        constexpr std::uint64_t kPiece = 1 << 28;  // MPI counts in int
        for (std::uint64_t at = 0; at < length; at += kPiece)
            MPI_Bcast(all.data() + at, static_cast<int>(std::min(kPiece, length - at)), MPI_BYTE, 0, MPI_COMM_WORLD);
        return all;
    }

    int defaultThreads() const override {
        const int allowed = tbb::info::default_concurrency();  // what this rank is bound to
        const char* text = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
        const int neighbours = text == nullptr ? 1 : std::max(1, std::atoi(text));
        return allowed < static_cast<int>(std::thread::hardware_concurrency()) ? allowed : std::max(1, allowed / neighbours);
    }

    Result<std::size_t> lead(const SweepPlan& plan, std::size_t first, const SweepOptions& options,
                             const std::function<Result<void>(const SweepBlock&)>& take) override {
        const auto ranks = static_cast<std::size_t>(size_);
        const std::size_t blockRows = std::clamp<std::size_t>((plan.rows() - first) / (ranks * 8), 1, kMostBlockRows);
        std::size_t given = first, taken = first;
        std::vector<int> inHand(ranks, 0);
        std::map<std::size_t, SweepBlock> waiting;  // made, but not their turn yet
        Result<void> fault;
        bool ending = false;
        {
            OwnWork own(plan, options);
            while (true) {
                bool idle = true;
                ending = ending || !fault || options.stop();
                for (std::size_t r = 0; r < ranks; ++r)
                    while (!ending && inHand[r] < kInHand && given < plan.rows() && given < taken + kBlocksAhead * ranks * blockRows) {
                        const Assignment next{given, std::min(blockRows, plan.rows() - given)};
                        if (r == 0)
                            own.put(next);
                        else
                            MPI_Send(&next, sizeof next, MPI_BYTE, static_cast<int>(r), kAssign, MPI_COMM_WORLD);
                        given += next.count;
                        ++inHand[r];
                        idle = false;
                    }
                if (auto block = own.take()) {
                    --inHand[0];
                    waiting.emplace(block->first, std::move(*block));
                    idle = false;
                }
                int there = 0;
                MPI_Status status;
                MPI_Iprobe(MPI_ANY_SOURCE, kResult, MPI_COMM_WORLD, &there, &status);
                if (there != 0) {
                    SweepBlock block = unpacked(receive(status));
                    --inHand[static_cast<std::size_t>(status.MPI_SOURCE)];
                    waiting.emplace(block.first, std::move(block));
                    idle = false;
                }
                while (fault && !waiting.empty() && waiting.begin()->first == taken) {
                    fault = take(waiting.begin()->second);
                    taken += waiting.begin()->second.count;
                    waiting.erase(waiting.begin());
                }
                if ((ending || given >= plan.rows()) && std::all_of(inHand.begin(), inHand.end(), [](int blocks) { return blocks == 0; })) break;
                if (idle) rest();
            }
        }
        const Assignment none;
        for (std::size_t r = 1; r < ranks; ++r) MPI_Send(&none, sizeof none, MPI_BYTE, static_cast<int>(r), kAssign, MPI_COMM_WORLD);
        if (!fault) return tl::unexpected<Error>(fault.error());
        return taken;
    }

    void serve(const SweepPlan& plan, const SweepOptions& options) override {
        while (true) {
            int there = 0;
            MPI_Status status;
            MPI_Iprobe(0, kAssign, MPI_COMM_WORLD, &there, &status);
            if (there == 0) {
                rest();
                continue;
            }
            Assignment next;
            MPI_Recv(&next, sizeof next, MPI_BYTE, 0, kAssign, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (next.count == 0) return;
            const std::string message = packed(makeBlock(plan, next, options));
            MPI_Send(message.data(), static_cast<int>(message.size()), MPI_BYTE, 0, kResult, MPI_COMM_WORLD);
        }
    }

    [[noreturn]] void abandon(int exitCode) override {
        MPI_Abort(MPI_COMM_WORLD, exitCode);
        std::_Exit(exitCode);
    }

private:
    static std::string receive(MPI_Status& status) {
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        std::string message(static_cast<std::size_t>(bytes), '\0');
        MPI_Recv(message.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kResult, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return message;
    }

    int rank_ = 0, size_ = 1;
};

}  // namespace

bool underMpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

Result<std::unique_ptr<RankSession>> RankSession::start() { return std::make_unique<MpiSession>(); }

}  // namespace ringside
