// Every operation, at 1 to 4 ranks, over types and sizes. Values are small whole numbers, so that sums are exact in every type.
#include "calibrate/comm/gloo_communicator.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/calibrate/comm/ranks_as_threads.h"

namespace ringside {
namespace {

constexpr StreamContext kStream;

// A vector of any type, written and read as small whole numbers.
class Numbers {
public:
    Numbers(std::size_t count, DType dtype) : dtype_(dtype), bytes_(count * static_cast<std::size_t>(sizeOf(dtype))) {}
    void* data() { return bytes_.data(); }
    std::byte* at(std::int64_t index) { return bytes_.data() + index * static_cast<std::int64_t>(sizeOf(dtype_)); }
    std::size_t size() const { return bytes_.size() / static_cast<std::size_t>(sizeOf(dtype_)); }

    void set(std::int64_t index, int value) {
        switch (dtype_) {
            case DType::Fp64: return store(index, static_cast<double>(value));
            case DType::Fp32: return store(index, static_cast<float>(value));
            case DType::Int64: return store(index, static_cast<std::int64_t>(value));
            case DType::Bf16: return store(index, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16));
            case DType::Fp16: {
                std::uint16_t bits = 0;  // value = 1.f · 2^e, f in ten bits
                if (value != 0) {
                    const int magnitude = value < 0 ? -value : value, exponent = std::bit_width(static_cast<unsigned>(magnitude)) - 1;
                    bits = static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | ((magnitude << 10 >> exponent) & 0x3ff));
                }
                return store(index, bits);
            }
            default: FAIL();
        }
    }
    double get(std::int64_t index) {
        switch (dtype_) {
            case DType::Fp64: return load<double>(index);
            case DType::Fp32: return load<float>(index);
            case DType::Int64: return static_cast<double>(load<std::int64_t>(index));
            case DType::Bf16: return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(index)) << 16);
            case DType::Fp16: {
                const auto bits = load<std::uint16_t>(index);
                if ((bits & 0x7fff) == 0) return 0;
                return ((bits & 0x8000) != 0 ? -1 : 1) * std::ldexp(1024 + (bits & 0x3ff), (bits >> 10 & 0x1f) - 25);
            }
            default: return NAN;
        }
    }

private:
    template <class T>
    void store(std::int64_t index, T value) { std::memcpy(at(index), &value, sizeof(value)); }
    template <class T>
    T load(std::int64_t index) {
        T value;
        std::memcpy(&value, at(index), sizeof(value));
        return value;
    }
    DType dtype_;
    std::vector<std::byte> bytes_;
};

/// What rank `rank` holds at `index`: small, and different from its neighbours.
int valueAt(int rank, std::int64_t index) { return static_cast<int>((index * 7 + rank * 3) % 11) - 5; }
Numbers numbersOf(int rank, std::int64_t count, DType dtype) {
    Numbers numbers(static_cast<std::size_t>(count), dtype);
    for (std::int64_t i = 0; i < count; ++i) numbers.set(i, valueAt(rank, i));
    return numbers;
}
int sumAt(int ranks, std::int64_t index) {
    int sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += valueAt(rank, index);
    return sum;
}

const std::vector<DType> kTypes = {DType::Fp32, DType::Fp64, DType::Bf16, DType::Fp16, DType::Int64};
// None, one, fewer than ranks, odd, and more than a socket takes at once.
const std::vector<std::int64_t> kSizes = {0, 1, 3, 1025, 150'001};
/// The large one in one type only, to keep the test short.
bool isSkipped(DType dtype, std::int64_t size) { return size > 100'000 && dtype != DType::Fp32; }

class Collective : public testing::TestWithParam<int> {
protected:
    int ranks() const { return GetParam(); }
    /// Over types and sizes, on every rank.
    void overAll(const std::function<void(Communicator&, DType, std::int64_t)>& body) const {
        withRanks(ranks(), [&](Communicator& group) {
            EXPECT_EQ(group.size(), ranks());
            for (const DType dtype : kTypes)
                for (const std::int64_t size : kSizes) {
                    SCOPED_TRACE(fmt::format("{} of {}, rank {}", size, nameOf(dtype), group.rank()));
                    if (!isSkipped(dtype, size)) body(group, dtype, size);
                    if (testing::Test::HasFailure()) return;
                }
        });
    }
};

TEST_P(Collective, AllReduceSumsInPlace) {
    overAll([&](Communicator& group, DType dtype, std::int64_t size) {
        Numbers numbers = numbersOf(group.rank(), size, dtype);
        const auto done = group.allReduce(kStream, numbers.data(), size, dtype, Reduction::Sum);
        ASSERT_TRUE(done.has_value()) << done.error().toString();
        for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(numbers.get(i), sumAt(ranks(), i)) << i;
    });
}

TEST_P(Collective, AllReduceAveragesByTheNumberOfRanks) {
    withRanks(ranks(), [&](Communicator& group) {
        // Each holds n·(rank + 1), so the mean is n·(n + 1)/2: whole in every type.
        for (const DType dtype : kTypes) {
            Numbers numbers(5, dtype);
            for (std::int64_t i = 0; i < 5; ++i) numbers.set(i, ranks() * (group.rank() + 1));
            ASSERT_TRUE(group.allReduce(kStream, numbers.data(), 5, dtype, Reduction::Average).has_value());
            for (std::int64_t i = 0; i < 5; ++i) ASSERT_NEAR(numbers.get(i), ranks() * (ranks() + 1) / 2, 1e-5) << nameOf(dtype);
        }
    });
}

TEST_P(Collective, AllGatherPutsThePartsInRankOrder) {
    overAll([&](Communicator& group, DType dtype, std::int64_t size) {
        for (const bool inPlace : {false, true}) {
            Numbers input = numbersOf(group.rank(), size, dtype), output(static_cast<std::size_t>(size * ranks()), dtype);
            if (inPlace) {
                for (std::int64_t i = 0; i < size; ++i) output.set(group.rank() * size + i, valueAt(group.rank(), i));
            }
            const void* from = inPlace ? output.at(group.rank() * size) : input.data();
            const auto done = group.allGather(kStream, from, output.data(), size, dtype);
            ASSERT_TRUE(done.has_value()) << done.error().toString();
            for (int rank = 0; rank < ranks(); ++rank)
                for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(output.get(rank * size + i), valueAt(rank, i)) << rank << " " << i;
        }
    });
}

TEST_P(Collective, AllToAllGivesEachItsPartOfEveryRanksInput) {
    overAll([&](Communicator& group, DType dtype, std::int64_t size) {
        Numbers input = numbersOf(group.rank(), size * ranks(), dtype);
        Numbers output(static_cast<std::size_t>(size * ranks()), dtype);
        const auto done = group.allToAll(kStream, input.data(), output.data(), size, dtype);
        ASSERT_TRUE(done.has_value()) << done.error().toString();
        for (int rank = 0; rank < ranks(); ++rank)
            for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(output.get(rank * size + i), valueAt(rank, group.rank() * size + i)) << rank << " " << i;
    });
}

TEST_P(Collective, ReduceScatterGivesEachItsPartOfTheSum) {
    overAll([&](Communicator& group, DType dtype, std::int64_t size) {
        for (const bool inPlace : {false, true}) {
            Numbers input = numbersOf(group.rank(), size * ranks(), dtype), output(static_cast<std::size_t>(size), dtype);
            Numbers& result = inPlace ? input : output;
            const std::int64_t first = inPlace ? group.rank() * size : 0;
            const auto done = group.reduceScatter(kStream, input.data(), result.at(first), size, dtype, Reduction::Sum);
            ASSERT_TRUE(done.has_value()) << done.error().toString();
            for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(result.get(first + i), sumAt(ranks(), group.rank() * size + i)) << i;
            // The rest of the input is as it was.
            for (std::int64_t i = 0; i < size * ranks(); ++i) {
                if (inPlace && i / size == group.rank()) continue;
                ASSERT_EQ(input.get(i), valueAt(group.rank(), i)) << i;
            }
        }
    });
}

TEST_P(Collective, ReduceScatterEqualsASliceOfAllReduce) {
    // With values that do not add up exactly: at two ranks to the last bit, beyond that the order of addition differs.
    withRanks(ranks(), [&](Communicator& group) {
        const std::int64_t size = 4099;
        std::vector<float> whole(static_cast<std::size_t>(size * ranks()));
        for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = std::sin(static_cast<float>(i) + 0.37F * static_cast<float>(group.rank()));
        std::vector<float> part(static_cast<std::size_t>(size));
        ASSERT_TRUE(group.reduceScatter(kStream, whole.data(), part.data(), size, DType::Fp32, Reduction::Average).has_value());
        ASSERT_TRUE(group.allReduce(kStream, whole.data(), size * ranks(), DType::Fp32, Reduction::Average).has_value());
        for (std::int64_t i = 0; i < size; ++i) {
            const float expected = whole[static_cast<std::size_t>(group.rank() * size + i)];
            ASSERT_NEAR(part[static_cast<std::size_t>(i)], expected, ranks() <= 2 ? 0 : 1e-6) << i;
        }
    });
}

TEST_P(Collective, ReduceScatterGoesOnOverManySegments) {
    // 2.4 MB for each rank: three segments of at most 1 MiB, rounded up to four.
    withRanks(ranks(), [&](Communicator& group) {
        const std::int64_t size = 600'001;
        std::vector<std::int32_t> input(static_cast<std::size_t>(size * ranks())), output(static_cast<std::size_t>(size));
        for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::int32_t>(i) * (group.rank() + 1);
        ASSERT_TRUE(group.reduceScatter(kStream, input.data(), output.data(), size, DType::Int32, Reduction::Sum).has_value());
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < size; ++i)  // i · (1 + 2 + … + n)
            wrong += output[static_cast<std::size_t>(i)] != (group.rank() * size + i) * ranks() * (ranks() + 1) / 2;
        EXPECT_EQ(wrong, 0);
    });
}

TEST_P(Collective, BroadcastCopiesFromAnyRoot) {
    overAll([&](Communicator& group, DType dtype, std::int64_t size) {
        for (int root = 0; root < ranks(); ++root) {
            Numbers numbers = numbersOf(group.rank(), size, dtype);
            const auto done = group.broadcast(kStream, numbers.data(), size, dtype, root);
            ASSERT_TRUE(done.has_value()) << done.error().toString();
            for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(numbers.get(i), valueAt(root, i)) << i;
        }
    });
}

TEST_P(Collective, ReduceSumsAtAnyRoot) {
    overAll([&](Communicator& group, DType dtype, std::int64_t size) {
        for (int root = 0; root < ranks(); ++root) {
            Numbers numbers = numbersOf(group.rank(), size, dtype);
            const auto done = group.reduce(kStream, numbers.data(), size, dtype, root, Reduction::Sum);
            ASSERT_TRUE(done.has_value()) << done.error().toString();
            if (group.rank() != root) continue;
            for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(numbers.get(i), sumAt(ranks(), i)) << i;
        }
    });
}

TEST_P(Collective, SendAndReceiveGoRoundARing) {
    overAll([&](Communicator& group, DType dtype, std::int64_t size) {
        if (ranks() == 1) return;
        const int right = (group.rank() + 1) % ranks(), left = (group.rank() + ranks() - 1) % ranks();
        Numbers out = numbersOf(group.rank(), size, dtype), in(static_cast<std::size_t>(size), dtype);
        // A send waits for its receive, so one has to begin.
        const auto send = [&] { ASSERT_TRUE(group.send(kStream, out.data(), size, dtype, right).has_value()); };
        const auto receive = [&] { ASSERT_TRUE(group.receive(kStream, in.data(), size, dtype, left).has_value()); };
        if (group.rank() == 0) send();
        receive();
        if (group.rank() != 0) send();
        for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(in.get(i), valueAt(left, i)) << i;
    });
}

TEST_P(Collective, MessagesBetweenTwoRanksKeepTheirOrder) {
    if (ranks() < 2) return;
    withRanks(ranks(), [&](Communicator& group) {
        for (std::int64_t i = 0; i < 100; ++i) {
            std::int64_t value = i;
            if (group.rank() == 0) {
                ASSERT_TRUE(group.send(kStream, &value, 1, DType::Int64, 1).has_value());
            }
            if (group.rank() != 1) continue;
            value = -1;
            ASSERT_TRUE(group.receive(kStream, &value, 1, DType::Int64, 0).has_value());
            ASSERT_EQ(value, i);
        }
    });
}

TEST_P(Collective, BarrierLetsNobodyPassBeforeAllHaveCome) {
    std::atomic<int> arrived = 0;
    withRanks(ranks(), [&](Communicator& group) {
        for (int round = 1; round <= 20; ++round) {
            ++arrived;
            ASSERT_TRUE(group.barrier(kStream).has_value());
            ASSERT_GE(arrived, round * ranks());
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collective, testing::Values(1, 2, 3, 4));

TEST(GlooCommunicator, RefusesSumsThatAreNotDefined) {
    withRanks(1, [](Communicator& group) {
        std::uint8_t byte = 0;
        const auto done = group.allReduce(kStream, &byte, 1, DType::Fp8, Reduction::Sum);
        ASSERT_FALSE(done.has_value());
        EXPECT_EQ(done.error().code, ErrorCode::BadInput);
        EXPECT_THAT(done.error().message, testing::HasSubstr("fp8"));
    });
}

TEST(GlooCommunicator, RunsCollectivesOfTwoGroupsAtOnce) {
    withWorlds(3, [](CommWorld& world) {
        const auto first = world.createGroup("first", ranksUpTo(3)), second = world.createGroup("second", ranksUpTo(3));
        ASSERT_TRUE(first.has_value() && second.has_value());
        const auto work = [](Communicator& group, float value) {
            for (int i = 0; i < 20; ++i) {
                std::vector<float> data(50'000, value);
                ASSERT_TRUE(group.allReduce(kStream, data.data(), 50'000, DType::Fp32, Reduction::Sum).has_value());
                ASSERT_EQ(data.front(), 3 * value);
                ASSERT_EQ(data.back(), 3 * value);
            }
        };
        std::thread other([&] { work(**second, 2); });
        work(**first, 1);
        other.join();
    });
}

}  // namespace
}  // namespace ringside
