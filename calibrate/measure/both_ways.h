// Both ways at once: what workers and their server do to the server's link.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/comm/communicator.h"

namespace ringside {

/// Channels between the first rank of a world and each of the others, one for each way, as a server has them.
class BothWays {
public:
    /// Every rank calls it, once in a world.
    static Result<BothWays> connect(CommWorld& world);

    /// Every rank but the first sends `elements` of `send` to it and gets as many, all at the same time; the first has as many for each other rank, one after another.
    /// Blocks until this rank's part is done.
    Result<void> exchange(const StreamContext& stream, const float* send, float* receive, std::int64_t elements);

private:
    // A channel is used by one thread at a time: Gloo loses messages of one that several wait on.
    struct Channels {
        std::unique_ptr<Communicator> there, back;
    };
    std::vector<Channels> others_;  // of the first: to each; of each other: to the first
    bool isFirst_ = false;
};

}  // namespace ringside
