// How ranks find each other: makeGlooWorld() and its groups. What a group can do is in gloo_communicator.cpp.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "calibrate/comm/gloo_communicator.h"
#include "calibrate/comm/gloo_group.h"
#include "calibrate/comm/prompt_thread.h"
#include "calibrate/comm/interruptible_context.h"
#include "calibrate/ranks/folder_store.h"
#include "calibrate/ranks/tcp_socket.h"
#include "calibrate/ranks/tcp_store.h"
#include "calibrate/ranks/tcp_store_server.h"
#include "model/base/check.h"

namespace ringside {
namespace {

using Clock = std::chrono::steady_clock;

/// Our store as Gloo wants it: bytes instead of text, exceptions instead of results.
class StoreForGloo : public gloo::rendezvous::Store {
public:
    StoreForGloo(KeyValueStore& store, std::chrono::milliseconds timeout) : store_(store), timeout_(timeout) {}
    void set(const std::string& key, const std::vector<char>& data) override { take(store_.set(key, std::string(data.begin(), data.end()))); }
    std::vector<char> get(const std::string& key) override {
        const std::string value = take(store_.get(key, timeout_));
        return {value.begin(), value.end()};
    }
    void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
    void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& /*Gloo's own*/) override {
        for (const std::string& key : keys) take(store_.get(key, timeout_));
    }

private:
    template <class T>
    static T take(Result<T> result) {
        if (!result) throw gloo::IoException(result.error().message);
        if constexpr (!std::is_void_v<T>) return std::move(*result);
    }
    KeyValueStore& store_;
    std::chrono::milliseconds timeout_;
};

/// Says "I am here" under `prefix` and waits for the others; what each said. Fails naming those who have not come.
Result<std::vector<std::string>> meet(KeyValueStore& store, const std::string& prefix, const std::string& what, int self, std::span<const int> ranks,
                                      const std::string& word, std::chrono::milliseconds timeout) {
    const auto keyOf = [&](int rank) { return fmt::format("{}/{}", prefix, rank); };
    TRY_VOID(store.set(keyOf(self), word));
    const Clock::time_point deadline = Clock::now() + timeout;
    std::vector<std::string> words;
    for (const int rank : ranks) {
        const auto left = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()), std::chrono::milliseconds(0));
        Result<std::string> said = store.get(keyOf(rank), left);
        if (said) {
            words.push_back(std::move(*said));
            continue;
        }
        std::vector<int> missing;
        for (const int other : ranks) {
            TRY(const bool there, store.has(keyOf(other)));
            if (!there) missing.push_back(other);
        }
        if (missing.empty()) return tl::unexpected<Error>(said.error());
        return failure(ErrorCode::RuntimeFailure, what,
                       fmt::format("after {} ms {} of {} ranks have not come: {}; check that they were started and see their messages, or allow more "
                                   "time with --timeout",
                                   timeout.count(), missing.size(), ranks.size(), fmt::join(missing, ", ")));
    }
    return words;
}

Result<std::string> addressOfInterface(const std::string& name) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return failure(ErrorCode::RuntimeFailure, "interface", std::strerror(errno));
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
    std::set<std::string> names;
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
        names.insert(entry->ifa_name);
        if (name != entry->ifa_name) continue;
        char digits[INET_ADDRSTRLEN] = {};
        ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, digits, sizeof(digits));
        return std::string(digits);
    }
    return badInput("interface", fmt::format("found '{}', expected one of this machine with an IPv4 address: {}", name, fmt::join(names, ", ")));
}

/// Gloo crashes on a name that cannot be resolved, so it never sees one.
Result<std::string> resolveHere(const std::string& name) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int code = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
    if (code != 0) return badInput("hostname", fmt::format("found '{}', which cannot be resolved ({}); give a name or address of this machine", name, ::gai_strerror(code)));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
    char digits[NI_MAXHOST] = {};
    ::getnameinfo(list->ai_addr, list->ai_addrlen, digits, sizeof(digits), nullptr, 0, NI_NUMERICHOST);
    return std::string(digits);
}

/// Whether the address is one of this machine's, asked before Gloo, which leaks memory when it is not.
Result<void> checkAddressIsHere(const std::string& digits) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST;
    addrinfo* list = nullptr;
    int error = EADDRNOTAVAIL;
    if (::getaddrinfo(digits.c_str(), nullptr, &hints, &list) == 0) {
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
        const Socket socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        error = socket.open() && ::bind(socket.get(), list->ai_addr, list->ai_addrlen) == 0 ? 0 : errno;
    }
    if (error == 0) return {};
    return failure(ErrorCode::RuntimeFailure, "rendezvous",
                   fmt::format("cannot use the address {}: {}; name an interface or address of this machine", digits, std::strerror(error)));
}

class GlooWorld : public CommWorld {
public:
    GlooWorld(const GlooWorldOptions& options, std::shared_ptr<KeyValueStore> store) : options_(options), store_(std::move(store)) {}

    Result<void> meetAll() {
        TRY(std::string address, ownAddress());
        std::vector<int> all;
        for (int rank = 0; rank < size(); ++rank) all.push_back(rank);
        TRY(const std::vector<std::string> addresses, meet(*store_, "world", "rendezvous", rank(), all, address, options_.timeout));
        // Ranks on rank 0's machine may reach the store by loopback, which is no address for those on other machines.
        const bool overNetwork = !std::all_of(addresses.begin(), addresses.end(), isLoopbackAddress);
        if (overNetwork && isLoopbackAddress(address) && options_.interface.empty() && options_.hostname.empty()) {
            TRY(address, store_->get(kServedAtKey, options_.timeout));
        }
        TRY_VOID(checkAddressIsHere(address));
        try {
            const PromptScope ofItsThread;
            device_ = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
        } catch (const std::exception& exception) {
            return failure(ErrorCode::RuntimeFailure, "rendezvous",
                           fmt::format("cannot use the address {}: {}; name another interface of this machine", address, plainMessageOf(exception)));
        }
        return {};
    }

    int rank() const override { return options_.env.rank; }
    int size() const override { return options_.env.size; }

    Result<std::unique_ptr<Communicator>> createGroup(const std::string& name, std::span<const int> ranks) override {
        CHECK(names_.insert(name).second);
        CHECK(!ranks.empty() && std::is_sorted(ranks.begin(), ranks.end()));
        const auto self = std::find(ranks.begin(), ranks.end(), rank());
        CHECK(self != ranks.end());
        const GlooGroup group{name, static_cast<int>(self - ranks.begin()), static_cast<int>(ranks.size()), options_.timeout};
        if (ranks.size() == 1) return makeGlooCommunicator(group, nullptr);

        const std::string list = fmt::format("{}", fmt::join(ranks, ", ")), what = fmt::format("group '{}'", name);
        TRY(const std::vector<std::string> lists, meet(*store_, "group/" + name, what, rank(), ranks, list, options_.timeout));
        for (std::size_t i = 0; i < lists.size(); ++i) {
            if (lists[i] != list) {
                return failure(ErrorCode::RuntimeFailure, what,
                               fmt::format("rank {} says that its members are {}, rank {} that they are {}; all must run the same scenario", ranks[i], lists[i],
                                           rank(), list));
            }
        }
        auto context = std::make_shared<InterruptibleContext>(group.rank, group.size);
        try {
            // Gloo gives a first connection five times the time-out.
            context->setTimeout(std::max(options_.timeout / 5, std::chrono::milliseconds(1)));
            StoreForGloo store(*store_, options_.timeout);
            const PromptScope connecting;
            gloo::rendezvous::PrefixStore prefixed("gloo/" + name, store);
            context->connect(prefixed, device_);
            context->setTimeout(options_.timeout);
        } catch (const std::exception& exception) {
            return failure(ErrorCode::RuntimeFailure, what,
                           fmt::format("its ranks ({}) cannot connect: {}; check that they can reach each other's addresses", list, plainMessageOf(exception)));
        }
        return makeGlooCommunicator(group, std::move(context));
    }

private:
    Result<std::string> ownAddress() const {
        if (!options_.interface.empty()) return addressOfInterface(options_.interface);
        if (!options_.hostname.empty()) return resolveHere(options_.hostname);
        const std::string address = store_->localAddress();
        return address.empty() ? "127.0.0.1" : address;
    }

    GlooWorldOptions options_;
    std::shared_ptr<KeyValueStore> store_;
    std::shared_ptr<gloo::transport::Device> device_;
    std::set<std::string> names_;
};

}  // namespace

Result<std::unique_ptr<CommWorld>> makeGlooWorld(const GlooWorldOptions& options) {
    CHECK(options.env.size > 0 && options.env.rank >= 0 && options.env.rank < options.env.size);
    std::signal(SIGPIPE, SIG_IGN);
    std::shared_ptr<KeyValueStore> store = options.store;
    if (!store && !options.storeFolder.empty()) {
        TRY(store, makeFolderStore(options.storeFolder));
    } else if (!store) {
        TRY(store, makeTcpStore(options.env, options.timeout));
    }
    auto world = std::make_unique<GlooWorld>(options, std::move(store));
    TRY_VOID(world->meetAll());
    return world;
}

}  // namespace ringside
