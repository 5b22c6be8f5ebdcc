// FreeBlocks: the free blocks of one stream and pool, ordered by size and then by address, as best fit needs them.
//
// A training step frees and takes the same few sizes over and over, so the order is kept in bins of near-equal size (8 per
// doubling), each a flat sorted vector whose smallest entry stands last. A bitmap of the bins in use finds the next bin. The
// entry inserted last waits outside the bins: what was just freed or split off is mostly what is taken or merged next.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/units.h"

namespace ringside {

class FreeBlocks {
public:
    struct Entry {
        Bytes size = 0;
        Bytes address = 0;
        std::uint32_t node = 0;
    };
    /// Names one entry until the next insert, erase or clear.
    struct Position {
        std::uint32_t bin = 0, index = 0;
    };

    FreeBlocks() : bins_(kBins) {}

    /// REQUIRES: size ≥ 512; no entry has the same size and address.
    void insert(const Entry& entry);
    /// REQUIRES: the entry is there.
    void erase(Bytes size, Bytes address);
    void erase(Position position);

    /// The smallest entry of at least `size` bytes; among equals the one with the lowest address.
    std::optional<Position> bestFit(Bytes size) const;
    /// The next entry in the order (size, address).
    std::optional<Position> after(Position position) const;
    const Entry& at(Position position) const { return position.bin == kBins ? last_ : bins_[position.bin][position.index]; }

    /// All entries in the order (size, address).
    std::vector<Entry> entries() const;
    /// Forgets all entries, keeps the memory.
    void clear();

private:
    static constexpr std::uint32_t kBins = 56 * 8;
    static constexpr Position kLast{kBins, 0};  ///< names last_
    static std::uint32_t binOf(Bytes size);
    void insertIntoBin(const Entry& entry);
    std::optional<Position> firstFromBin(std::uint32_t bin) const;
    /// The first entry of the bins that does not come before (size, address).
    std::optional<Position> firstInBins(Bytes size, Bytes address) const;
    std::optional<Position> earlier(std::optional<Position> inBins, Bytes size, Bytes address) const;

    Entry last_;                                  ///< inserted last and still here; none if its size is 0
    std::vector<std::vector<Entry>> bins_;        ///< each in falling order
    std::array<std::uint64_t, kBins / 64> used_{};  ///< bit set: the bin has entries
};

}  // namespace ringside
