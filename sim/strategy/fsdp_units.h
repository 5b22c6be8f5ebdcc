// FSDP units: which parameters are gathered and reduced together, in which order the units come, and how much they are padded.
//
// A unit is a module that FSDP wraps: a block, a module inside one, a layer by its name. What no other unit takes is the
// root's. Pure functions of the workload and the knobs; FSDP1 and FSDP2 differ in the padding only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/strategy/step_writer.h"

namespace ringside {

constexpr std::uint32_t kNoUnit = 0xffffffffU;

struct FsdpUnit {
    std::vector<std::uint32_t> parameters;  ///< into StepWriter::parameters, in registration order
    std::int64_t elements = 0;              ///< of the parameters, without padding
    std::size_t chunk = 0;                  ///< of the pipeline; each is a model of its own with a root
    std::int32_t layer = -1;                ///< −1: the root, which spans the whole pass
    int firstOp = -1, lastOp = -1;          ///< of the layer, where the module is only a part of it; −1: the whole layer
    bool expert = false;                    ///< its ranks are those that hold the same experts
    bool fullPrecision = false;             ///< batch norm, which mixed precision leaves in fp32
    std::uint32_t nextForward = kNoUnit;    ///< whose pre-forward comes next
    std::uint32_t nextBackward = kNoUnit;   ///< whose pre-backward comes next

    bool isRoot() const { return layer < 0; }
};

struct FsdpUnits {
    std::vector<FsdpUnit> all;                          ///< in pre-forward order, a chunk's root first
    std::vector<std::uint32_t> roots;                   ///< per chunk; kNoUnit: everything in it is wrapped
    std::vector<std::vector<std::uint32_t>> layerUnits; ///< per layer: units that span it
    std::vector<std::vector<std::uint32_t>> innerUnits; ///< per layer: units that span some of its ops
    std::vector<std::uint32_t> unitOf;                  ///< per parameter
};

struct UnitRules {
    bool batchNormApart = false;  ///< FSDP1's mixed precision
    bool expertsApart = false;    ///< experts have their own ranks
};

/// By the knobs wrap, wrap_layers and min_wrap_elements. REQUIRES: StepWriter::declareState was called. Fails (bad input)
/// where a layer does not exist, or two units would share a tied parameter.
Result<FsdpUnits> fsdpUnits(StepWriter& step, const UnitRules& rules);

/// FSDP1: elements of the flat parameter. With `alignedTo` > 0 (use_orig_params: 16 bytes) every tensor starts at a multiple of
/// it; the whole is a multiple of `ranks`.
std::int64_t flatElements(std::span<const std::int64_t> tensors, std::int64_t alignedTo, std::int64_t ranks);
/// Where each tensor begins in it.
std::vector<std::int64_t> flatPlaces(std::span<const std::int64_t> tensors, std::int64_t alignedTo);

/// FSDP2: a tensor is cut along its first dimension into ranks · ceil(rows / ranks) rows; this many a rank holds.
std::int64_t shardRows(const Shape& shape, std::int64_t ranks);
/// Elements of those rows.
std::int64_t shardElements(const Shape& shape, std::int64_t ranks);

}  // namespace ringside
