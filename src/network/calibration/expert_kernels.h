// Kernels that carry tokens to their experts and back -> the calls that were measured of them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "network/calibration/communication_call.h"

namespace foretoken {

// Bytes of a value as sent: fp8 with a scale for each 128 values, nvfp4 with one for each 16, bf16.
inline constexpr double deepep_fp8_bytes = 1 + 4.0 / 128, nvfp4_bytes = 0.5 + 1.0 / 16, bf16_bytes = 2;

inline constexpr int64_t usual_deepep_processors = 20;  // Buffer.set_num_sms() where nobody calls it

enum class ExpertDirection { dispatch, combine };

struct ExpertKernel {
  std::string_view name;
  std::string_view summary;
  std::string_view law;
  std::span<const std::string_view> dispatch_dtypes;  // number formats of dispatched tokens, the usual one first
  bool takes_processors;                              // the caller says how many SMs it may use
};

std::span<const ExpertKernel> all_expert_kernels();
const ExpertKernel* find_expert_kernel(std::string_view name);

// The kernel's calls, one behind the other: TensorRT-LLM prepares a dispatch in a call of its own. `dtype` is one of
// the kernel's; tokens come back in bf16. Bytes of a value are filled in, and the processors where 0 leaves them to the
// library.
std::vector<CommunicationCall> expert_calls(const ExpertKernel& kernel, ExpertDirection direction,
                                            std::string_view dtype, int64_t ranks, int64_t nodes,
                                            const ExpertTraffic& traffic);

}  // namespace foretoken
