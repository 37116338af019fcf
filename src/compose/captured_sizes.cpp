#include "compose/captured_sizes.h"

namespace foretoken {

void capture_up_to(Stack& stack, int64_t largest) {
  std::vector<int64_t>& sizes = stack.graph_sizes;
  const int64_t last_step = sizes.size() < 2 ? 0 : sizes.back() - sizes[sizes.size() - 2];
  std::erase_if(sizes, [&](int64_t size) { return size > largest; });
  while (last_step > 0 && !sizes.empty() && sizes.back() + last_step <= largest) {
    sizes.push_back(sizes.back() + last_step);
  }
}

}  // namespace foretoken
