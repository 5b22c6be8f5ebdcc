// The part of StepWriter that writes collectives piece by piece, beside the product that the pieces belong to (Op::forwardPieces).
#include "sim/strategy/step_writer.h"

namespace ringside {

void StepWriter::gatherInPieces(std::size_t layer, int op, const OpCollective& whole, int pieces, Phase phase, TaskId after, const std::function<void()>& begin) {
    const OpCollective piece{CollectiveOp::SendRecv, whole.axis, whole.elements / pieces, whole.dtype};
    for (int i = 0; i + 1 < pieces; ++i) {
        arrivals_.push_back(opCollective(layer, op, piece, phase, TaskRole::RingExchange, static_cast<std::uint16_t>(i), after));
        begin();
    }
}

void StepWriter::scatterInPieces(std::size_t layer, int op, const OpCollective& whole, int pieces, Phase phase, const std::function<void()>& begin) {
    const OpCollective piece{whole.op, whole.axis, whole.elements / pieces, whole.dtype};
    for (std::size_t i = 0; i < static_cast<std::size_t>(pieces); ++i) {
        const TaskId task = opCollective(layer, op, piece, phase, TaskRole::OpCollective, static_cast<std::uint16_t>(i), pieces_[i]);
        begin();
        if (i + 1 == static_cast<std::size_t>(pieces)) waitOnCompute(task);
    }
}

void StepWriter::awaitPiece(std::size_t i) {
    if (i >= 1 && i <= arrivals_.size()) waitOnCompute(arrivals_[i - 1]);
}

void StepWriter::awaitPieces() {
    waitOnCompute(arrivals_);
    arrivals_.clear();
}

}  // namespace ringside
