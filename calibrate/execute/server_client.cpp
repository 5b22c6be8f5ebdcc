#include "calibrate/execute/server_client.h"

#include <algorithm>

namespace ringside {
namespace {

/// Elements [first, first + count) of the line that the pieces make: calls `each(piece address, line offset from first, count)`.
template <class Each>
void forPart(std::span<const TensorPiece> pieces, const KeyPart& part, const Each& each) {
    std::int64_t at = 0;
    for (const TensorPiece& piece : pieces) {
        const std::int64_t begin = std::max(at, part.first), end = std::min(at + piece.elements, part.first + part.elements);
        if (begin < end) each(piece.data + (begin - at), begin - part.first, end - begin);
        at += piece.elements;
    }
}

}  // namespace

Result<std::unique_ptr<ServerClient>> ServerClient::connect(const Schedule& schedule, const ServerPlan& plan, std::int64_t worker, CommWorld& world) {
    std::unique_ptr<ServerClient> client(new ServerClient(plan));
    for (std::int64_t s = 0; s < plan.servers; ++s) {
        const int process = static_cast<int>(processOf(schedule, s)), self = static_cast<int>(worker);
        const int ranks[] = {std::min(process, self), std::max(process, self)};
        Channels& channels = client->servers_.emplace_back();
        channels.other = process < self ? 0 : 1;
        TRY(channels.push, world.createGroup(channelName("push", worker, s), ranks));
        TRY(channels.pull, world.createGroup(channelName("pull", worker, s), ranks));
        if (s == 0 && schedule.servers.discipline == ServerDiscipline::BoundedStaleness) {
            TRY(client->clock_, world.createGroup(channelName("clock", worker, s), ranks));
        }
    }
    return client;
}

Result<void> ServerClient::push(std::uint32_t key, std::span<const TensorPiece> pieces) {
    for (std::int64_t s = 0; s < plan_.servers; ++s) {
        const KeyPart part = plan_.partOf(key, s);
        pushLine_.resize(std::max(pushLine_.size(), static_cast<std::size_t>(part.elements)));
        forPart(pieces, part, [&](const float* from, std::int64_t at, std::int64_t count) { std::copy(from, from + count, pushLine_.begin() + at); });
        const Channels& channels = servers_[static_cast<std::size_t>(s)];
        TRY_VOID(channels.push->send({}, pushLine_.data(), part.elements, DType::Fp32, channels.other));
    }
    return {};
}

Result<void> ServerClient::pull(const ServerMessage& message, std::span<const TensorPiece> pieces) {
    for (std::int64_t s = 0; s < plan_.servers; ++s) {
        const KeyPart part = plan_.partOf(message.key, s);
        const Channels& channels = servers_[static_cast<std::size_t>(s)];
        const float question = 0;
        if (ServerPlan::asks(message)) TRY_VOID(channels.pull->send({}, &question, 1, DType::Fp32, channels.other));
        pullLine_.resize(std::max(pullLine_.size(), static_cast<std::size_t>(part.elements)));
        TRY_VOID(channels.pull->receive({}, pullLine_.data(), part.elements, DType::Fp32, channels.other));
        forPart(pieces, part, [&](float* to, std::int64_t at, std::int64_t count) { std::copy_n(pullLine_.begin() + at, count, to); });
    }
    return {};
}

Result<void> ServerClient::beginStep(std::int64_t step) {
    if (!clock_) return {};
    TRY_VOID(clock_->send({}, &step, 1, DType::Int64, servers_.front().other));
    std::int64_t granted = 0;
    return clock_->receive({}, &granted, 1, DType::Int64, servers_.front().other);
}

}  // namespace ringside
