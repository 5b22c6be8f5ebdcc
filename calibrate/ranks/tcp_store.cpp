#include "calibrate/ranks/tcp_store.h"

#include <mutex>

#include <fmt/format.h>

#include "calibrate/ranks/tcp_store_server.h"

namespace ringside {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswerTime(10);  // the server answers at once, but its machine may be busy
constexpr std::chrono::seconds kLinger(2);

class TcpStore : public KeyValueStore {
public:
    TcpStore(Socket socket, std::unique_ptr<TcpStoreServer> server) : socket_(std::move(socket)), server_(std::move(server)) {}
    ~TcpStore() override {
        socket_ = Socket();
        if (server_) server_->waitUntilClientsAreAtMost(0, kLinger);
    }

    Result<void> greet(Deadline deadline) {
        TRY_VOID(sendFrame(socket_, encodeRequest({StoreOp::Hello, 0, {}, kStoreGreeting})));
        TRY(const std::string answer, receiveFrame(socket_, deadline));
        if (answer != kStoreOk + std::string(kStoreGreeting))
            return failure(ErrorCode::RuntimeFailure, "store", "what answers there is not a Ringside of this version");
        return {};
    }

    Result<void> set(const std::string& key, const std::string& value) override {
        TRY_VOID(ask({StoreOp::Set, 0, key, value}, kAnswerTime));
        return {};
    }
    Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
        TRY(Answer answer, ask({StoreOp::Get, timeout.count(), key, {}}, timeout + kAnswerTime));
        if (!answer.there)
            return failure(ErrorCode::RuntimeFailure, "store", fmt::format("nobody set '{}' within {} ms", key, timeout.count()));
        return std::move(answer.value);
    }
    Result<bool> has(const std::string& key) override {
        TRY(const Answer answer, ask({StoreOp::Has, 0, key, {}}, kAnswerTime));
        return answer.there;
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        TRY(const Answer answer, ask({StoreOp::Add, delta, key, {}}, kAnswerTime));
        return std::strtoll(answer.value.c_str(), nullptr, 10);
    }
    std::string localAddress() const override { return localAddressOf(socket_); }

private:
    struct Answer {
        bool there = false;
        std::string value;
    };
    Result<Answer> ask(const StoreRequest& request, std::chrono::milliseconds timeout) {
        TRY_VOID(sendFrame(socket_, encodeRequest(request)));
        const Result<std::string> answer = receiveFrame(socket_, Clock::now() + timeout);
        if (!answer) return tl::unexpected<Error>(answer.error());
        if (answer->empty()) return failure(ErrorCode::RuntimeFailure, "store", "what answers there is not a Ringside of this version");
        return Answer{answer->front() == kStoreOk, answer->substr(1)};
    }

    Socket socket_;
    std::unique_ptr<TcpStoreServer> server_;
};

}  // namespace

Result<std::unique_ptr<KeyValueStore>> makeTcpStore(const RankEnv& env, std::chrono::milliseconds timeout) {
    const Deadline deadline = Clock::now() + timeout;
    std::unique_ptr<TcpStoreServer> server;
    int port = env.masterPort;
    if (env.rank == 0) {
        Socket listening(env.listenSocket);
        if (!listening.open()) {
            TRY(listening, listenAt(env.masterAddress, env.masterPort));
        }
        port = portOf(listening);
        server = TcpStoreServer::start(std::move(listening));
    }
    TRY(Socket socket, connectTo(env.masterAddress, port, deadline));
    auto store = std::make_unique<TcpStore>(std::move(socket), std::move(server));
    if (Result<void> greeted = store->greet(deadline); !greeted) {
        return failure(ErrorCode::RuntimeFailure, "MASTER_PORT",
                       fmt::format("something at {}:{} takes connections, but it is not rank 0 of this run ({}); set MASTER_PORT or --port to a free port",
                                   env.masterAddress, port, greeted.error().message));
    }
    return store;
}

}  // namespace ringside
