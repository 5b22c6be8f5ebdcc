#include "calibrate/measure/both_ways.h"

#include <functional>
#include <thread>

#include <fmt/format.h>

namespace ringside {

Result<BothWays> BothWays::connect(CommWorld& world) {
    BothWays out;
    out.isFirst_ = world.rank() == 0;
    for (int other = 1; other < world.size(); ++other) {
        if (!out.isFirst_ && other != world.rank()) continue;
        const int ranks[] = {0, other};
        Channels& channels = out.others_.emplace_back();
        TRY(channels.there, world.createGroup(fmt::format("both ways: {} there", other), ranks));
        TRY(channels.back, world.createGroup(fmt::format("both ways: {} back", other), ranks));
    }
    return out;
}

Result<void> BothWays::exchange(const StreamContext& stream, const float* send, float* receive, std::int64_t elements) {
    std::vector<std::function<Result<void>()>> messages;
    for (std::size_t i = 0; i < others_.size(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i) * elements;
        Communicator* out = isFirst_ ? others_[i].back.get() : others_[i].there.get();
        Communicator* in = isFirst_ ? others_[i].there.get() : others_[i].back.get();
        const int peer = isFirst_ ? 1 : 0;
        messages.emplace_back([=, &stream] { return out->send(stream, send + at, elements, DType::Fp32, peer); });
        messages.emplace_back([=, &stream] { return in->receive(stream, receive + at, elements, DType::Fp32, peer); });
    }
    std::vector<Result<void>> results(messages.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < messages.size(); ++i) threads.emplace_back([&, i] { results[i] = messages[i](); });
    for (std::thread& thread : threads) thread.join();
    for (const Result<void>& result : results) TRY_VOID(result);
    return {};
}

}  // namespace ringside
