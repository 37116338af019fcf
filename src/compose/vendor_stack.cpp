#include "compose/vendor_stack.h"

#include "hardware/software.h"

namespace foretoken {

Stack stack_on(const Device& device, const std::string& name, const StackFinder& find) {
  Stack stack = find(name);
  const Platform* const platform = platform_of(device);
  if (platform == nullptr) return stack;
  const auto form = stack.on.find(platform->name);
  return form == stack.on.end() ? stack : find(form->second);
}

}  // namespace foretoken
