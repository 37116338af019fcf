#include "compose/captured_sizes.h"

#include <algorithm>

namespace foretoken {

void capture_up_to(Stack& stack, int64_t largest) {
  std::vector<int64_t>& sizes = stack.graph_sizes;
  const int64_t last_step = sizes.size() < 2 ? 0 : sizes.back() - sizes[sizes.size() - 2];
  std::erase_if(sizes, [&](int64_t size) { return size > largest; });
  while (last_step > 0 && !sizes.empty() && sizes.back() + last_step <= largest) {
    sizes.push_back(sizes.back() + last_step);
  }
}

void run_uncompiled(Stack& stack) {
  stack.graph_sizes.clear();
  for (auto& [phase, dispatch] : stack.dispatch) dispatch = Dispatch::eager;
  if (!stack.costs.uncompiled) return;
  const UncompiledHost& uncompiled = *stack.costs.uncompiled;
  // Never less than what a launch costs where other steps are compiled.
  const auto usual = stack.costs.host.find("default");
  const Seconds least = usual == stack.costs.host.end() ? Seconds(0) : usual->second;
  for (const auto& [kind, time] : uncompiled.host) {
    Seconds& cost = stack.costs.host.try_emplace(kind, least).first->second;
    cost = std::max(cost, time);
  }
  stack.costs.host_low = uncompiled.host_low;
  stack.costs.host_high = uncompiled.host_high;
}

}  // namespace foretoken
