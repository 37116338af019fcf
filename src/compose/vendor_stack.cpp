#include "compose/vendor_stack.h"

#include "hardware/catalogue.h"
#include "hardware/software.h"

namespace foretoken {

Stack on_host(Stack stack, double factor) {
  StackCosts& costs = stack.costs;
  costs.step_host = costs.step_host * factor;
  costs.piece = costs.piece * factor;
  for (auto& [family, seconds] : costs.host) seconds = seconds * factor;
  if (costs.uncompiled) {
    for (auto& [family, seconds] : costs.uncompiled->host) seconds = seconds * factor;
  }
  FrontCosts& front = costs.front;
  for (Seconds* const part :
       {&front.latency, &front.request, &front.token, &front.piece, &front.piece_low, &front.piece_high}) {
    *part = *part * factor;
  }
  for (StackRule& rule : stack.rules) rule.host = rule.host * factor;
  return stack;
}

Stack stack_on(const Device& device, const std::string& name, const StackFinder& find) {
  Stack stack = find(name);
  if (const Platform* const platform = platform_of(device)) {
    const auto form = stack.on.find(platform->name);
    if (form != stack.on.end()) stack = find(std::string(form->second));
  }
  // A file of the user's own says what its host takes.
  if (device.host_time_factor && !HardwareCatalogue::is_path(name))
    return on_host(std::move(stack), device.host_time_factor->value);
  return stack;
}

}  // namespace foretoken
