#include "calibrate/execute/memory_order.h"

#include <gtest/gtest.h>

#include "sim/schedule/program_writer.h"

namespace ringside {
namespace {

constexpr StreamId kOther = 2;

/// Tasks on two streams that share the compute stream's pool.
class SharedPool : public testing::Test {
protected:
    SharedPool() : writer_(program_) {
        program_.streams = {{StreamKind::Host, "host"}, {StreamKind::Compute, "compute"}, {StreamKind::Communication, "other"}};
    }

    BufferId buffer(Bytes bytes) {
        Buffer made;
        made.bytes = bytes;
        return writer_.addBuffer(made);
    }
    TaskId task(StreamId stream, std::initializer_list<std::pair<BufferId, UseKind>> uses) {
        Task made;
        made.stream = stream;
        const TaskId id = writer_.add(made);
        for (const auto& [used, kind] : uses) writer_.use(used, kind);
        return id;
    }
    /// The use that frees the buffer.
    std::uint32_t freeOf(BufferId buffer) const {
        for (std::uint32_t u = 0; u < program_.uses.size(); ++u)
            if (program_.uses[u].buffer == buffer && program_.uses[u].kind == UseKind::Free) return u;
        return 0;
    }

    RankProgram program_;
    ProgramWriter writer_;
    std::byte memory_[1024];
};

TEST_F(SharedPool, OfOneStreamNeedsNoWaiting) {
    const BufferId a = buffer(100);
    task(kComputeStream, {{a, UseKind::Allocate}, {a, UseKind::Free}});
    const MemoryOrder order(program_);
    EXPECT_FALSE(order.tracks(a));
    EXPECT_FALSE(order.mayBeAwaited(0));
}

TEST_F(SharedPool, GivesAPlaceOnlyAfterTheLastTaskOfEveryOtherStreamThatHadIt) {
    const BufferId a = buffer(100), b = buffer(100);
    task(kComputeStream, {{a, UseKind::Allocate}, {a, UseKind::Write}});
    const TaskId read = task(kOther, {{a, UseKind::Read}});
    const TaskId last = task(kComputeStream, {{a, UseKind::Free}});
    task(kComputeStream, {{b, UseKind::Allocate}, {b, UseKind::Free}});
    MemoryOrder order(program_);
    ASSERT_TRUE(order.tracks(a));
    EXPECT_TRUE(order.mayBeAwaited(read));
    order.freed(freeOf(a), memory_);
    EXPECT_EQ(order.allocated(b, memory_, kComputeStream), std::vector<TaskId>{read});

    order.beginStep();
    order.freed(freeOf(a), memory_);
    EXPECT_EQ(order.allocated(b, memory_, kOther), std::vector<TaskId>{last});
}

TEST_F(SharedPool, RemembersWhatIsLeftOfAPlaceOnBothSides) {
    const BufferId whole = buffer(300), middle = buffer(100), side = buffer(100);
    task(kComputeStream, {{whole, UseKind::Allocate}});
    const TaskId user = task(kOther, {{whole, UseKind::Write}, {whole, UseKind::Free}});
    task(kComputeStream, {{middle, UseKind::Allocate}, {middle, UseKind::Free}, {side, UseKind::Allocate}, {side, UseKind::Free}});
    MemoryOrder order(program_);
    order.freed(freeOf(whole), memory_);
    EXPECT_EQ(order.allocated(middle, memory_ + 100, kComputeStream), std::vector<TaskId>{user});
    EXPECT_TRUE(order.allocated(middle, memory_ + 100, kComputeStream).empty());
    EXPECT_EQ(order.allocated(side, memory_, kComputeStream), std::vector<TaskId>{user});
    EXPECT_EQ(order.allocated(side, memory_ + 200, kComputeStream), std::vector<TaskId>{user});
    EXPECT_TRUE(order.allocated(side, memory_ + 300, kComputeStream).empty());
}

}  // namespace
}  // namespace ringside
