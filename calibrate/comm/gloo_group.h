// What gloo_world.cpp and gloo_communicator.cpp share.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "calibrate/comm/communicator.h"

namespace ringside {

class InterruptibleContext;

struct GlooGroup {
    std::string name;
    int rank = 0, size = 1;
    std::chrono::milliseconds timeout{0};
};

/// `context`: connected; null for a group of one.
std::unique_ptr<Communicator> makeGlooCommunicator(GlooGroup group, std::shared_ptr<InterruptibleContext> context);

/// Gloo's message without the place in its source.
std::string plainMessageOf(const std::exception& exception);

}  // namespace ringside
