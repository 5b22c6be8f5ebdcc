#include "calibrate/comm/ring_all_gather.h"

#include <gloo/transport/unbound_buffer.h>

#include "model/base/check.h"

namespace ringside {

void ringAllGather(const RingAllGatherOptions& options) {
    const int size = options.context->size, rank = options.context->rank;
    CHECK(size > 1 && options.blockBytes > 0);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const auto blockAt = [&](int behind) { return static_cast<std::size_t>((rank - behind + size) % size) * options.blockBytes; };
    const auto buffer = options.context->createUnboundBuffer(options.output, options.blockBytes * static_cast<std::size_t>(size));
    // Messages between two ranks keep their order in a slot, so all of them can be awaited from the start.
    for (int step = 1; step < size; ++step) buffer->recv(left, options.slot, blockAt(step), options.blockBytes);
    for (int step = 0; step + 1 < size; ++step) {
        if (step > 0) buffer->waitRecv(options.timeout);
        buffer->send(right, options.slot, blockAt(step), options.blockBytes);
    }
    buffer->waitRecv(options.timeout);
    for (int step = 0; step + 1 < size; ++step) buffer->waitSend(options.timeout);
}

}  // namespace ringside
