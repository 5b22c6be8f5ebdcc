#include "calibrate/execute/parameter_server.h"

#include <algorithm>
#include <chrono>

#include "calibrate/comm/prompt_thread.h"
#include "calibrate/execute/optimizer_kernels.h"
#include "model/base/check.h"
#include "model/cost/optimizer_work.h"

namespace ringside {
namespace {

// Operands of a key's update: the gradient, then parameter, first and second state of each tensor.
constexpr std::uint32_t kGradient = 0;
Operand operandOf(std::size_t tensor, std::uint32_t which, const float* place) { return place ? inBuffer(static_cast<BufferId>(1 + 3 * tensor + which)) : Operand{}; }

void sleepFor(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

ParameterServer::ParameterServer(const Schedule& schedule, std::int64_t index, const TrainingConfig& training, ComputeDevice& device, ServerOptions options)
    : schedule_(schedule), index_(index), device_(device), options_(std::move(options)), optimizer_(training.optimizer) {}

Result<std::unique_ptr<ParameterServer>> ParameterServer::dedicated(const Schedule& schedule, std::int64_t index, const TrainingConfig& training, ComputeDevice& device, CommWorld& world,
                                                                    ServerOptions options) {
    std::unique_ptr<ParameterServer> server(new ParameterServer(schedule, index, training, device, std::move(options)));
    TRY(server->plan_, planServers(schedule));
    const SyntheticData data(*schedule.programs.front().workload, *schedule.workload, server->options_.seed);
    TRY(server->memory_, ServerMemory::allocate(schedule, server->plan_, index, training, device, data));
    TRY_VOID(server->prepare(training));
    TRY_VOID(server->connect(world));
    server->start();
    return server;
}

Result<std::unique_ptr<ParameterServer>> ParameterServer::besideRank0(const Schedule& schedule, const TrainingConfig& training, const RankProgram& program, const TensorStore& store,
                                                                      ComputeDevice& device, CommWorld& world, ServerOptions options) {
    std::unique_ptr<ParameterServer> server(new ParameterServer(schedule, 0, training, device, std::move(options)));
    TRY(server->plan_, planServers(schedule));
    const SyntheticData data(*program.workload, *schedule.workload, server->options_.seed);
    TRY(server->memory_, ServerMemory::in(schedule, server->plan_, training, program, store, data));
    TRY_VOID(server->prepare(training));
    TRY_VOID(server->connect(world));
    server->start();
    return server;
}

// On a device the optimizer is what the scenario says; a host updates in one fused pass. Elastic averaging's centre only adds.
Result<void> ParameterServer::prepare(const TrainingConfig& training) {
    ScratchSizes scratch{};
    keys_.resize(plan_.elements.size());
    for (std::uint32_t k = 0; k < keys_.size(); ++k) {
        KeyState& state = keys_[k];
        state.applied.resize(plan_.workers.size());
        state.seen.resize(plan_.workers.size());
        const ServerKey& key = schedule_.servers.keys[k];
        const ServerKeyMemory& memory = memory_->key(k);
        if (memory.elements == 0) continue;
        std::vector<UpdateRun> runs;
        std::vector<std::int64_t> elements;
        for (std::size_t i = 0; i < memory.tensors.size(); ++i) {
            const ServerTensor& tensor = memory.tensors[i];
            runs.push_back({inBuffer(kGradient, tensor.at * 4), operandOf(i, 0, tensor.parameter), {}, operandOf(i, 1, tensor.first), operandOf(i, 2, tensor.second), tensor.elements});
            elements.push_back(tensor.elements);
        }
        const std::span<const KernelWork> kernels(schedule_.kernels.data() + key.firstApply, key.applyKernels);
        if (kernels.front().name == "add") {
            BoundCall& add = state.apply.emplace_back();
            add.call.op = KernelOp::Axpy;
            add.call.dims[0] = memory.elements;
            add.call.scalars[0] = 1;
            add.in[0] = runs.front().gradient;
            add.out[0] = runs.front().parameter;
        } else if (schedule_.servers.placement == ServerPlacement::Device) {
            TRY_VOID(bindPasses(kernels, runs, optimizer_, options_.hyper, state.apply, scratch));
        } else {
            Optimizer fused = optimizer_;
            fused.implementation = OptimizerImplementation::Fused;
            TRY_VOID(bindPasses(optimizerStep(fused, training.precision, elements), runs, fused, options_.hyper, state.apply, scratch));
        }
    }
    updateScratch_.resize(static_cast<std::size_t>(scratch[kUpdateScratch] / 4));
    return {};
}

// Workers connect to servers in order, and servers to workers: nobody waits in a circle.
Result<void> ParameterServer::connect(CommWorld& world) {
    const bool bounded = schedule_.servers.discipline == ServerDiscipline::BoundedStaleness && index_ == 0;
    const int self = static_cast<int>(processOf(schedule_, index_));
    workers_.resize(static_cast<std::size_t>(schedule_.world));
    for (std::size_t w = 0; w < workers_.size(); ++w) {
        const int other = static_cast<int>(w);
        if (other == self) continue;
        Worker& worker = workers_[w];
        const int ranks[] = {std::min(self, other), std::max(self, other)};
        worker.place = other < self ? 0 : 1;
        TRY(worker.push, world.createGroup(channelName("push", other, index_), ranks));
        TRY(worker.pull, world.createGroup(channelName("pull", other, index_), ranks));
        if (bounded) {
            TRY(worker.clock, world.createGroup(channelName("clock", other, index_), ranks));
        }
    }
    return {};
}

void ParameterServer::start() {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
        if (!workers_[w].push) continue;
        addThread([this, w](std::int64_t step) { return servePushes(w, step); });
        addThread([this, w](std::int64_t step) { return servePulls(w, step); });
        if (workers_[w].clock) addThread([this, w](std::int64_t) { return serveClock(w); });
    }
}

template <class Serve>
void ParameterServer::addThread(Serve serve) {
    const std::lock_guard lock(mutex_);
    const std::size_t thread = done_.size();
    done_.push_back(0);
    threads_.emplace_back([this, thread, serve] {
        stayPrompt();
        for (std::int64_t step = 0;; ++step) {
            {
                std::unique_lock own(mutex_);
                changed_.wait(own, [&] { return stopped_ || error_ || step < allowed_; });
                if (stopped_ || error_) return;
            }
            if (const Result<void> served = serve(step); !served) return fail(served.error());
            const std::lock_guard own(mutex_);
            done_[thread] = step + 1;
            changed_.notify_all();
        }
    });
}

ParameterServer::~ParameterServer() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        const bool busy = std::any_of(done_.begin(), done_.end(), [&](std::int64_t steps) { return steps < allowed_; });
        if (busy)
            for (const Worker& worker : workers_)
                for (Communicator* channel : {worker.push.get(), worker.pull.get(), worker.clock.get()})
                    if (channel) channel->abort();
        changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
}

void ParameterServer::allow(std::int64_t steps) {
    const std::lock_guard lock(mutex_);
    allowed_ = std::max(allowed_, steps);
    changed_.notify_all();
}

Result<void> ParameterServer::waitUntilDone() {
    std::unique_lock lock(mutex_);
    return await(lock, [&] { return std::all_of(done_.begin(), done_.end(), [&](std::int64_t steps) { return steps >= allowed_; }); });
}

ServerRecord ParameterServer::record() const {
    const std::lock_guard lock(mutex_);
    return record_;
}

template <class Ready>
Result<void> ParameterServer::await(std::unique_lock<std::mutex>& lock, const Ready& ready) {
    changed_.wait(lock, [&] { return stopped_ || error_ || ready(); });
    if (error_) return tl::unexpected<Error>(*error_);
    if (!ready()) return failure(ErrorCode::RuntimeFailure, "parameter server", "it was stopped while workers still waited for it");
    return {};
}

// Whoever waits for this server learns of it by the end of the connection.
void ParameterServer::fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    for (const Worker& worker : workers_)
        for (Communicator* channel : {worker.push.get(), worker.pull.get(), worker.clock.get()})
            if (channel) channel->abort();
    changed_.notify_all();
}

Result<void> ParameterServer::servePushes(std::size_t w, std::int64_t step) {
    Worker& worker = workers_[w];
    for (const ServerMessage& message : plan_.workers[w].pushes) {
        if (!isDue(message, step)) continue;
        const std::int64_t elements = memory_->key(message.key).elements;
        worker.message.resize(std::max(worker.message.size(), static_cast<std::size_t>(elements)));
        TRY_VOID(worker.push->receive({}, worker.message.data(), elements, DType::Fp32, worker.place));
        const TensorPiece whole{worker.message.data(), elements};
        TRY_VOID(take(w, message.key, {&whole, 1}));
    }
    return {};
}

Result<void> ParameterServer::servePulls(std::size_t w, std::int64_t step) {
    Worker& worker = workers_[w];
    for (const ServerMessage& message : plan_.workers[w].pulls) {
        if (!isDue(message, step)) continue;
        float question = 0;
        if (ServerPlan::asks(message)) TRY_VOID(worker.pull->receive({}, &question, 1, DType::Fp32, worker.place));
        TRY_VOID(awaitKey(w, message, roundOf(message, step)));
        KeyState& key = keys_[message.key];
        const ServerKeyMemory& memory = memory_->key(message.key);
        // Synchronously nothing changes before everybody has been answered; else others' pushes are applied meanwhile.
        const float* answer = memory.line ? memory.line : memory.sum;
        if (!isSynchronous()) {
            const std::lock_guard look(applying_);
            worker.answer.assign(memory.line, memory.line + memory.elements);
            answer = worker.answer.data();
            const std::lock_guard lock(mutex_);
            key.seen[w] = key.version;
        }
        TRY_VOID(worker.pull->send({}, answer, memory.elements, DType::Fp32, worker.place));
        const std::lock_guard lock(mutex_);
        ++key.answered;
        changed_.notify_all();
    }
    return {};
}

Result<void> ParameterServer::serveClock(std::size_t w) {
    Worker& worker = workers_[w];
    std::int64_t step = 0;
    TRY_VOID(worker.clock->receive({}, &step, 1, DType::Int64, worker.place));
    {
        std::unique_lock lock(mutex_);
        worker.clockTime = step;
        changed_.notify_all();
        const auto slowest = [&] {
            std::int64_t least = step;
            for (const Worker& other : workers_) least = std::min(least, other.clockTime);
            return least;
        };
        TRY_VOID(await(lock, [&] { return slowest() >= step - schedule_.servers.staleness; }));
        record_.largestLead = std::max(record_.largestLead, step - slowest());
    }
    return worker.clock->send({}, &step, 1, DType::Int64, worker.place);
}

Result<void> ParameterServer::take(std::size_t w, std::uint32_t key, std::span<const TensorPiece> pieces) {
    return isSynchronous() ? addInTurn(w, key, pieces) : applyAtOnce(w, key, pieces);
}

Result<void> ParameterServer::addInTurn(std::size_t w, std::uint32_t k, std::span<const TensorPiece> pieces) {
    KeyState& key = keys_[k];
    const auto workers = static_cast<std::int64_t>(workers_.size());
    const bool isLast = w + 1 == workers_.size();
    {
        std::unique_lock lock(mutex_);
        TRY_VOID(await(lock, [&] { return key.turn == static_cast<std::int64_t>(w) && key.answered == key.version * workers; }));
    }
    if (options_.pace.empty()) {
        // The mean of the gradients: dividing costs nothing on the way in.
        std::int64_t at = 0;
        for (const TensorPiece& piece : pieces) {
            TRY_VOID(run(w == 0 ? KernelOp::Scale : KernelOp::Axpy, piece.data, memory_->key(k).sum + at, piece.elements, 1 / static_cast<double>(workers)));
            at += piece.elements;
        }
    } else {
        sleepFor(options_.pace[k].sum);
    }
    if (isLast) TRY_VOID(apply(k, memory_->key(k).sum, key.version));
    const std::lock_guard lock(mutex_);
    key.turn = isLast ? 0 : key.turn + 1;
    key.version += isLast ? 1 : 0;
    changed_.notify_all();
    return {};
}

Result<void> ParameterServer::applyAtOnce(std::size_t w, std::uint32_t k, std::span<const TensorPiece> pieces) {
    CHECK(pieces.size() == 1);
    const std::lock_guard alone(applying_);
    KeyState& key = keys_[k];
    TRY_VOID(apply(k, pieces.front().data, key.version));
    const std::lock_guard lock(mutex_);
    record_.largestStaleness = std::max(record_.largestStaleness, key.version - key.seen[w]);
    ++key.version;
    ++key.applied[w];
    changed_.notify_all();
    return {};
}

Result<void> ParameterServer::apply(std::uint32_t k, float* gradient, std::int64_t version) {
    const ServerKeyMemory& memory = memory_->key(k);
    if (!options_.pace.empty()) {
        sleepFor(options_.pace[k].apply);
    } else {
        const auto place = [&](const Operand& operand) -> void* {
            if (operand.kind == Operand::Kind::None) return nullptr;
            if (operand.kind == Operand::Kind::Scratch) return reinterpret_cast<std::byte*>(updateScratch_.data()) + operand.offset;
            const ServerTensor* tensor = operand.index == kGradient ? nullptr : &memory.tensors[(operand.index - 1) / 3];
            float* const places[] = {tensor ? tensor->parameter : gradient, tensor ? tensor->first : nullptr, tensor ? tensor->second : nullptr};
            return reinterpret_cast<std::byte*>(places[tensor ? (operand.index - 1) % 3 : 0]) + operand.offset;
        };
        for (BoundCall bound : keys_[k].apply) {
            fillStepScalars(bound, version);
            for (std::size_t o = 0; o < bound.in.size(); ++o) bound.call.in[o] = place(bound.in[o]);
            for (std::size_t o = 0; o < bound.out.size(); ++o) bound.call.out[o] = place(bound.out[o]);
            TRY_VOID(device_.run({}, bound.call));
        }
        // Parameters in several tensors travel in one line: the sum has done its duty and lends its place.
        if (!memory.line)
            for (const ServerTensor& tensor : memory.tensors) TRY_VOID(run(KernelOp::Copy, tensor.parameter, memory.sum + tensor.at, tensor.elements, 0));
    }
    const std::lock_guard lock(mutex_);
    ++record_.applied;
    return {};
}

Result<void> ParameterServer::run(KernelOp op, const float* in, float* out, std::int64_t elements, double alpha) {
    if (elements == 0) return {};
    KernelCall call;
    call.op = op;
    call.in[0] = in;
    call.out[0] = out;
    call.dims[0] = elements;
    call.scalars[0] = alpha;
    return device_.run({}, call);
}

Result<void> ParameterServer::awaitKey(std::size_t w, const ServerMessage& message, std::int64_t round) {
    const std::int64_t needed = round * message.pushes + message.pushesBefore;
    const KeyState& key = keys_[message.key];
    std::unique_lock lock(mutex_);
    return await(lock, [&] { return (isSynchronous() ? key.version : key.applied[w]) >= needed; });
}

Result<void> ParameterServer::pushHere(std::uint32_t key, std::span<const TensorPiece> pieces) { return take(0, key, pieces); }

Result<void> ParameterServer::pullHere(const ServerMessage& message, std::int64_t round, std::span<const TensorPiece> pieces) {
    TRY_VOID(awaitKey(0, message, round));
    const ServerKeyMemory& memory = memory_->key(message.key);
    std::int64_t at = 0;
    for (const TensorPiece& piece : pieces) {
        if (memory.line) TRY_VOID(run(KernelOp::Copy, memory.line + at, piece.data, piece.elements, 0));  // else they are there already
        at += piece.elements;
    }
    const std::lock_guard lock(mutex_);
    ++keys_[message.key].answered;
    changed_.notify_all();
    return {};
}

}  // namespace ringside
