// The figures of a Profile by key: one table that reading, writing, setting and checking share.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/cost/profile.h"

namespace ringside {

struct ProfileField {
    std::string_view key;
    Figure Profile::*figure;
    double min, max;  ///< range of the value
};

inline constexpr double kMaxEfficiency = 1.5;  ///< above 1 where boost clocks beat the datasheet
inline constexpr double kMaxProfileUs = 1e7;   ///< ten seconds
inline constexpr double kMaxProfileBytes = 1e12;

inline constexpr std::array kProfileFields{
    ProfileField{"sustained_clock", &Profile::sustainedClock, 0.01, 1.0},
    ProfileField{"device_variation", &Profile::deviceVariation, 0, 0.5},
    ProfileField{"convolution_efficiency", &Profile::convolutionEfficiency, 0.001, kMaxEfficiency},
    ProfileField{"winograd_gain", &Profile::winogradGain, 0.1, 4.0},
    ProfileField{"transposed_share", &Profile::transposedShare, 0, 1},
    ProfileField{"elements_per_clock", &Profile::elementsPerClock, 0.01, 1e4},
    ProfileField{"attention_forward_efficiency", &Profile::attentionForwardEfficiency, 0.001, kMaxEfficiency},
    ProfileField{"attention_backward_efficiency", &Profile::attentionBackwardEfficiency, 0.001, kMaxEfficiency},
    ProfileField{"flash1_attention", &Profile::flash1Attention, 0.001, 10},
    ProfileField{"flash3_attention", &Profile::flash3Attention, 0.001, 10},
    ProfileField{"flash4_attention", &Profile::flash4Attention, 0.001, 10},
    ProfileField{"gather_efficiency", &Profile::gatherEfficiency, 0.001, 10},
    ProfileField{"fp8_attention", &Profile::fp8Attention, 0.001, 10},
    ProfileField{"memory_efficiency", &Profile::memoryEfficiency, 0.001, kMaxEfficiency},
    ProfileField{"kernel_fixed_us", &Profile::kernelFixedUs, 0, kMaxProfileUs},
    ProfileField{"launch_us", &Profile::launchUs, 0, kMaxProfileUs},
    ProfileField{"huggingface_launch", &Profile::huggingfaceLaunch, 0, 1000},
    ProfileField{"transformer_engine_launch", &Profile::transformerEngineLaunch, 0, 1000},
    ProfileField{"further_launch", &Profile::furtherLaunch, 0, 1000},
    ProfileField{"arm_host", &Profile::armHost, 0.01, 100},
    ProfileField{"profiled_launch", &Profile::profiledLaunch, 0, 1000},
    ProfileField{"collective_launch_us", &Profile::collectiveLaunchUs, 0, kMaxProfileUs},
    ProfileField{"host_step_us", &Profile::hostStepUs, 0, kMaxProfileUs},
    ProfileField{"copy_efficiency", &Profile::copyEfficiency, 0.001, kMaxEfficiency},
    ProfileField{"host_memory_gb_per_s", &Profile::hostMemoryGbPerS, 0.01, 1e6},
    ProfileField{"storage_gb_per_s", &Profile::storageGbPerS, 0.001, 1e5},
    ProfileField{"context_bytes", &Profile::contextBytes, 0, kMaxProfileBytes},
    ProfileField{"nccl_bytes", &Profile::ncclBytes, 0, kMaxProfileBytes},
    ProfileField{"collective_bandwidth_factor", &Profile::collectiveBandwidth, 0.001, 1000},
    ProfileField{"collective_latency_factor", &Profile::collectiveLatency, 0, 1000},
    ProfileField{"collective_call_us", &Profile::collectiveCallUs, 0, kMaxProfileUs},
    ProfileField{"collective_hop_ll", &Profile::collectiveHopLl, 0, 1000},
    ProfileField{"collective_hop_ll128", &Profile::collectiveHopLl128, 0, 1000},
    ProfileField{"collective_hop_simple", &Profile::collectiveHopSimple, 0, 1000},
    ProfileField{"collective_link_efficiency", &Profile::collectiveLinkEfficiency, 0.001, 10},
    ProfileField{"collective_network_efficiency", &Profile::collectiveNetworkEfficiency, 0.001, 10},
    ProfileField{"collective_idle_step", &Profile::collectiveIdleStep, 0, 10},
    ProfileField{"collective_ramp_us", &Profile::collectiveRampUs, 0, kMaxProfileUs},
    ProfileField{"nvls_step_us", &Profile::nvlsStepUs, 0, kMaxProfileUs},
    ProfileField{"nvls_efficiency", &Profile::nvlsEfficiency, 0.001, 10},
    ProfileField{"all_to_all_peer_us", &Profile::allToAllPeerUs, 0, kMaxProfileUs},
    ProfileField{"all_to_all_efficiency", &Profile::allToAllEfficiency, 0.001, 10},
    ProfileField{"all_to_all_small_part", &Profile::allToAllSmallPart, 0.001, 1},
    ProfileField{"all_to_all_uneven", &Profile::allToAllUneven, 0.001, 1},
    ProfileField{"several_ranks", &Profile::severalRanks, 0.1, 10},
    ProfileField{"interference", &Profile::interference, 0, 0.95},
    ProfileField{"model_spread_device", &Profile::modelSpreadDevice, 0, 2},
    ProfileField{"model_spread_node", &Profile::modelSpreadNode, 0, 2},
    ProfileField{"model_spread_network", &Profile::modelSpreadNetwork, 0, 2},
    ProfileField{"model_spread_mesh", &Profile::modelSpreadMesh, 0, 2},
    ProfileField{"model_spread_memory", &Profile::modelSpreadMemory, 0, 2},
};

inline constexpr std::string_view kGemmEfficiencyPrefix = "gemm_efficiency.";
inline constexpr std::array kArithmeticTypes{DType::Fp64, DType::Fp32, DType::Tf32, DType::Fp16, DType::Bf16, DType::Fp8, DType::Int8};

inline std::optional<DType> arithmeticTypeByName(std::string_view name) {
    for (const DType type : kArithmeticTypes)
        if (nameOf(type) == name) return type;
    return std::nullopt;
}

}  // namespace ringside
