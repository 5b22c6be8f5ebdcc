// ShapedLink: a small network on this machine whose links are as slow as asked for, so that communication costs what it does between
// machines. Each node is a network namespace with one interface; all meet at a bridge; `tc htb` limits each node's both directions.
//
// Nodes that send to one at the same time get even shares of its link, and so do those that one sends to: as switches serve their ports
// in turn, and hosts their connections. In one queue for all, whose window has grown first gets twice what others get, for seconds.
// Queues are short, as a switch's are, and TCP's congestion control is Reno, whatever the machine's default is.
//
// The namespaces have no names and no files: open descriptors of this process hold them, so they end with it, however it ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calibrate/ranks/tcp_socket.h"
#include "model/base/result.h"

namespace ringside {

struct ShapedLinkOptions {
    int nodes = 2;
    double bitsPerSecond = 1e9;  ///< of each node, in and out, on the wire (TCP over Ethernet carries 1448 bytes in 1514)
    int burstBytes = 65536;      ///< what may pass at once after a pause; below about 1 MiB it dominates a transfer
};

class ShapedLink {
public:
    /// Fails (missing capability) where the machine cannot: not root, no ip or tc, no htb or u32 in the kernel. REQUIRES: one thread.
    static Result<std::unique_ptr<ShapedLink>> create(const ShapedLinkOptions& options);

    int nodes() const { return static_cast<int>(namespaces_.size()); }
    /// Of the node's interface, as digits; nothing outside the namespaces can reach it.
    std::string address(int node) const;
    /// Moves the calling thread, and what it starts from here on, into a node. Sockets it already has stay where they are.
    Result<void> enter(int node) const;

private:
    ShapedLink() = default;
    Result<void> build(const ShapedLinkOptions& options);
    std::string neighboursOf(int node, int nodes) const;

    Socket bridge_;
    std::vector<Socket> namespaces_;
};

/// Whether create() would work here, or why not (missing capability).
Result<void> shapedLinkSupport();

}  // namespace ringside
