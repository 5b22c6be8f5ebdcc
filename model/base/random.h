// CounterRandom: random numbers as a pure function of (seed, stream, counter).
//
// Nothing is carried from one draw to the next, so that a draw does not depend on which others were made, in what order or on
// which thread. SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014) mixes the three words.
#pragma once

#include <cmath>
#include <cstdint>

namespace ringside {

class CounterRandom {
public:
    constexpr explicit CounterRandom(std::uint64_t seed, std::uint64_t stream = 0) : key_(mix(seed + mix(stream + kGolden))) {}

    constexpr std::uint64_t bits(std::uint64_t counter) const { return mix(mix(key_ ^ (counter * kGolden)) + counter); }
    /// In (0, 1]: never zero, so that its logarithm is finite. 53 bits.
    constexpr double uniform(std::uint64_t counter) const { return (static_cast<double>(bits(counter) >> 11) + 1) * 0x1.0p-53; }
    /// Exponential with this mean.
    double exponential(std::uint64_t counter, double mean) const { return -mean * std::log(uniform(counter)); }

private:
    static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
    static constexpr std::uint64_t mix(std::uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return x ^ (x >> 31);
    }
    std::uint64_t key_;
};

}  // namespace ringside
