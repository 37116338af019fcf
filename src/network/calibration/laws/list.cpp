#include "network/calibration/laws/list.h"

#include "base/kinds.h"

namespace foretoken {

// Add your line here; the name is that of the calibration files.
std::span<const LawKind> all_laws() {
  static const LawKind kinds[] = {
      {"nccl", "NCCL: all-reduce, all-gather, reduce-scatter, all-to-all", &nccl_law(), true, true},
      {"oneccl", "the same of Intel's oneCCL", &nccl_law(), true, true},
      {"custom_all_reduce", "all-reduce kernels of vLLM, SGLang and TensorRT-LLM", &custom_all_reduce_law(), false,
       false},
      {"deepep_low_latency", "DeepEP low-latency dispatch and combine", &deepep_low_latency_law(), false, false},
      {"deepep_normal", "DeepEP normal dispatch and combine", &deepep_normal_law(), false, false},
      {"expert_all_to_all", "TensorRT-LLM's MoE all-to-all", &expert_all_to_all_law(), false, false},
  };
  return kinds;
}

const LawKind* find_law(std::string_view name) {
  return find_kind(all_laws(), name);
}

}  // namespace foretoken
