// Folded ring: one turn of a rotation symmetry stands for all ranks, one rhythm of the ring for all its repetitions.
#pragma once

#include "sim/collective/message_level.h"

namespace ringside {

/// Plays `steps` messages of `messageBytes` per rank around the ring (or `groups` rings), all ranks entering at
/// baseLatency. Exact. REQUIRES: network.symmetry, whose ranksPerTurn divides the ranks and is divided by groups; at least
/// two ranks per ring. Time: O(p² · steps until the rhythm has settled), p the ranks per turn; memory O(p).
MessageLevelResult foldRing(const MessageNetwork& network, std::int64_t groups, std::int64_t steps, Bytes messageBytes, Time baseLatency);

}  // namespace ringside
