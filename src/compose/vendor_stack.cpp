#include "compose/vendor_stack.h"

#include <utility>

#include "hardware/generation.h"

namespace foretoken {

std::string stack_on(std::string_view stack, const Device& device) {
  constexpr std::pair<std::string_view, std::string_view> on_amd[] = {{"vllm", "vllm-rocm"},
                                                                      {"vllm-0.14", "vllm-rocm"},
                                                                      {"vllm-0.11", "vllm-0.10-rocm"},
                                                                      {"vllm-0.10", "vllm-0.10-rocm"},
                                                                      {"sglang", "sglang-rocm"}};
  if (kernel_generation(device).amd) {
    for (const auto& [name, form] : on_amd) {
      if (name == stack) return std::string(form);
    }
  }
  return std::string(stack);
}

}  // namespace foretoken
