// Parameter servers: workers push the gradients of each layer and pull its parameters back; the optimizer and its state are
// with the server. Where the server is and whether workers wait for each other make five strategies.
// Sources and formulas: docs/models/parameter-server.md.
#include <algorithm>

#include "sim/strategy/cut_ranks.h"
#include "sim/strategy/server_keys.h"

namespace ringside {
namespace {

enum class ServerKind : std::uint8_t { Device0, Host, Servers, Async, Ssp };

/// What the server itself holds on rank 0's device or in its node's host memory.
void declareServerState(StepWriter& step, bool onHost, const std::vector<ParameterKey>& keys, const std::vector<OptimizerTarget>& targets) {
    step.declareOptimizerState(targets, onHost);
    Bytes largest = 0;
    const auto add = [&](Bytes bytes, MemoryCategory category, BufferRole role, DType dtype, std::size_t k) {
        Buffer buffer{bytes, category, role, dtype, true, false, -1, static_cast<std::int32_t>(k)};
        buffer.onHost = onHost;
        step.addBuffer(buffer);
    };
    const DType gradient = step.gradientDtype(), parameter = step.input().training.precision.parameter;
    for (std::size_t k = 0; k < keys.size(); ++k) {
        const Bytes bytes = keys[k].elements * sizeOf(gradient);
        add(bytes, MemoryCategory::Buckets, BufferRole::Bucket, gradient, k);  // the sum
        if (onHost) add(keys[k].elements * sizeOf(parameter), MemoryCategory::Parameters, BufferRole::Shard, parameter, k);
        largest = std::max(largest, bytes);
    }
    add(largest, MemoryCategory::Buckets, BufferRole::Workspace, gradient, 0);  // the push that is being added
}

class WorkerHooks final : public KeyHooks {
public:
    /// `isServer`: the worker is the server's own device; what it pushes and pulls is there already.
    WorkerHooks(StepWriter& step, bool overlap, bool isServer) : KeyHooks(step, overlap), isServer_(isServer) {
        push_ = step.program().addStream(StreamKind::Communication, "push");
        pull_ = step.program().addStream(StreamKind::Communication, "pull");
        if (!step.schedule().servers.keys.empty()) return;  // another program has described them
        for (const ParameterKey& key : keys()) addServerKey(step, key, key.elements * sizeOf(step.gradientDtype()));
    }

    using KeyHooks::keys;

    void communicate(StepWriter& step, std::uint32_t k) override {
        const ParameterKey& key = keys()[k];
        const TaskId complete = step.lastCompute();
        const Bytes out = isServer_ ? 0 : key.elements * sizeOf(step.gradientDtype());
        const Bytes in = isServer_ ? 0 : key.elements * sizeOf(step.input().training.precision.parameter);
        const TaskId push = step.message(TaskKind::Push, push_, k, out, key.layer);
        step.program().dependOn(complete);
        useGradients(step, key, UseKind::Read);
        step.message(TaskKind::Pull, pull_, k, in, key.layer);
        step.program().dependOn(push);
        useParameters(step, key, UseKind::Write);
    }

private:
    bool isServer_;
    StreamId push_ = 0, pull_ = 0;
};

class ParameterServer final : public Strategy {
public:
    explicit ParameterServer(ServerKind kind) : kind_(kind) {}

    std::string_view name() const override {
        switch (kind_) {
            case ServerKind::Device0: return "ps-device0";
            case ServerKind::Host: return "ps-host";
            case ServerKind::Servers: return "ps-servers";
            case ServerKind::Async: return "async-ps";
            case ServerKind::Ssp: return "ssp";
        }
        return "?";
    }
    std::string_view summary() const override {
        switch (kind_) {
            case ServerKind::Device0: return "Parameter server on device 0: it adds up all gradients, updates, and sends parameters back.";
            case ServerKind::Host: return "Parameter server in the first node's host memory: its processor adds up and updates.";
            case ServerKind::Servers: return "Parameter servers on dedicated nodes, each with a part of every layer; workers wait for each other.";
            case ServerKind::Async: return "Parameter servers that apply every push at once: no worker waits, gradients are stale.";
            case ServerKind::Ssp: return "Stale synchronous parallel: as async-ps, but no worker runs further ahead than the staleness allows.";
        }
        return "?";
    }
    std::vector<Knob> knobs() const override {
        std::vector<Knob> knobs = {{"push_pull_overlap", "true", "layers are pushed while backward goes on; false: after it"}};
        if (onNodes()) knobs.push_back({"servers", "as many as nodes of workers", "dedicated server nodes"});
        if (kind_ == ServerKind::Ssp) knobs.push_back({"staleness", "3", "steps that a worker may be ahead of the slowest; 0: all wait for each other"});
        return knobs;
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        const std::int64_t nodeDevices = input.cluster.nodes.front().kind.devices;
        const auto cut = [&](std::vector<ProgramPart>& parts) {
            if (onNodes() || input.cluster.deviceCount() == 1) return;
            cutClassesAt(parts, nodeDevices);
            giveOwnPrograms(parts, 1);  // it holds the server's state, too
        };
        return writeStep(input, name(), [&](StepWriter& step) { return writeProgram(step, input); }, false, cut);
    }

private:
    bool onNodes() const { return kind_ != ServerKind::Device0 && kind_ != ServerKind::Host; }

    Result<void> writeProgram(StepWriter& step, const StrategyInput& input) const {
        const bool alone = step.syncRanks() == 1;
        step.declareState({true, alone, {}, {}});
        if (alone) {
            StepHooks nothing;
            step.runPasses(nothing);
            step.optimizerStep();
            step.endStep();
            return {};
        }
        describeServers(step.schedule().servers, input);
        const bool isRank0 = step.part().ranks.front().first == 0;
        const std::vector<OptimizerTarget> targets = step.wholeParameters();
        WorkerHooks hooks(step, input.parallel.pushPullOverlap, kind_ == ServerKind::Device0 && isRank0);
        if (!onNodes() && isRank0) declareServerState(step, kind_ == ServerKind::Host, hooks.keys(), targets);
        step.runPasses(hooks);
        if (kind_ == ServerKind::Device0 && isRank0) step.allocateOptimizerState(targets);
        step.endStep();
        return {};
    }

    void describeServers(ParameterServers& servers, const StrategyInput& input) const {
        servers.count = onNodes() ? input.parallel.servers.value_or(input.cluster.nodeCount()) : 1;
        servers.placement = onNodes() ? ServerPlacement::Nodes : kind_ == ServerKind::Host ? ServerPlacement::Host : ServerPlacement::Device;
        if (kind_ == ServerKind::Async) servers.discipline = ServerDiscipline::Async;
        // Without any lead workers take every step together: the servers add up and apply once.
        if (kind_ == ServerKind::Ssp && input.parallel.staleness > 0) {
            servers.discipline = ServerDiscipline::BoundedStaleness;
            servers.staleness = input.parallel.staleness;
        }
    }

    ServerKind kind_;
};

}  // namespace

std::unique_ptr<const Strategy> makePsDevice0() { return std::make_unique<ParameterServer>(ServerKind::Device0); }
std::unique_ptr<const Strategy> makePsHost() { return std::make_unique<ParameterServer>(ServerKind::Host); }
std::unique_ptr<const Strategy> makePsServers() { return std::make_unique<ParameterServer>(ServerKind::Servers); }
std::unique_ptr<const Strategy> makeAsyncPs() { return std::make_unique<ParameterServer>(ServerKind::Async); }
std::unique_ptr<const Strategy> makeSsp() { return std::make_unique<ParameterServer>(ServerKind::Ssp); }

}  // namespace ringside
