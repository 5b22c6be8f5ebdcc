#include "calibrate/ranks/tcp_store_server.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "model/base/check.h"

namespace ringside {
namespace {

using Clock = std::chrono::steady_clock;

std::optional<StoreRequest> decodeRequest(const std::string& bytes) {
    StoreRequest request;
    std::uint32_t keyLength = 0;
    constexpr std::size_t head = 1 + sizeof(request.number) + sizeof(keyLength);
    if (bytes.size() < head || static_cast<std::uint8_t>(bytes[0]) > static_cast<std::uint8_t>(StoreOp::Add)) return std::nullopt;
    request.op = static_cast<StoreOp>(bytes[0]);
    std::memcpy(&request.number, bytes.data() + 1, sizeof(request.number));
    std::memcpy(&keyLength, bytes.data() + 1 + sizeof(request.number), sizeof(keyLength));
    if (bytes.size() - head < keyLength) return std::nullopt;
    request.key = bytes.substr(head, keyLength);
    request.value = bytes.substr(head + keyLength);
    return request;
}

struct Client {
    Socket socket;
    std::string in, out;  ///< bytes of a request not complete yet; bytes of answers not sent yet
    bool greeted = false, gone = false;
    std::optional<std::string> waitsFor;
    Clock::time_point until;
};

class Server : public TcpStoreServer {
public:
    explicit Server(Socket listening) : listening_(std::move(listening)), stop_(::eventfd(0, EFD_CLOEXEC)) {
        CHECK(stop_.open());
        ::fcntl(listening_.get(), F_SETFL, ::fcntl(listening_.get(), F_GETFL) | O_NONBLOCK);
        thread_ = std::thread([this] { serve(); });
    }
    ~Server() override {
        const std::uint64_t one = 1;
        CHECK(::write(stop_.get(), &one, sizeof(one)) == sizeof(one));
        thread_.join();
    }
    void waitUntilClientsAreAtMost(std::size_t clients, std::chrono::milliseconds timeout) override {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, timeout, [&] { return count_ <= clients; });
    }

private:
    void serve() {
        for (;;) {
            std::vector<pollfd> entries = {{stop_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
            std::optional<Clock::time_point> next;
            for (const Client& client : clients_) {
                entries.push_back({client.socket.get(), static_cast<short>(client.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
                if (client.waitsFor && (!next || client.until < *next)) next = client.until;
            }
            int wait = -1;
            if (next) {
                const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
                wait = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
            }
            if (::poll(entries.data(), entries.size(), wait) < 0 && errno != EINTR) return;
            if (entries[0].revents != 0) return;
            std::size_t i = 2;
            for (Client& client : clients_) {
                if (entries[i++].revents != 0) receive(client);
            }
            if (entries[1].revents != 0) acceptAll();
            for (Client& client : clients_) {
                if (client.waitsFor && Clock::now() >= client.until) {
                    client.waitsFor.reset();
                    answer(client, kStoreNotThere, {});
                }
                flush(client);
            }
            if (std::erase_if(clients_, [](const Client& client) { return client.gone; }) > 0) publishCount();
        }
    }

    void acceptAll() {
        for (;;) {
            Socket socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!socket.open()) break;
            const int on = 1;
            ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            const std::string here = localAddressOf(socket);
            if (!here.empty() && !isLoopbackAddress(here)) values_.try_emplace(kServedAtKey, here);
            clients_.emplace_back().socket = std::move(socket);
        }
        publishCount();
    }

    void receive(Client& client) {
        char buffer[65536];
        for (;;) {
            const ssize_t count = ::recv(client.socket.get(), buffer, sizeof(buffer), 0);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && errno == EAGAIN) break;
            if (count <= 0) {
                client.gone = true;
                return;
            }
            client.in.append(buffer, static_cast<std::size_t>(count));
        }
        std::uint32_t length = 0;
        while (!client.gone && client.in.size() >= sizeof(length)) {
            std::memcpy(&length, client.in.data(), sizeof(length));
            if (length > kLargestFrame) {
                client.gone = true;
                return;
            }
            if (client.in.size() < sizeof(length) + length) return;
            const std::optional<StoreRequest> request = decodeRequest(client.in.substr(sizeof(length), length));
            client.in.erase(0, sizeof(length) + length);
            if (request) handle(client, *request);
            else client.gone = true;
        }
    }

    void handle(Client& client, const StoreRequest& request) {
        // Whoever does not greet is no rank of ours: a port scanner, a browser.
        if (!client.greeted && (request.op != StoreOp::Hello || request.value != kStoreGreeting)) {
            client.gone = true;
            return;
        }
        switch (request.op) {
            case StoreOp::Hello:
                client.greeted = true;
                answer(client, kStoreOk, kStoreGreeting);
                break;
            case StoreOp::Set:
                change(request.key, request.value);
                answer(client, kStoreOk, {});
                break;
            case StoreOp::Has: answer(client, values_.contains(request.key) ? kStoreOk : kStoreNotThere, {}); break;
            case StoreOp::Get:
                if (const auto found = values_.find(request.key); found != values_.end()) {
                    answer(client, kStoreOk, found->second);
                } else {
                    client.waitsFor = request.key;
                    client.until = Clock::now() + std::chrono::milliseconds(std::clamp<std::int64_t>(request.number, 0, 1'000'000'000));
                }
                break;
            case StoreOp::Add: {
                const auto found = values_.find(request.key);
                const std::string sum = std::to_string((found == values_.end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10)) + request.number);
                change(request.key, sum);
                answer(client, kStoreOk, sum);
                break;
            }
        }
    }

    void change(const std::string& key, const std::string& value) {
        values_[key] = value;
        for (Client& client : clients_) {
            if (client.waitsFor != key) continue;
            client.waitsFor.reset();
            answer(client, kStoreOk, value);
        }
    }

    static void answer(Client& client, char status, const std::string& value) {
        const auto length = static_cast<std::uint32_t>(1 + value.size());
        client.out.append(reinterpret_cast<const char*>(&length), sizeof(length));
        client.out += status;
        client.out += value;
    }

    static void flush(Client& client) {
        while (!client.gone && !client.out.empty()) {
            const ssize_t count = ::send(client.socket.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && errno == EAGAIN) return;
            if (count < 0) client.gone = true;
            else client.out.erase(0, static_cast<std::size_t>(count));
        }
    }

    void publishCount() {
        const std::lock_guard lock(mutex_);
        count_ = clients_.size();
        changed_.notify_all();
    }

    Socket listening_, stop_;
    std::list<Client> clients_;
    std::map<std::string, std::string> values_;
    std::mutex mutex_;  ///< of count_ alone; the rest belongs to the thread
    std::condition_variable changed_;
    std::size_t count_ = 0;
    std::thread thread_;
};

}  // namespace

std::string encodeRequest(const StoreRequest& request) {
    const auto keyLength = static_cast<std::uint32_t>(request.key.size());
    std::string bytes(1, static_cast<char>(request.op));
    bytes.append(reinterpret_cast<const char*>(&request.number), sizeof(request.number));
    bytes.append(reinterpret_cast<const char*>(&keyLength), sizeof(keyLength));
    return bytes + request.key + request.value;
}

std::unique_ptr<TcpStoreServer> TcpStoreServer::start(Socket listening) { return std::make_unique<Server>(std::move(listening)); }

}  // namespace ringside
