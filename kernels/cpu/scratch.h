// Scratch: buffers that a kernel needs while it runs. They grow to the largest use and are kept: a step repeats its shapes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace ringside {

class Scratch {
public:
    static constexpr int kSlots = 5;

    /// `count` elements of T, aligned to 64 bytes, contents undefined; valid until the next call for the slot.
    template <class T>
    T* get(int slot, std::int64_t count) {
        Buffer& buffer = buffers_.at(static_cast<std::size_t>(slot));
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
        if (bytes > buffer.bytes) {
            buffer.memory.reset();
            buffer.bytes = (bytes + 4095) / 4096 * 4096;
            buffer.memory.reset(std::aligned_alloc(64, buffer.bytes));
            if (!buffer.memory) {
                buffer.bytes = 0;
                throw std::bad_alloc();
            }
        }
        return static_cast<T*>(buffer.memory.get());
    }

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    struct Buffer {
        std::unique_ptr<void, Free> memory;
        std::size_t bytes = 0;
    };
    std::array<Buffer, kSlots> buffers_;
};

}  // namespace ringside
