#include "calibrate/ranks/shaped_link.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "calibrate/ranks/run_command.h"
#include "model/base/check.h"

namespace ringside {
namespace {

constexpr char kInterface[] = "eth0";
// A machine's default is none of the link's business: under BBR, some distributions' choice, a port full both ways carries three quarters
// of what it can. Reno is in every kernel, and allowed to everybody.
constexpr char kCongestionControl[] = "reno";

constexpr int kNodesPerByte = 250;
int lastByteOf(int node) { return node % kNodesPerByte + 1; }
std::string hardwareAddress(int node) { return fmt::format("02:00:00:00:{:02x}:{:02x}", node / 256, node % 256); }

tl::unexpected<Error> unsupported(const std::string& reason) {
    return failure(ErrorCode::MissingCapability, "shaped link",
                   fmt::format("this machine cannot shape a link: {}; it needs root (or a shell from 'unshare -Urn'), ip and tc (package iproute2), and veth, "
                               "bridge, htb and u32 in the kernel",
                               reason));
}

Result<Socket> openOwnNamespace() {
    Socket here(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!here.open()) return unsupported(fmt::format("the kernel has no network namespaces ({})", std::strerror(errno)));
    return here;
}

/// Makes a namespace and comes back to `home`.
Result<Socket> makeNamespace(const Socket& home) {
    if (::unshare(CLONE_NEWNET) != 0) return unsupported(fmt::format("cannot make a network namespace ({})", std::strerror(errno)));
    Result<Socket> made = openOwnNamespace();
    CHECK(::setns(home.get(), CLONE_NEWNET) == 0);
    return made;
}

/// Does something inside a namespace.
template <class Work>
Result<void> doIn(const Socket& place, const Socket& home, const Work& work) {
    if (::setns(place.get(), CLONE_NEWNET) != 0) return unsupported(fmt::format("cannot enter a network namespace ({})", std::strerror(errno)));
    const Result<void> done = work();
    CHECK(::setns(home.get(), CLONE_NEWNET) == 0);
    return done;
}

/// Runs a batch of `ip` or `tc` lines inside a namespace.
Result<void> runIn(const Socket& place, const Socket& home, const std::string& program, const std::string& lines) {
    return doIn(place, home, [&]() -> Result<void> {
        const Result<std::string> ran = runCommand({program, "-batch", "-"}, lines);
        if (!ran) return unsupported(ran.error().toString());
        return {};
    });
}

Result<void> setCongestionControl(const Socket& place, const Socket& home) {
    return doIn(place, home, []() -> Result<void> {
        std::ofstream file("/proc/sys/net/ipv4/tcp_congestion_control");  // of the namespace that one is in
        file << kCongestionControl << std::flush;
        if (!file) return unsupported(fmt::format("its kernel does not let a namespace have TCP's congestion control '{}'", kCongestionControl));
        return {};
    });
}

// A port's queue for each sender lasts so long at the link's rate, and what a host hands over in one piece a part of that. The kernel's own
// queue holds seconds, and whatever is said meanwhile, acknowledgements too, waits behind them; a switch has a few hundred KiB for a port.
constexpr double kQueueSeconds = 2.5e-3, kPieceSeconds = 0.4e-3;

std::int64_t queueBytes(const ShapedLinkOptions& options) { return std::max<std::int64_t>(32768, std::llround(options.bitsPerSecond / 8 * kQueueSeconds)); }
std::int64_t pieceBytes(const ShapedLinkOptions& options) { return std::clamp<std::int64_t>(std::llround(options.bitsPerSecond / 8 * kPieceSeconds), 4096, 65536); }

enum class Side : std::uint8_t { IntoNode, OutOfNode };

// Nodes share a class by the last bits of their addresses: at most so many classes and filters for any number of nodes.
constexpr int kClasses = 64;

/// The link carries its rate; what comes from (or goes to) different nodes is served in turn. Classes borrow all but a share from the link.
std::string shape(const std::string& interface, Side side, const ShapedLinkOptions& options) {
    const int classes = std::min(options.nodes, kClasses);
    // The quantum is what a class may send in its turn.
    const auto classOf = [&](const std::string& parent, int id, int share) {
        return fmt::format("class add dev {0} parent {1} classid 1:{2:x} htb rate {3}bit ceil {4}bit burst {5} cburst {5} quantum 60000\n", interface, parent, id,
                           std::llround(options.bitsPerSecond / share), std::llround(options.bitsPerSecond), options.burstBytes);
    };
    constexpr int kLink = 1, kFirst = 2;
    std::string lines = fmt::format("qdisc add dev {} root handle 1: htb\n", interface) + classOf("1:", kLink, 1);
    for (int node = 0; node < classes; ++node) {
        lines += classOf("1:1", kFirst + node, classes);
        lines += fmt::format("filter add dev {} parent 1: protocol ip prio 1 u32 match u32 {:#x} {:#x} at {} flowid 1:{:x}\n", interface, lastByteOf(node) % kClasses, kClasses - 1,
                             side == Side::IntoNode ? 12 : 16, kFirst + node);  // the source's address in the header, the destination's
        // A host stops its own senders before its queue is full; a switch cannot.
        if (side == Side::IntoNode) lines += fmt::format("qdisc add dev {} parent 1:{:x} bfifo limit {}\n", interface, kFirst + node, queueBytes(options));
    }
    return lines;
}

}  // namespace

std::string ShapedLink::address(int node) const { return fmt::format("10.77.{}.{}", node / kNodesPerByte, lastByteOf(node)); }

Result<std::unique_ptr<ShapedLink>> ShapedLink::create(const ShapedLinkOptions& options) {
    CHECK(options.nodes > 0 && options.nodes <= 1024 && options.burstBytes > 0);
    if (!(options.bitsPerSecond >= 1e4) || options.bitsPerSecond > 1e12)
        return badInput("shaped link", fmt::format("found a rate of {} bit/s, expected 1e4 to 1e12", options.bitsPerSecond));
    std::unique_ptr<ShapedLink> link(new ShapedLink());
    TRY_VOID(link->build(options));
    return link;
}

Result<void> ShapedLink::build(const ShapedLinkOptions& options) {
    const Result<std::string> ip = findProgram("ip"), tc = findProgram("tc");
    if (!ip) return unsupported(ip.error().message);
    if (!tc) return unsupported(tc.error().message);
    TRY(const Socket home, openOwnNamespace());
    TRY(bridge_, makeNamespace(home));
    TRY_VOID(runIn(bridge_, home, *ip, "link add bridge type bridge\nlink set bridge up\n"));
    for (int node = 0; node < options.nodes; ++node) {
        TRY(Socket made, makeNamespace(home));
        const std::string port = fmt::format("port{}", node);
        // The other program opens our descriptor through /proc: no name has to be found for the namespace.
        const std::string there = fmt::format("/proc/{}/fd/{}", ::getpid(), made.get());
        TRY_VOID(runIn(bridge_, home, *ip,
                       fmt::format("link add {0} type veth peer name {1} netns {2}\nlink set {0} master bridge\nlink set {0} up\n", port, kInterface, there)));
        namespaces_.push_back(std::move(made));
        TRY_VOID(runIn(namespaces_.back(), home, *ip,
                       fmt::format("link set lo up\naddr add {0}/16 dev {1}\nlink set {1} address {2} gso_max_size {3} up\n", address(node), kInterface, hardwareAddress(node), pieceBytes(options)) +
                           neighboursOf(node, options.nodes)));
        TRY_VOID(setCongestionControl(namespaces_.back(), home));
        TRY_VOID(runIn(bridge_, home, *tc, shape(port, Side::IntoNode, options)));
        TRY_VOID(runIn(namespaces_.back(), home, *tc, shape(kInterface, Side::OutOfNode, options)));
    }
    return {};
}

// Nobody has to ask who has an address: the kernel's table of answers is one for all namespaces and holds 1024, the pairs of 32 nodes, and
// whose question is lost in it connects seconds or minutes later.
std::string ShapedLink::neighboursOf(int node, int nodes) const {
    std::string lines;
    for (int other = 0; other < nodes; ++other)
        if (other != node) lines += fmt::format("neigh add {} lladdr {} dev {}\n", address(other), hardwareAddress(other), kInterface);
    return lines;
}

Result<void> ShapedLink::enter(int node) const {
    CHECK(node >= 0 && node < nodes());
    if (::setns(namespaces_[static_cast<std::size_t>(node)].get(), CLONE_NEWNET) != 0)
        return unsupported(fmt::format("cannot enter a network namespace ({})", std::strerror(errno)));
    return {};
}

Result<void> shapedLinkSupport() {
    TRY_VOID(ShapedLink::create({.nodes = 1}));
    return {};
}

}  // namespace ringside
