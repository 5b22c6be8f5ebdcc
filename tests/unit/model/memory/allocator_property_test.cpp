// Laws of the caching allocator, over random programs of allocations and frees.
#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/memory/allocator.h"

namespace ringside {
namespace {

struct Step {
    int action = 0;       // 0–5 allocate, 6–9 free, 10 give back the cache
    Bytes bytes = 0;
    int stream = 0;
    std::size_t which = 0;
};

std::vector<Step> anyProgram() {
    const auto size = rc::gen::oneOf(rc::gen::inRange<Bytes>(0, 4096), rc::gen::inRange<Bytes>(1, 2 * kMiB), rc::gen::inRange<Bytes>(kMiB, 12 * kMiB),
                                     rc::gen::inRange<Bytes>(9 * kMiB, 120 * kMiB));
    const auto step = rc::gen::build<Step>(rc::gen::set(&Step::action, rc::gen::inRange(0, 11)), rc::gen::set(&Step::bytes, size),
                                           rc::gen::set(&Step::stream, rc::gen::inRange(0, 3)), rc::gen::set(&Step::which, rc::gen::arbitrary<std::size_t>()));
    return *rc::gen::container<std::vector<Step>>(step);
}

struct Live {
    CachingAllocator::Block block;
    Bytes requested;
};

/// Plays a program; `visit` sees the allocator and the live blocks after every step.
template <class Visit>
std::vector<Live> play(CachingAllocator& allocator, const std::vector<Step>& program, bool limited, Visit visit) {
    std::vector<Live> live;
    for (const Step& step : program) {
        if (step.action < 6) {
            const auto block = limited ? allocator.tryAllocate(step.bytes, step.stream) : std::optional(allocator.allocate(step.bytes, step.stream));
            if (block) live.push_back({*block, step.bytes});
        } else if (step.action < 10) {
            if (live.empty()) continue;
            const std::size_t i = step.which % live.size();
            allocator.free(live[i].block);
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            allocator.releaseCached();
        }
        visit(live);
    }
    return live;
}

class AllocatorLaws : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(BothModes, AllocatorLaws, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& mode) { return mode.param ? "Expandable" : "Fixed"; });

TEST_P(AllocatorLaws, LiveBlocksHoldTheirRequestsAndNeverOverlap) {
    ASSERT_TRUE(rc::check([&] {
        CachingAllocator allocator(GetParam());
        play(allocator, anyProgram(), false, [&](const std::vector<Live>& live) {
            std::vector<std::pair<Bytes, Bytes>> spans;
            for (const Live& l : live) {
                RC_ASSERT(allocator.sizeOf(l.block) >= l.requested);
                if (l.requested > 0) spans.emplace_back(allocator.addressOf(l.block), allocator.sizeOf(l.block));
            }
            std::sort(spans.begin(), spans.end());
            for (std::size_t i = 1; i < spans.size(); ++i) RC_ASSERT(spans[i - 1].first + spans[i - 1].second <= spans[i].first);
        });
    }));
}

TEST_P(AllocatorLaws, AllocatedIsTheSumOfLiveBlocksAndNeverAboveReserved) {
    ASSERT_TRUE(rc::check([&] {
        CachingAllocator allocator(GetParam());
        play(allocator, anyProgram(), false, [&](const std::vector<Live>& live) {
            Bytes sum = 0;
            for (const Live& l : live) sum += allocator.sizeOf(l.block);
            RC_ASSERT(allocator.allocated() == sum);
            RC_ASSERT(allocator.allocated() <= allocator.reserved());
            RC_ASSERT(allocator.peakAllocated() >= allocator.allocated());
            RC_ASSERT(allocator.peakReserved() >= allocator.reserved());
            RC_ASSERT(allocator.reserved() % (2 * kMiB) == 0);
        });
    }));
}

TEST_P(AllocatorLaws, FreeingEverythingLeavesSegmentsThatAllGoBack) {
    ASSERT_TRUE(rc::check([&] {
        CachingAllocator allocator(GetParam());
        for (const Live& l : play(allocator, anyProgram(), false, [](const auto&) {})) allocator.free(l.block);
        RC_ASSERT(allocator.allocated() == 0);
        // Only a segment whose pieces all merged again can be given back whole.
        const Bytes reserved = allocator.reserved();
        RC_ASSERT(allocator.releaseCached() == reserved);
        RC_ASSERT(allocator.reserved() == 0);
    }));
}

TEST_P(AllocatorLaws, ReservedNeverExceedsTheCapacity) {
    ASSERT_TRUE(rc::check([&] {
        const Bytes capacity = *rc::gen::inRange<Bytes>(0, 400) * kMiB;
        CachingAllocator allocator(GetParam(), capacity);
        play(allocator, anyProgram(), true, [&](const auto&) { RC_ASSERT(allocator.peakReserved() <= capacity); });
    }));
}

TEST_P(AllocatorLaws, TheSameProgramGivesTheSameAddressesAlsoAfterReset) {
    ASSERT_TRUE(rc::check([&] {
        const std::vector<Step> program = anyProgram(), other = anyProgram();
        const auto addresses = [&](CachingAllocator& allocator) {
            std::vector<Bytes> all;
            play(allocator, program, false, [&](const std::vector<Live>& live) {
                if (!live.empty()) all.push_back(allocator.addressOf(live.back().block));
                all.push_back(allocator.reserved());
            });
            return all;
        };
        CachingAllocator fresh(GetParam()), used(GetParam());
        play(used, other, false, [](const auto&) {});
        used.reset();
        const auto expected = addresses(fresh);
        RC_ASSERT(addresses(used) == expected);
        RC_ASSERT(used.peakReserved() == fresh.peakReserved());
    }));
}

TEST(ExpandableSegments, ReserveNothingNewWhenAStepIsRepeated) {
    ASSERT_TRUE(rc::check([] {
        // A step that frees what it allocates, in reverse order as a backward pass does. All of it lies in one run of pages
        // per pool, so that the second step finds the room of the first.
        const auto sizes = *rc::gen::container<std::vector<Bytes>>(rc::gen::inRange<Bytes>(1, 50 * kMiB));
        CachingAllocator allocator(true);
        const auto step = [&] {
            std::vector<CachingAllocator::Block> blocks;
            for (const Bytes size : sizes) blocks.push_back(allocator.allocate(size, 0));
            for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) allocator.free(*it);
        };
        step();
        const Bytes reserved = allocator.reserved();
        step();
        RC_ASSERT(allocator.reserved() == reserved);
    }));
}

TEST(FreeBlocks, BestFitAgreesWithASortedSet) {
    ASSERT_TRUE(rc::check([] {
        FreeBlocks blocks;
        std::map<std::pair<Bytes, Bytes>, std::uint32_t> reference;
        const auto actions = *rc::gen::container<std::vector<std::tuple<bool, Bytes, Bytes>>>(
            rc::gen::tuple(rc::gen::arbitrary<bool>(), rc::gen::inRange<Bytes>(1, 3000), rc::gen::inRange<Bytes>(0, 50)));
        std::uint32_t node = 0;
        for (const auto& [insert, units, addressUnits] : actions) {
            const Bytes size = units * 512, address = addressUnits * 512;
            if (insert) {
                if (reference.emplace(std::pair(size, address), node).second) blocks.insert({size, address, node});
                ++node;
            } else if (const auto it = reference.lower_bound({size, 0}); it != reference.end()) {
                const auto found = blocks.bestFit(size);
                RC_ASSERT(found.has_value());
                RC_ASSERT(blocks.at(*found).node == it->second);
                blocks.erase(it->first.first, it->first.second);
                reference.erase(it);
            } else {
                RC_ASSERT(!blocks.bestFit(size).has_value());
            }
        }
        const auto entries = blocks.entries();
        RC_ASSERT(entries.size() == reference.size());
        std::size_t i = 0;
        for (const auto& [key, id] : reference) RC_ASSERT(entries[i++].node == id);
    }));
}

}  // namespace
}  // namespace ringside
