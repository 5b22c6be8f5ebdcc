#include "calibrate/comm/interruptible_context.h"

#include <mutex>
#include <set>

#include <gloo/common/error.h>
#include <gloo/transport/unbound_buffer.h>

namespace ringside {
namespace {

using gloo::transport::UnboundBuffer;

/// The buffers that exist, so that an abort reaches them.
class Waits {
public:
    void add(UnboundBuffer* buffer) {
        const std::lock_guard lock(mutex_);
        buffers_.insert(buffer);
    }
    void remove(UnboundBuffer* buffer) {
        const std::lock_guard lock(mutex_);
        buffers_.erase(buffer);
    }
    void abort() {
        const std::lock_guard lock(mutex_);
        aborted_ = true;
        for (UnboundBuffer* buffer : buffers_) {
            buffer->abortWaitRecv();
            buffer->abortWaitSend();
        }
    }
    bool aborted() const {
        const std::lock_guard lock(mutex_);
        return aborted_;
    }
    void throwIfAborted() const {
        if (aborted()) throw gloo::IoException("aborted");
    }

private:
    mutable std::mutex mutex_;
    std::set<UnboundBuffer*> buffers_;
    bool aborted_ = false;
};

/// Gloo's buffer, with waits that throw once aborted. An abort between the check and the wait is kept by Gloo's buffer.
class InterruptibleBuffer : public UnboundBuffer {
public:
    InterruptibleBuffer(std::unique_ptr<UnboundBuffer> inner, std::shared_ptr<Waits> waits)
        : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), waits_(std::move(waits)) {
        waits_->add(inner_.get());
    }
    ~InterruptibleBuffer() override { waits_->remove(inner_.get()); }

    bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
        waits_->throwIfAborted();
        if (!inner_->waitRecv(rank, timeout)) throw gloo::IoException("aborted");
        return true;
    }
    bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
        waits_->throwIfAborted();
        if (!inner_->waitSend(rank, timeout)) throw gloo::IoException("aborted");
        return true;
    }
    void abortWaitRecv() override { inner_->abortWaitRecv(); }
    void abortWaitSend() override { inner_->abortWaitSend(); }
    void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
        waits_->throwIfAborted();
        inner_->send(to, slot, offset, bytes);
    }
    void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
        waits_->throwIfAborted();
        inner_->recv(from, slot, offset, bytes);
    }
    void recv(std::vector<int> from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
        waits_->throwIfAborted();
        inner_->recv(std::move(from), slot, offset, bytes);
    }

private:
    std::unique_ptr<UnboundBuffer> inner_;
    std::shared_ptr<Waits> waits_;
};

/// Stands before Gloo's transport context and wraps the buffers it makes.
class InterruptibleTransport : public gloo::transport::Context {
public:
    explicit InterruptibleTransport(std::shared_ptr<gloo::transport::Context> inner)
        : gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner)) {
        setTimeout(inner_->getTimeout());
    }
    std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override { return inner_->getPair(peer); }
    std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override { return inner_->createPair(peer); }
    std::unique_ptr<UnboundBuffer> createUnboundBuffer(void* memory, std::size_t bytes) override {
        return std::make_unique<InterruptibleBuffer>(inner_->createUnboundBuffer(memory, bytes), waits_);
    }
    Waits& waits() const { return *waits_; }

private:
    std::shared_ptr<gloo::transport::Context> inner_;
    std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();
};

}  // namespace

void InterruptibleContext::connect(gloo::rendezvous::Store& store, std::shared_ptr<gloo::transport::Device>& device) {
    connectFullMesh(store, device);
    transportContext_ = std::make_shared<InterruptibleTransport>(std::move(transportContext_));
}

void InterruptibleContext::interrupt() {
    static_cast<InterruptibleTransport&>(*transportContext_).waits().abort();
    // Also where nobody waits here: the others shall learn of it, and Gloo's thread shall not wait for what never comes.
    closeConnections();
}

bool InterruptibleContext::interrupted() const { return static_cast<const InterruptibleTransport&>(*transportContext_).waits().aborted(); }

}  // namespace ringside
