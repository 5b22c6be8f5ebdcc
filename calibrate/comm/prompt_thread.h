// Prompt threads: collectives go before kernels on the core that both use.
#pragma once

namespace ringside {

/// While it lives, the calling thread (and a thread that it starts meanwhile) goes before all that compute on its core. Needs the
/// right to real-time priorities (root, or a limit on rtprio); without it nothing happens, and short messages take longer at times.
///
/// Why: a message that arrives wakes Gloo's network thread, and a kernel that runs on the core would first use up its time slice, 3 ms
/// or so. And Gloo's threads turn round and round while they wait for each other: the network thread for the lock of a connection, a
/// collective for the network thread to be done with its buffer. If one interrupts the other, both stand still until a slice is over.
/// All of them in one class: none interrupts another before its time slice (100 ms) is over, and all interrupt kernels. Without slices a
/// run hung now and then: one that holds a connection's lock and has to wait, as for a page of memory, comes behind the network thread,
/// which turns round for that very lock and never stops.
class PromptScope {
public:
    PromptScope();
    ~PromptScope();
    PromptScope(const PromptScope&) = delete;
    PromptScope& operator=(const PromptScope&) = delete;

    /// Whether the host allows it, as far as is known.
    static bool allowed();
    /// For good, in this process. Ranks that share cores must not have it: Gloo's threads turn round while they wait, and of equal
    /// real-time priority none makes room for the one they wait for.
    static void forbid();

private:
    int policyBefore_ = -1, priorityBefore_ = 0;  // -1: nothing was changed
};

/// The calling thread for the rest of its life: one that does nothing but communicate.
void stayPrompt();

}  // namespace ringside
