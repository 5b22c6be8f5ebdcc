// Names of collectives: PyTorch, Kineto and NCCL each spell them differently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/trace.h"

namespace ringside {

enum class CollectiveKind : std::uint8_t { AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, SendRecv, Other };

/// Understands "allreduce", "all_reduce", "AllReduce", "_allgather_base", "allgather_into_tensor_coalesced", "send", …
CollectiveKind collectiveKindOf(std::string_view name);

/// NCCL's word: "AllReduce", "AllGather", …; all-to-all runs as "SendRecv". Empty for Other.
std::string_view ncclName(CollectiveKind op);

/// NCCL's short type name: "Float" → "f32", "BFloat16" → "bf16"; empty if not known.
std::string_view ncclTypeName(std::string_view dtype);

/// As NCCL ≥ 2.19 names its device function: "ncclDevKernel_AllReduce_Sum_f32_RING_LL"; collectives without arithmetic have
/// no operator and type ("ncclDevKernel_AllGather_RING_LL"). Empty if the operation is not known to NCCL.
/// The algorithm and protocol are those of `details`; a real NCCL names the kernel it specialised, which may differ.
std::string ncclKernelName(const CollectiveDetails& details);

}  // namespace ringside
