// InterruptibleContext: a Gloo context whose operations can be ended from another thread.
//
// Gloo's close() of a connection wakes nobody who waits for it here, so a blocked collective would sit out its time-out. This context
// hands Gloo's algorithms buffers of our own, which know that they may have been aborted.
#pragma once

#include <memory>

#include <gloo/rendezvous/context.h>
#include <gloo/transport/context.h>

namespace ringside {

class InterruptibleContext : public gloo::rendezvous::Context {
public:
    using gloo::rendezvous::Context::Context;

    /// Connects to all others, then puts our buffers in place of Gloo's. Throws what Gloo throws.
    void connect(gloo::rendezvous::Store& store, std::shared_ptr<gloo::transport::Device>& device);

    /// Every wait that is under way, or comes, throws gloo::IoException; connections are closed. From any thread, more than once.
    void interrupt();
    bool interrupted() const;
};

}  // namespace ringside
