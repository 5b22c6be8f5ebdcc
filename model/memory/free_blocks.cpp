#include "model/memory/free_blocks.h"

#include <bit>

#include "model/base/check.h"

namespace ringside {
namespace {

bool isBefore(Bytes sizeA, Bytes addressA, Bytes sizeB, Bytes addressB) {
    // Without branches: which of two blocks is smaller is a coin toss to a processor.
    return (sizeA < sizeB) | ((sizeA == sizeB) & (addressA < addressB));
}

/// How many entries of a falling vector come after (size, address), or equal it.
std::uint32_t countFrom(const std::vector<FreeBlocks::Entry>& bin, Bytes size, Bytes address) {
    const FreeBlocks::Entry* first = bin.data();
    std::size_t length = bin.size();
    while (length > 0) {
        const std::size_t half = (length + 1) / 2;
        const bool isFrom = !isBefore(first[half - 1].size, first[half - 1].address, size, address);
        first += isFrom ? half : 0;
        length = isFrom ? length - half : half - 1;
    }
    return static_cast<std::uint32_t>(first - bin.data());
}

}  // namespace

std::uint32_t FreeBlocks::binOf(Bytes size) {
    // Eight bins per doubling: the position of the top bit, and the three bits below it.
    const auto units = static_cast<std::uint64_t>(size) >> 9;
    const auto log2 = static_cast<std::uint32_t>(std::bit_width(units)) - 1;
    return log2 * 8 + static_cast<std::uint32_t>(((units << 3) >> log2) & 7);
}

void FreeBlocks::insert(const Entry& entry) {
    if (last_.size > 0) insertIntoBin(last_);
    last_ = entry;
}

void FreeBlocks::insertIntoBin(const Entry& entry) {
    const std::uint32_t index = binOf(entry.size);
    std::vector<Entry>& bin = bins_[index];
    // Memory is mostly freed in the reverse order of its allocation, so that the new entry is often the smallest.
    if (bin.empty() || isBefore(entry.size, entry.address, bin.back().size, bin.back().address)) bin.push_back(entry);
    else bin.insert(bin.begin() + countFrom(bin, entry.size, entry.address), entry);
    used_[index / 64] |= std::uint64_t{1} << (index % 64);
}

void FreeBlocks::erase(Bytes size, Bytes address) {
    if (last_.size == size && last_.address == address) {
        last_.size = 0;
        return;
    }
    const std::uint32_t index = binOf(size);
    const std::vector<Entry>& bin = bins_[index];
    const std::uint32_t count = countFrom(bin, size, address);
    CHECK(count > 0 && bin[count - 1].size == size && bin[count - 1].address == address);
    erase({index, count - 1});
}

void FreeBlocks::erase(Position position) {
    if (position.bin == kBins) {
        last_.size = 0;
        return;
    }
    std::vector<Entry>& bin = bins_[position.bin];
    bin.erase(bin.begin() + position.index);
    if (bin.empty()) used_[position.bin / 64] &= ~(std::uint64_t{1} << (position.bin % 64));
}

std::optional<FreeBlocks::Position> FreeBlocks::bestFit(Bytes size) const { return earlier(firstInBins(size, 0), size, 0); }

std::optional<FreeBlocks::Position> FreeBlocks::after(Position position) const {
    const Entry& entry = at(position);
    return earlier(firstInBins(entry.size, entry.address + 1), entry.size, entry.address + 1);
}

/// `inBins`, or last_ if that is not before (size, address) but before `inBins`.
std::optional<FreeBlocks::Position> FreeBlocks::earlier(std::optional<Position> inBins, Bytes size, Bytes address) const {
    if (last_.size == 0 || isBefore(last_.size, last_.address, size, address)) return inBins;
    if (inBins && isBefore(at(*inBins).size, at(*inBins).address, last_.size, last_.address)) return inBins;
    return kLast;
}

std::optional<FreeBlocks::Position> FreeBlocks::firstInBins(Bytes size, Bytes address) const {
    const std::uint32_t index = binOf(size);
    const std::vector<Entry>& bin = bins_[index];
    if (!bin.empty()) {
        // In the commonest case every entry of the bin will do, and the smallest is the best.
        if (!isBefore(bin.back().size, bin.back().address, size, address)) return Position{index, static_cast<std::uint32_t>(bin.size() - 1)};
        if (const std::uint32_t count = countFrom(bin, size, address); count > 0) return Position{index, count - 1};
    }
    return firstFromBin(index + 1);
}

std::optional<FreeBlocks::Position> FreeBlocks::firstFromBin(std::uint32_t bin) const {
    if (bin >= kBins) return std::nullopt;
    std::uint32_t word = bin / 64;
    std::uint64_t bits = used_[word] & (~std::uint64_t{0} << (bin % 64));
    while (bits == 0) {
        if (++word == used_.size()) return std::nullopt;
        bits = used_[word];
    }
    const std::uint32_t found = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    return Position{found, static_cast<std::uint32_t>(bins_[found].size() - 1)};
}

std::vector<FreeBlocks::Entry> FreeBlocks::entries() const {
    std::vector<Entry> all;
    for (auto position = bestFit(512); position; position = after(*position)) all.push_back(at(*position));
    return all;
}

void FreeBlocks::clear() {
    for (auto position = firstFromBin(0); position; position = firstFromBin(position->bin + 1)) bins_[position->bin].clear();
    used_.fill(0);
    last_.size = 0;
}

}  // namespace ringside
