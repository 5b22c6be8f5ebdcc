#include "calibrate/execute/server_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "calibrate/execute/contents.h"

namespace ringside {

std::int64_t processOf(const Schedule& schedule, std::int64_t server) { return schedule.servers.placement == ServerPlacement::Nodes ? schedule.world + server : 0; }

std::int64_t processesOf(const Schedule& schedule) {
    const bool dedicated = schedule.servers.count > 0 && schedule.servers.placement == ServerPlacement::Nodes;
    return schedule.world + (dedicated ? schedule.servers.count : 0);
}

KeyPart ServerPlan::partOf(std::uint32_t key, std::int64_t server) const {
    const std::int64_t share = (elements[key] + servers - 1) / servers, first = std::min(server * share, elements[key]);
    return {first, std::min(share, elements[key] - first)};
}

std::string channelName(const char* what, std::int64_t worker, std::int64_t server) { return fmt::format("server.{}.{}.{}", what, worker, server); }

namespace {

/// The parameters that a push carries, in order.
std::vector<std::uint32_t> parametersOf(Contents& contents, const RankProgram& program, const Task& push) {
    std::vector<std::uint32_t> out;
    for (const BufferUse& use : program.usesOf(push))
        if (use.kind == UseKind::Read)
            for (const Segment& segment : contents.of(use)) out.push_back(segment.parameter);
    return out;
}

}  // namespace

Result<ServerPlan> planServers(const Schedule& schedule) {
    ServerPlan plan;
    plan.servers = schedule.servers.count;
    const std::size_t keys = schedule.servers.keys.size();
    plan.elements.resize(keys);
    plan.parameters.resize(keys);
    for (std::int64_t rank = 0; rank < schedule.world; ++rank) {
        const RankProgram& program = schedule.programs[schedule.classes[classOf(schedule, rank)].program];
        Contents contents(schedule, program, rank);
        ServerPlan::Worker& worker = plan.workers.emplace_back();
        worker.pullOf.assign(program.tasks.size(), -1);
        std::vector<std::int64_t> pushes(keys);
        for (std::size_t t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            if (task.kind != TaskKind::Push && task.kind != TaskKind::Pull) continue;
            const std::uint32_t key = schedule.messages[task.work].key;
            if (task.kind == TaskKind::Pull) {
                worker.pullOf[t] = static_cast<std::int64_t>(worker.pulls.size());
                worker.pulls.push_back({key, task.periodic, pushes[key], 0});
                continue;
            }
            worker.pushes.push_back({key, task.periodic, pushes[key]++, 0});
            const std::vector<std::uint32_t> carried = parametersOf(contents, program, task);
            if (plan.parameters[key].empty()) {
                plan.parameters[key] = carried;
                for (const std::uint32_t p : carried) plan.elements[key] += program.parameters[p].elements;
            }
            if (carried != plan.parameters[key])
                return failure(ErrorCode::MissingCapability, schedule.strategy, fmt::format("rank {} pushes other tensors under key {} than rank 0 does; this cannot be run for real", rank, key));
        }
        for (ServerMessage& pull : worker.pulls) pull.pushes = pushes[pull.key];
    }
    return plan;
}

}  // namespace ringside
