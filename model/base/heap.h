// How the process treats its heap.
#pragma once

namespace ringside {

/// Keeps up to 64 MiB of freed memory in the process instead of giving it back to the system after every prediction: a
/// quarter of a small prediction's time was page faults on memory it had just returned. Programs call it once, at the start;
/// without glibc it does nothing.
void keepFreedMemory();

}  // namespace ringside
