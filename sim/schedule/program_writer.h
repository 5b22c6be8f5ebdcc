// ProgramWriter: appends tasks to a program, in issue order, and keeps the flat arrays consistent.
#pragma once

#include <initializer_list>
#include <utility>

#include "sim/schedule/schedule.h"

namespace ringside {

/// Usage: `TaskId t = writer.add(task); writer.dependOn(u); writer.use(buffer, UseKind::Read);` — dependencies and uses
/// belong to the task added last.
class ProgramWriter {
public:
    explicit ProgramWriter(RankProgram& program) : program_(&program) {}
    /// Good for as long as no program is added to the schedule.
    ProgramWriter(Schedule& schedule, std::uint32_t program) : program_(&schedule.programs[program]) {}

    RankProgram& program() { return *program_; }

    /// Index of `work` in one of the schedule's tables, where it is added unless an equal one is there. Looks at the latest
    /// entries only, so that it stays cheap: repeats are near each other.
    template <class Work>
    static std::uint32_t intern(std::vector<Work>& table, const Work& work) {
        constexpr std::size_t kLatest = 16;
        for (std::size_t i = table.size(); i-- > 0 && i + kLatest >= table.size();)
            if (table[i] == work) return static_cast<std::uint32_t>(i);
        table.push_back(work);
        return static_cast<std::uint32_t>(table.size() - 1);
    }

    StreamId addStream(StreamKind kind, std::string name) {
        Stream& stream = program_->streams.emplace_back();
        stream.kind = kind;
        stream.name = std::move(name);
        return static_cast<StreamId>(program_->streams.size() - 1);
    }

    TaskId add(Task task) {
        task.firstDependency = static_cast<std::uint32_t>(program_->dependencies.size());
        task.firstUse = static_cast<std::uint32_t>(program_->uses.size());
        task.dependencyCount = task.useCount = 0;
        program_->tasks.push_back(task);
        return static_cast<TaskId>(program_->tasks.size() - 1);
    }
    void dependOn(TaskId earlier) {
        program_->dependencies.push_back(earlier);
        ++program_->tasks.back().dependencyCount;
    }
    /// `layout`: what the buffer holds at this moment, where that is not what it was declared with.
    void use(BufferId buffer, UseKind kind, std::int32_t layout = -1) {
        program_->uses.push_back({buffer, kind, layout});
        ++program_->tasks.back().useCount;
    }

    BufferId addBuffer(const Buffer& buffer) {
        program_->buffers.push_back(buffer);
        return static_cast<BufferId>(program_->buffers.size() - 1);
    }
    /// Index of the layout, for Buffer::layout or use().
    std::int32_t addLayout(Layout layout) {
        program_->layouts.push_back(std::move(layout));
        return static_cast<std::int32_t>(program_->layouts.size() - 1);
    }
    TaskId last() const { return static_cast<TaskId>(program_->tasks.size() - 1); }

private:
    RankProgram* program_;
};

}  // namespace ringside
