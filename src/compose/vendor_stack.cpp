#include "compose/vendor_stack.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "hardware/software.h"

namespace foretoken {
namespace {

// GPUs whose host is a Grace CPU. Its cores take longer for Python than those of x86 servers, on which stacks were
// measured: SGLang 0.5.15 with DeepSeek-V4-Flash on B300 and GB300 and SGLang 0.5.12 with GLM-4.7 on B200 and GB200
// (the same GPUs, SGLang's cookbook) take 0.85 to 2.3 times as long where the host decides, 1.5 in the mean of ten
// points.
constexpr std::string_view devices_with_grace[] = {"gb200", "gb300", "gh200", "gh200_144gb"};
constexpr double grace_factor = 1.5;

void slow_down_host(Stack& stack, double factor) {
  StackCosts& costs = stack.costs;
  costs.step_host = costs.step_host * factor;
  costs.piece = costs.piece * factor;
  for (auto& [family, seconds] : costs.host) seconds = seconds * factor;
  for (Seconds* const part : {&costs.front.latency, &costs.front.request, &costs.front.token}) *part = *part * factor;
  for (StackRule& rule : stack.rules) rule.host = rule.host * factor;
}

}  // namespace

Stack stack_on(const Device& device, const std::string& name, const StackFinder& find) {
  Stack stack = find(name);
  if (const Platform* const platform = platform_of(device)) {
    const auto form = stack.on.find(platform->name);
    if (form != stack.on.end()) stack = find(std::string(form->second));
  }
  const auto* const grace = std::find(std::begin(devices_with_grace), std::end(devices_with_grace), device.name);
  // A file of the user's own says what its host takes.
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".json");
  if (grace != std::end(devices_with_grace) && !is_file) slow_down_host(stack, grace_factor);
  return stack;
}

}  // namespace foretoken
