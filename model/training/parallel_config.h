// ParallelConfig: how training is spread over devices: the strategy's name and its knobs.
//
// One struct for all strategies keeps a scenario comparable; which knobs a strategy takes is its own business
// (Strategy::knobs), and giving one that it does not take is an error, not silence.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace ringside {

/// DDP communication hooks that shrink gradients on the wire.
enum class CommHook : std::uint8_t { None, Fp16, Bf16 };

struct ParallelConfig {
    std::string strategy = "ddp";
    std::optional<double> bucketMb;     ///< MiB; empty: the framework's default (DDP: 25 with a first bucket of 1)
    bool gradientAsBucketView = false;
    bool findUnusedParameters = false;
    bool staticGraph = false;
    CommHook commHook = CommHook::None;
    bool noSync = true;                 ///< with gradient accumulation: reduce only in the last micro-step
    bool broadcastBuffers = true;       ///< DDP sends rank 0's buffers (batch-norm statistics) in each forward

    std::set<std::string> given;        ///< knobs named in the scenario, by key
};

}  // namespace ringside
