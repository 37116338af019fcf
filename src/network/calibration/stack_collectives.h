// A collective of a model step, as a software stack runs it -> seconds.
#pragma once

#include <optional>
#include <string_view>

#include "hardware/device.h"
#include "model/shapes.h"
#include "network/calibration/communication_predictor.h"

namespace foretoken {

// The call as NCCL's sweeps know it, of the newest version that was measured, in bf16 or fp16; nothing for other kinds
// of collectives and for no bytes.
std::optional<CommunicationCall> nccl_call(const CollectiveShape& collective);

// An engine's own all-reduce kernel (engine_kernels), of the newest version that was measured, in bf16: inside a CUDA
// graph, or launched one by one (eager).
inline constexpr std::string_view engine_kernels[] = {"vllm", "sglang", "trtllm"};
CommunicationCall engine_all_reduce_call(std::string_view kernel, bool eager, int64_t ranks, double bytes);

// The laws that the next function asks for: a step need not read those of expert traffic.
inline constexpr std::string_view step_laws[] = {"nccl", "oneccl", "custom_all_reduce"};

// `kernel` is the stack's all-reduce kernel (vllm, sglang, trtllm), empty = NCCL, which runs all other collectives too:
// of the newest version that was measured. Engines send bf16. The law of collective.h (start-up and wire time) where
// `predictor` is null or has nothing: other kinds of collectives, devices and libraries, groups larger than the
// device's NVLink domain or PCIe host.
Estimate stack_collective_seconds(const CollectiveShape& collective, std::string_view kernel, const Device& device,
                                  const CommunicationPredictor* predictor);

// Processors that a communication kernel keeps from compute that runs beside it. A channel of NCCL is one thread block,
// which holds one SM: at most 24 (NCCL 2.2x on NVLink), and no more than one for each 64 KiB, below which NCCL opens
// fewer. DeepEP's normal kernels use what they are given (20 of an H800's 132 in DeepSeek-V3's report, section 3.2.2);
// its low-latency kernels, while they last, use all.
double busy_processors(const CommunicationCall& call, const SystemTraits& system);

// How many times longer compute takes that overlaps with it: processors / (processors - busy).
double overlap_slowdown(const CommunicationCall& call, const SystemTraits& system);

}  // namespace foretoken
