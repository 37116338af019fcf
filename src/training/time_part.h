// Where the time of a training step goes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace foretoken {

// Where a step's time goes, on the stage that works longest.
enum class TimePart : uint8_t {
  linear,
  attention,
  experts,
  passes,      // over memory: norms, activations, loss, casts, moving tokens to experts
  recompute,   // forward again in the backward pass
  accumulate,  // adding gradients of micro-batches
  tensor,      // communication that is not hidden, by group
  context,
  expert,
  sharded,  // gathers of sharded parameters
  host,     // the device waits for the host
  bubble,   // the stage waits for others
  data,     // gradients and parameters, once a step
  optimizer,
  offload,  // to and from host memory
  step,     // what comes once a step besides
};
inline constexpr size_t time_part_count = 16;
using TimeParts = std::array<double, time_part_count>;
std::string_view time_part_name(TimePart part);
std::string_view time_part_meaning(TimePart part);

inline double& at(TimeParts& parts, TimePart part) {
  return parts[static_cast<size_t>(part)];
}
inline double at(const TimeParts& parts, TimePart part) {
  return parts[static_cast<size_t>(part)];
}
void add_parts(TimeParts& sum, const TimeParts& parts, double times);

}  // namespace foretoken
