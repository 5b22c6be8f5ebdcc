// Awake cores: a rank that waits for its network finds its core as fast as it left it.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace ringside {

/// Keeps cores from going to sleep while it lives: a thread on each turns round and round, and gives way to any other thread at once.
/// A core that slept wakes up slowly, with a lower clock and, in a virtual machine, with other people's data in its caches: kernels
/// of a rank that mostly waits for its network then take 5 to 10 % longer. A GPU's clocks are locked for measurements for the same
/// reason. `count` 0: does nothing.
class AwakeCores {
public:
    AwakeCores(int first, int count);
    ~AwakeCores();
    AwakeCores(const AwakeCores&) = delete;
    AwakeCores& operator=(const AwakeCores&) = delete;

private:
    std::atomic<bool> done_{false};
    std::vector<std::thread> threads_;
};

}  // namespace ringside
