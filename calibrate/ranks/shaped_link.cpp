#include "calibrate/ranks/shaped_link.h"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "calibrate/ranks/run_command.h"
#include "model/base/check.h"

namespace ringside {
namespace {

constexpr char kInterface[] = "eth0";

tl::unexpected<Error> unsupported(const std::string& reason) {
    return failure(ErrorCode::MissingCapability, "shaped link",
                   fmt::format("this machine cannot shape a link: {}; it needs root (or a shell from 'unshare -Urn'), ip and tc (package iproute2), and veth, "
                               "bridge and htb in the kernel",
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

/// Runs a batch of `ip` or `tc` lines inside a namespace.
Result<void> runIn(const Socket& place, const Socket& home, const std::string& program, const std::string& lines) {
    if (::setns(place.get(), CLONE_NEWNET) != 0) return unsupported(fmt::format("cannot enter a network namespace ({})", std::strerror(errno)));
    const Result<std::string> ran = runCommand({program, "-batch", "-"}, lines);
    CHECK(::setns(home.get(), CLONE_NEWNET) == 0);
    if (!ran) return unsupported(ran.error().toString());
    return {};
}

std::string shape(const std::string& interface, const ShapedLinkOptions& options) {
    // The quantum matters only among several classes; a stated one keeps the kernel from warning about its default.
    return fmt::format("qdisc add dev {0} root handle 1: htb default 1\n"
                       "class add dev {0} parent 1: classid 1:1 htb rate {1}bit burst {2} cburst {2} quantum 60000\n",
                       interface, std::llround(options.bitsPerSecond), options.burstBytes);
}

}  // namespace

std::string ShapedLink::address(int node) const { return fmt::format("10.77.{}.{}", node / 250, node % 250 + 1); }

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
                       fmt::format("link set lo up\naddr add {}/16 dev {}\nlink set {} up\n", address(node), kInterface, kInterface)));
        TRY_VOID(runIn(bridge_, home, *tc, shape(port, options)));                      // into the node
        TRY_VOID(runIn(namespaces_.back(), home, *tc, shape(kInterface, options)));  // out of it
    }
    return {};
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
