// What full recompute keeps of each block goes to host memory and back (offload_activations).
#include <algorithm>

#include "sim/strategy/step_writer.h"
#include "sim/strategy/zero_offload.h"

namespace ringside {

// As torchtune's OffloadActivations: the copy starts at once on a stream of its own, and the device lets go of an input when it is out; but not more
// than five are under way, then the compute stream waits for the oldest.
void StepWriter::offloadCheckpoint(std::size_t layer) {
    constexpr std::size_t kUnderWay = 5;
    if (offloadStream_ == 0) offloadStream_ = writer_.addStream(StreamKind::Copy, "activations");
    const BufferId input = layerInput(layer);
    const Value& value = workload_.typeOf(layer).values.front();
    Offloaded& mine = offloaded_[layer];
    if (mine.host == kNoBuffer) {
        Buffer host{value.bytes(), MemoryCategory::Activations, BufferRole::Value, value.dtype, true, false, static_cast<std::int32_t>(layer), 0};
        host.onHost = true;
        mine.host = addBuffer(host);
    }
    if (underWay_.size() == kUnderWay) letGoOfOldest();
    const TaskId before = lastCompute_;
    mine.copy = copy(offloadStream_, Phase::Forward, TaskRole::OffloadToHost, {CopyWork::Direction::DeviceToHost, value.bytes(), devicesSharingUplink(input_.cluster)}, static_cast<std::uint16_t>(layer));
    if (hasCompute_) writer_.dependOn(before);
    writer_.use(input, UseKind::Read);
    writer_.use(mine.host, UseKind::Write);
    mine.onDevice = true;
    underWay_.push_back(layer);
}

void StepWriter::letGoOfOldest() {
    const std::size_t layer = underWay_.front();
    underWay_.erase(underWay_.begin());
    waitOnCompute(offloaded_[layer].copy);
    offloaded_[layer].onDevice = false;
    release(valueBuffer(layer, 0));
}

// Back on the device before its block runs again; one of the last few is still there.
void StepWriter::restoreCheckpoint(std::size_t layer) {
    Offloaded& mine = offloaded_[layer];
    if (mine.onDevice) {
        underWay_.erase(std::find(underWay_.begin(), underWay_.end(), layer));
        return;
    }
    const Value& value = workload_.typeOf(layer).values.front();
    const BufferId back = addBuffer({value.bytes(), MemoryCategory::Activations, BufferRole::Value, value.dtype, false, false, static_cast<std::int32_t>(layer), 0});
    const TaskId before = lastCompute_;
    const TaskId task = copy(offloadStream_, Phase::Backward, TaskRole::OffloadToDevice, {CopyWork::Direction::HostToDevice, value.bytes(), devicesSharingUplink(input_.cluster)}, static_cast<std::uint16_t>(layer));
    writer_.dependOn(before);
    writer_.use(back, UseKind::Allocate);
    writer_.use(mine.host, UseKind::Read);
    writer_.use(back, UseKind::Write);
    hold(back);
    values()[valueOffset_[layer]] = back;
    waitOnCompute(task);
}

}  // namespace ringside
