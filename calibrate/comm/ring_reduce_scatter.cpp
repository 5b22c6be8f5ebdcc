#include "calibrate/comm/ring_reduce_scatter.h"

#include <algorithm>
#include <array>

#include <gloo/transport/unbound_buffer.h>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr std::size_t kInFlight = 2;

/// What is sent and received together. Items are ordered so that each sends what the item two before it has received and added.
struct Item {
    int step = 0;
    std::size_t firstElement = 0, elements = 0;  ///< within a chunk
};

}  // namespace

void ringReduceScatter(const RingReduceScatterOptions& options) {
    const int size = options.context->size, rank = options.context->rank;
    CHECK(size > 1 && options.elements > 0);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const std::size_t bytesPerElement = options.elementBytes;
    const std::size_t chunkBytes = options.elements * bytesPerElement;

    // At least two segments, so that one can be added while the other travels; an even number, so that pairs of them go round together.
    const std::size_t atMost = std::max<std::size_t>(1, options.segmentBytes / bytesPerElement);
    std::size_t segments = std::max(kInFlight, (options.elements + atMost - 1) / atMost);
    segments += segments % kInFlight;
    const std::size_t segmentElements = (options.elements + segments - 1) / segments;
    const std::size_t segmentBytes = segmentElements * bytesPerElement;
    const auto steps = static_cast<std::size_t>(size - 1);
    const std::size_t items = segments * steps;

    const auto itemAt = [&](std::size_t index) {
        const std::size_t pair = index / (kInFlight * steps), within = index % (kInFlight * steps);
        const std::size_t segment = pair * kInFlight + within % kInFlight;
        const std::size_t first = std::min(segment * segmentElements, options.elements);
        return Item{static_cast<int>(within / kInFlight), first, std::min(segmentElements, options.elements - first)};
    };
    const auto chunkOf = [&](int step, int behind) { return static_cast<std::size_t>((rank - behind - step + 2 * size) % size); };

    // Four segments: two are received into while the two before them, added, are sent.
    const auto scratch = std::make_unique_for_overwrite<std::byte[]>(2 * kInFlight * segmentBytes);
    const auto place = [&](std::size_t index) { return (index % (2 * kInFlight)) * segmentBytes; };
    const auto received = options.context->createUnboundBuffer(scratch.get(), 2 * kInFlight * segmentBytes);
    // Gloo does not write to what is sent, but takes no pointer to const.
    const auto own = options.context->createUnboundBuffer(const_cast<void*>(options.input), chunkBytes * static_cast<std::size_t>(size));
    const auto* input = static_cast<const std::byte*>(options.input);

    const auto finish = [&](std::size_t index) {
        const Item item = itemAt(index);
        if (item.elements == 0) return;
        const std::size_t offset = item.firstElement * bytesPerElement;
        received->waitRecv(options.timeout);
        std::byte* partial = scratch.get() + place(index);
        const bool last = item.step == size - 2;
        void* to = last ? static_cast<std::byte*>(options.output) + offset : partial;
        options.sum(to, input + chunkOf(item.step, 2) * chunkBytes + offset, partial, item.elements);
        (item.step == 0 ? own : received)->waitSend(options.timeout);
    };

    for (std::size_t index = 0; index < items + kInFlight; ++index) {
        if (index >= kInFlight) finish(index - kInFlight);
        if (index >= items) continue;
        const Item item = itemAt(index);
        if (item.elements == 0) continue;
        const std::size_t offset = item.firstElement * bytesPerElement, bytes = item.elements * bytesPerElement;
        received->recv(left, options.slot, place(index), bytes);
        if (item.step == 0) own->send(right, options.slot, chunkOf(0, 1) * chunkBytes + offset, bytes);
        else received->send(right, options.slot, place(index - kInFlight), bytes);
    }
}

}  // namespace ringside
