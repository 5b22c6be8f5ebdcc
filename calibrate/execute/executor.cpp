#include "calibrate/execute/executor.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include "calibrate/comm/exchange.h"
#include "calibrate/comm/prompt_thread.h"
#include "calibrate/execute/contents.h"
#include "model/base/check.h"

namespace ringside {
namespace {

std::int64_t nowNs() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void sleepUntil(std::int64_t ns) {
    timespec until{ns / 1'000'000'000, ns % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {}
}

Time ago(std::int64_t ns, std::int64_t origin) { return Time::fromSeconds(static_cast<double>(ns - origin) * 1e-9); }

/// Parameters as the model sees them between steps, not a copy that something else is made from.
bool holdsParameters(const Buffer& buffer) {
    return buffer.persistent && !buffer.onHost && (buffer.role == BufferRole::Parameter || buffer.role == BufferRole::Shard || buffer.role == BufferRole::ParameterBucket);
}
bool holdsMasters(const Buffer& buffer) { return buffer.role == BufferRole::MasterParameter || buffer.role == BufferRole::MasterShard; }

}  // namespace

Executor::Executor(const Schedule& schedule, std::int64_t rank, std::size_t rankClass, const TrainingConfig& training, ComputeDevice& device, ExecuteOptions options)
    : schedule_(schedule), rank_(rank), class_(rankClass), program_(schedule.programs[schedule.classes[rankClass].program]), training_(training), device_(device),
      options_(std::move(options)), data_(*program_.workload, *schedule.workload, options_.seed), order_(program_) {}

Executor::~Executor() { (void)device_.synchronize(); }

Result<std::unique_ptr<Executor>> Executor::create(const Schedule& schedule, std::int64_t rank, const TrainingConfig& training, ComputeDevice& device, CommWorld* world, ExecuteOptions options) {
    CHECK(options.pace.empty() || options.pace.size() == schedule.kernels.size());
    std::unique_ptr<Executor> executor(new Executor(schedule, rank, classOf(schedule, rank), training, device, std::move(options)));
    TRY(executor->bound_, bindProgram(schedule, executor->class_, rank, training, executor->options_.hyper));
    TRY(executor->store_, TensorStore::create(device, executor->program_, executor->bound_.scratch));
    TRY_VOID(executor->createStreams());
    TRY_VOID(executor->createCommunicators(world));
    TRY_VOID(executor->initialiseParameters());
    TRY_VOID(executor->createServers(world));
    executor->findEvents();
    const std::int64_t place = schedule.axes.front().positionOf(rank);
    for (std::int64_t other = 0; other < schedule.axes.front().size; ++other) {
        const RankClass& peers = schedule.classes[classOf(schedule, rank + (other - place) * schedule.axes.front().stride)];
        const std::int64_t samples = schedule.programs[peers.program].workload->samples * training.gradAccum;
        if (other < place) executor->samplesBefore_ += samples;
        executor->firstOfRank_.push_back(executor->worldSamples_);
        executor->worldSamples_ += samples;
    }
    return executor;
}

Result<void> Executor::createStreams() {
    streams_.resize(program_.streams.size());
    for (std::size_t s = 1; s < program_.streams.size(); ++s) {
        TRY(streams_[s], device_.createStream(program_.streams[s].name));
        // What runs beside the passes is waited for by other ranks: it does not wait for a kernel's time slice.
        if (s != kComputeStream) device_.issue(streams_[s], [](const StreamContext&) { return stayPrompt(), Result<void>(); });
    }
    paceEnds_.assign(streams_.size(), 0);
    return {};
}

Result<void> Executor::createCommunicators(CommWorld* world) {
    if (schedule_.world == 1) return {};
    if (!world) return failure(ErrorCode::Usage, "run", fmt::format("the schedule has {} ranks but this process is alone; start it with --local-ranks {}, torchrun, srun or mpirun", schedule_.world, schedule_.world));
    const std::int64_t processes = processesOf(schedule_);
    if (world->size() != processes && processes > schedule_.world)
        return failure(ErrorCode::BadInput, "run", fmt::format("the schedule is for {} workers and {} servers but {} processes were started; start {}", schedule_.world, schedule_.servers.count,
                                                               world->size(), processes));
    if (world->size() != processes)
        return failure(ErrorCode::BadInput, "run", fmt::format("the schedule is for {} ranks but {} were started; give --devices {} or start as many", schedule_.world, world->size(), world->size()));
    for (std::uint32_t a = 0; a < schedule_.axes.size(); ++a) {
        const CommAxis& axis = schedule_.axes[a];
        const std::int64_t position = axis.positionOf(rank_);
        if (axis.size < 2 || position < 0 || position >= axis.size) continue;
        const RankSet group = axis.groupOf(rank_);
        std::vector<int> ranks;
        for (std::int64_t i = 0; i < group.count; ++i) ranks.push_back(static_cast<int>(group.first + i * group.stride));
        TRY(comms_[a], world->createGroup(fmt::format("{}.{}.{}", axis.name, a, ranks.front()), ranks));
    }
    return {};
}

Result<void> Executor::createServers(CommWorld* world) {
    if (schedule_.servers.count == 0) return {};
    if (device_.info().kind != "cpu")
        return failure(ErrorCode::MissingCapability, schedule_.strategy, fmt::format("parameter servers run for real on CPUs only, not on '{}'; use ps-sharded, or --device cpu", device_.info().kind));
    TRY(plan_, planServers(schedule_));
    if (processOf(schedule_, 0) == rank_) {
        TRY(server_, ParameterServer::besideRank0(schedule_, training_, program_, *store_, device_, *world, {options_.hyper, options_.seed, options_.serverPace}));
    } else {
        TRY(client_, ServerClient::connect(schedule_, plan_, rank_, *world));
    }
    return {};
}

StreamWork Executor::messageWork(TaskId t, std::int64_t step) {
    const Task& task = program_.tasks[t];
    const BoundTask& bound = bound_.tasks[t];
    std::vector<TensorPiece> pieces;
    for (std::uint32_t i = 0; i < bound.pieces; ++i) {
        const BoundPiece& piece = bound_.pieces[bound.firstPiece + i];
        pieces.push_back({static_cast<float*>(store_->at(piece.at)), piece.elements});
    }
    const std::uint32_t key = schedule_.messages[task.work].key;
    const std::int64_t round = task.periodic ? step / schedule_.period : step;
    return [this, t, key, round, pieces = std::move(pieces)](const StreamContext&) -> Result<void> {
        if (options_.progress) options_.progress(taskName(schedule_, program_.tasks[t]));
        if (program_.tasks[t].kind == TaskKind::Push) return server_ ? server_->pushHere(key, pieces) : client_->push(key, pieces);
        const ServerPlan::Worker& worker = plan_.workers[static_cast<std::size_t>(rank_)];
        const ServerMessage& message = worker.pulls[static_cast<std::size_t>(worker.pullOf[t])];
        return server_ ? server_->pullHere(message, round, pieces) : client_->pull(message, pieces);
    };
}

Result<void> Executor::initialiseParameters() {
    Contents contents(schedule_, program_, rank_);
    std::vector<float> values;
    for (BufferId b = 0; b < program_.buffers.size(); ++b) {
        if (!holdsParameters(program_.buffers[b]) && !holdsMasters(program_.buffers[b])) continue;
        for (const Segment& segment : contents.of(b)) {
            const ProgramParameter& p = program_.parameters[segment.parameter];
            values.resize(static_cast<std::size_t>(segment.count));
            data_.initialise(static_cast<std::size_t>(p.layer), p.index, segment.first, segment.count, values.data());
            device_.issue(streams_[kComputeStream], [&](const StreamContext& stream) { return device_.copyIn(stream, store_->at(inBuffer(b, segment.at * 4)), values.data(), segment.count * 4); });
            TRY_VOID(device_.synchronize());
        }
    }
    return {};
}

void Executor::findEvents() {
    needsEvent_.assign(program_.tasks.size(), false);
    previous_ = previousOnCommunicator(schedule_, program_);
    for (TaskId t = 0; t < program_.tasks.size(); ++t) {
        const Task& task = program_.tasks[t];
        for (const TaskId earlier : program_.dependenciesOf(task))
            if (program_.tasks[earlier].stream != task.stream) needsEvent_[earlier] = true;
        if (previous_[t] != kNoTask && program_.tasks[previous_[t]].stream != task.stream) needsEvent_[previous_[t]] = true;
        if (order_.mayBeAwaited(t)) needsEvent_[t] = true;
    }
    events_.resize(program_.tasks.size());
}

std::int64_t Executor::firstSample(std::int64_t step, int microStep) const { return step * worldSamples_ + samplesBefore_ + microStep * program_.workload->samples; }

std::vector<KernelCall> Executor::callsOf(TaskId t, std::int64_t step) const {
    const BoundTask& task = bound_.tasks[t];
    std::vector<KernelCall> calls;
    calls.reserve(task.calls);
    for (std::uint32_t i = 0; i < task.calls; ++i) {
        BoundCall bound = bound_.calls[task.firstCall + i];
        fillStepScalars(bound, step);
        for (std::size_t o = 0; o < bound.in.size(); ++o) bound.call.in[o] = store_->at(bound.in[o]);
        for (std::size_t o = 0; o < bound.out.size(); ++o) bound.call.out[o] = store_->at(bound.out[o]);
        calls.push_back(bound.call);
    }
    return calls;
}

StreamWork Executor::kernelWork(TaskId t, std::int64_t step) {
    std::vector<KernelCall> calls = callsOf(t, step);
    const void* loss = nullptr;
    float* lossTo = nullptr;
    for (std::size_t m = 0; m < bound_.lossTasks.size(); ++m)
        if (bound_.lossTasks[m] == t) {
            loss = store_->at(bound_.losses[m]);
            lossTo = &losses_[m];
        }
    return [this, calls = std::move(calls), loss, lossTo](const StreamContext& stream) -> Result<void> {
        for (const KernelCall& call : calls) TRY_VOID(device_.run(stream, call));
        if (loss) TRY_VOID(device_.copyOut(stream, lossTo, loss, sizeof(float)));
        return {};
    };
}

StreamWork Executor::pacedWork(TaskId t) {
    const Task& task = program_.tasks[t];
    const auto ns = static_cast<std::int64_t>(options_.pace[task.work] * 1e9);
    return [this, ns, stream = task.stream](const StreamContext&) -> Result<void> {
        // A sleep ends late; the next one of a busy stream starts counting where this one should have ended.
        constexpr std::int64_t kLate = 2'000'000;
        const std::int64_t now = nowNs();
        std::int64_t& end = paceEnds_[stream];
        end = (now - end < kLate ? end : now) + ns;
        if (end > now) sleepUntil(end);
        return {};
    };
}

Result<void> Executor::runCollective(const StreamContext& stream, Communicator& comm, const BoundCollective& work, const void* in, void* out) {
    const Reduction reduction = work.average ? Reduction::Average : Reduction::Sum;
    switch (work.op) {
        case CollectiveOp::AllReduce: return comm.allReduce(stream, out, work.elements, work.dtype, reduction);
        case CollectiveOp::AllGather: return comm.allGather(stream, in, out, work.elements, work.dtype);
        case CollectiveOp::ReduceScatter: return comm.reduceScatter(stream, in, out, work.elements, work.dtype, reduction);
        case CollectiveOp::Broadcast: return comm.broadcast(stream, out, work.elements, work.dtype, work.root);
        case CollectiveOp::Reduce: return comm.reduce(stream, out, work.elements, work.dtype, work.root, reduction);
        case CollectiveOp::SendRecv: {
            const int me = comm.rank();
            if (work.sender >= 0) {
                const int other = comm.size() == 2 ? 1 - me : (me + 1) % comm.size();
                return me == work.sender ? comm.send(stream, in, work.elements, work.dtype, other) : comm.receive(stream, out, work.elements, work.dtype, work.sender);
            }
            break;
        }
        case CollectiveOp::AllToAll: return comm.allToAll(stream, in, out, work.elements, work.dtype);
        case CollectiveOp::Gather: return gather(comm, device_, stream, in, out, work.elements, work.dtype, work.root);
        case CollectiveOp::Scatter: return scatter(comm, device_, stream, in, out, work.elements, work.dtype, work.root);
    }
    return failure(ErrorCode::MissingCapability, schedule_.strategy, fmt::format("{} cannot be run for real yet", nameOf(work.op)));
}

StreamWork Executor::collectiveWork(TaskId t, std::int64_t step) {
    struct Ready {
        const BoundCollective* work;
        Communicator* comm;
        const void* in;
        void* out;
    };
    std::vector<Ready> ready;
    const BoundTask& task = bound_.tasks[t];
    for (std::uint32_t i = 0; i < task.collectives; ++i) {
        const BoundCollective& work = bound_.collectives[task.firstCollective + i];
        const auto comm = comms_.find(work.axis);
        if (comm != comms_.end()) ready.push_back({&work, comm->second.get(), store_->at(work.in), store_->at(work.out)});
    }
    return [this, t, ready = std::move(ready), calls = callsOf(t, step)](const StreamContext& stream) -> Result<void> {
        if (options_.progress) options_.progress(taskName(schedule_, program_.tasks[t]));
        const std::uint32_t before = bound_.tasks[t].callsBefore;
        for (std::uint32_t i = 0; i < before; ++i) TRY_VOID(device_.run(stream, calls[i]));
        for (const Ready& one : ready) TRY_VOID(runCollective(stream, *one.comm, *one.work, one.in, one.out));
        for (std::size_t i = before; i < calls.size(); ++i) TRY_VOID(device_.run(stream, calls[i]));
        return {};
    };
}

void Executor::issueTask(TaskId t, std::int64_t step, const std::vector<std::vector<std::byte>>& batches, std::vector<WorkTimes>& times) {
    const Task& task = program_.tasks[t];
    allocateFor(t);
    if (task.stream != kHostStream) {
        for (const TaskId earlier : program_.dependenciesOf(task))
            if (program_.tasks[earlier].stream != task.stream && program_.tasks[earlier].stream != kHostStream) device_.wait(streams_[task.stream], events_[earlier]);
        if (previous_[t] != kNoTask && program_.tasks[previous_[t]].stream != task.stream) device_.wait(streams_[task.stream], events_[previous_[t]]);
    }
    StreamWork work;
    switch (task.kind) {
        case TaskKind::Kernel: work = options_.pace.empty() ? kernelWork(t, step) : pacedWork(t); break;
        case TaskKind::Collective: work = collectiveWork(t, step); break;
        case TaskKind::Copy:
            work = [this, to = store_->at(bound_.tasks[t].input), &batch = batches[task.microStep], step, m = task.microStep](const StreamContext& stream) -> Result<void> {
                TRY_VOID(device_.copyIn(stream, to, batch.data(), static_cast<Bytes>(batch.size())));
                return bound_.labelsOfAll ? copyLabelsOfAll(stream, step, m) : Result<void>{};
            };
            break;
        case TaskKind::HostWork:
            if (task.stream != kHostStream && schedule_.hostWorks[task.work].kind == HostWork::Kind::Fixed)
                work = [seconds = schedule_.hostWorks[task.work].amount](const StreamContext&) -> Result<void> {
                    sleepUntil(nowNs() + static_cast<std::int64_t>(seconds * 1e9));
                    return {};
                };
            break;
        case TaskKind::HostSync:
            times[t].beginNs = nowNs();
            for (const TaskId earlier : program_.dependenciesOf(task))
                if (program_.tasks[earlier].stream != kHostStream) (void)device_.waitOnHost(events_[earlier]);
            times[t].endNs = nowNs();
            break;
        case TaskKind::Push: case TaskKind::Pull: work = messageWork(t, step); break;
    }
    if (work) device_.issue(streams_[task.stream], std::move(work), options_.timed ? &times[t] : nullptr);
    if (needsEvent_[t] && task.stream != kHostStream) events_[t] = device_.record(streams_[task.stream]);
    freeAfter(t);
}

void Executor::allocateFor(TaskId t) {
    const Task& task = program_.tasks[t];
    // Whose memory goes back with this task: noted while its place is known.
    for (std::uint32_t u = task.firstUse; u < task.firstUse + task.useCount; ++u)
        if (program_.uses[u].kind == UseKind::Free) noteFree(u);
    store_->beginTask(t);
    for (const BufferUse& use : program_.usesOf(task)) {
        if (use.kind != UseKind::Allocate || !order_.tracks(use.buffer)) continue;
        for (const TaskId earlier : order_.allocated(use.buffer, store_->at(use.buffer), task.stream)) device_.wait(streams_[task.stream], events_[earlier]);
    }
}

void Executor::noteFree(std::uint32_t use) {
    const BufferId buffer = program_.uses[use].buffer;
    if (order_.tracks(buffer) && store_->isAllocated(buffer)) order_.freed(use, store_->at(buffer));
}

void Executor::freeAfter(TaskId t) {
    const Task& task = program_.tasks[t];
    // What the task itself has allocated only.
    for (std::uint32_t u = task.firstUse; u < task.firstUse + task.useCount; ++u) {
        if (program_.uses[u].kind != UseKind::Free) continue;
        const auto uses = program_.usesOf(task);
        const bool own = std::any_of(uses.begin(), uses.end(), [&](const BufferUse& use) { return use.kind == UseKind::Allocate && use.buffer == program_.uses[u].buffer; });
        if (own) noteFree(u);
    }
    store_->endTask(t);
}

Result<void> Executor::copyLabelsOfAll(const StreamContext& stream, std::int64_t step, int microStep) {
    const Bytes inputs = program_.workload->typeOf(0).values[0].bytes();
    for (std::size_t r = 0; r < firstOfRank_.size(); ++r) {
        const std::vector<std::byte> batch = data_.batch(step * worldSamples_ + firstOfRank_[r] + microStep * program_.workload->samples);
        const Bytes labels = static_cast<Bytes>(batch.size()) - inputs;
        TRY_VOID(device_.copyIn(stream, store_->at(inScratch(kLabelScratch, static_cast<Bytes>(r) * labels)), batch.data() + inputs, labels));
    }
    return {};
}

// Whoever waits for what is left out waits for what came before it on its stream.
void Executor::passOver(TaskId t) {
    const Task& task = program_.tasks[t];
    if (needsEvent_[t] && task.stream != kHostStream) events_[t] = device_.record(streams_[task.stream]);
    store_->passOver(task, t);
}

Result<ExecutedStep> Executor::runStep(std::int64_t step) {
    std::vector<std::vector<std::byte>> batches;
    const SyntheticData& data = data_;
    for (int m = 0; m < training_.gradAccum; ++m) batches.push_back(data.batch(firstSample(step, m)));
    losses_.assign(bound_.losses.size(), 0);
    std::vector<WorkTimes> times(program_.tasks.size());
    std::vector<std::int64_t> issued(program_.tasks.size());
    store_->beginStep();
    order_.beginStep();
    if (options_.progress) options_.progress(fmt::format("step {}", step + 1));
    const bool together = schedule_.servers.count == 0 || schedule_.servers.discipline == ServerDiscipline::Sync;
    if (server_) server_->allow(step + 1);
    for (auto& [axis, comm] : comms_) {
        if (!together) break;  // asynchronous workers each keep their own pace
        device_.issue(streams_[kComputeStream], [&comm = *comm](const StreamContext& stream) { return comm.barrier(stream); });
        TRY_VOID(device_.synchronize());
    }
    // A GPU's host has a core of its own; here it must not wait for a kernel's time slice to issue what comes next.
    const PromptScope issuing;
    const std::int64_t origin = nowNs();
    std::fill(paceEnds_.begin(), paceEnds_.end(), origin);
    if (client_) TRY_VOID(client_->beginStep(step));
    const bool endsRound = (step + 1) % schedule_.period == 0;
    for (TaskId t = 0; t < program_.tasks.size(); ++t) {
        issued[t] = nowNs();
        if (program_.tasks[t].periodic && !endsRound) passOver(t);
        else issueTask(t, step, batches, times);
    }
    TRY_VOID(device_.synchronize());
    if (server_) TRY_VOID(server_->waitUntilDone());
    store_->endStep();

    ExecutedStep out;
    out.seconds = static_cast<double>(nowNs() - origin) * 1e-9;
    out.losses.assign(losses_.begin(), losses_.end());
    if (!options_.timed) return out;
    out.tasks.resize(times.size());
    for (std::size_t t = 0; t < times.size(); ++t) {
        const bool ran = times[t].endNs > 0;
        const std::int64_t begin = ran ? times[t].beginNs : issued[t], end = ran ? times[t].endNs : issued[t];
        out.tasks[t] = {ago(issued[t], origin), ago(begin, origin), ago(end, origin)};
    }
    return out;
}

Result<std::vector<ParameterPart>> Executor::parameters() {
    Contents contents(schedule_, program_, rank_);
    // What a buffer holds is what was written last: with parameters that are gathered only in the next forward, that is this rank's part.
    std::vector<std::int32_t> layouts(program_.buffers.size(), -1);
    for (const BufferUse& use : program_.uses)
        if (use.kind == UseKind::Write) layouts[use.buffer] = use.layout;
    std::vector<ParameterPart> out;
    for (BufferId b = 0; b < program_.buffers.size(); ++b) {
        if (!holdsParameters(program_.buffers[b])) continue;
        // (A shard is this rank's own anyway; tasks may look at parts of it.)
        const std::int32_t layout = program_.buffers[b].role == BufferRole::ParameterBucket ? layouts[b] : -1;
        for (const Segment& segment : contents.of({b, UseKind::Read, layout})) {
            ParameterPart& part = out.emplace_back();
            part.parameter = segment.parameter;
            part.first = segment.first;
            part.values.resize(static_cast<std::size_t>(segment.count));
            device_.issue(streams_[kComputeStream], [&](const StreamContext& stream) { return device_.copyOut(stream, part.values.data(), store_->at(inBuffer(b, segment.at * 4)), segment.count * 4); });
            TRY_VOID(device_.synchronize());
        }
    }
    return out;
}

}  // namespace ringside
