#include "network/calibration/expert_kernels.h"

#include <fmt/format.h>

#include "base/kinds.h"

namespace foretoken {
namespace {

constexpr std::string_view deepep_dtypes[] = {"fp8"};
constexpr std::string_view trtllm_dtypes[] = {"bf16", "fp8", "nvfp4"};

double trtllm_bytes(std::string_view dtype) {
  if (dtype == "fp8") return 1;
  return dtype == "nvfp4" ? nvfp4_bytes : bf16_bytes;
}

}  // namespace

// Add your line here; the name is what users type.
std::span<const ExpertKernel> all_expert_kernels() {
  static const ExpertKernel kernels[] = {
      {"deepep-low-latency", "DeepEP, every token straight to each of its experts", "deepep_low_latency", deepep_dtypes,
       false},
      {"deepep-normal", "DeepEP, a token once to each rank it reaches", "deepep_normal", deepep_dtypes, true},
      {"trtllm", "TensorRT-LLM's two-sided all-to-all over NVLink", "expert_all_to_all", trtllm_dtypes, false},
  };
  return kernels;
}

const ExpertKernel* find_expert_kernel(std::string_view name) {
  return find_kind(all_expert_kernels(), name);
}

std::vector<CommunicationCall> expert_calls(const ExpertKernel& kernel, ExpertDirection direction,
                                            std::string_view dtype, int64_t ranks, int64_t nodes,
                                            const ExpertTraffic& traffic) {
  const bool dispatches = direction == ExpertDirection::dispatch;
  CommunicationCall call{.law = std::string(kernel.law),
                         .operation = "",
                         .variant = "",
                         .ranks = ranks,
                         .nodes = nodes,
                         .expert = traffic};
  if (kernel.law != "expert_all_to_all") {
    call.operation = dispatches ? "dispatch" : "combine";
    call.expert.bytes_per_value = dispatches ? deepep_fp8_bytes : bf16_bytes;
    if (kernel.takes_processors && traffic.processors == 0) call.expert.processors = usual_deepep_processors;
    return {call};
  }
  const std::string_view type = dtype == "bf16" ? "bfloat16" : dtype;
  call.variant = type;
  call.nodes = 1;  // all ranks are in one NVLink domain; hosts do not matter
  if (!dispatches) {
    call.operation = "NVLinkTwoSided alltoall_combine";
    call.expert.bytes_per_value = bf16_bytes;
    return {call};
  }
  CommunicationCall prepare = call;
  prepare.operation = "NVLinkTwoSided alltoall_prepare";
  prepare.expert.bytes_per_value = 0;
  call.operation = fmt::format("NVLinkTwoSided alltoall_dispatch {}", type);
  call.expert.bytes_per_value = trtllm_bytes(dtype);
  return {prepare, call};
}

}  // namespace foretoken
