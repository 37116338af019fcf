#include "training/schedule/task_seconds.h"

#include <algorithm>
#include <cmath>

namespace foretoken {
namespace {

double on_grid(double seconds, double longest) {
  constexpr int grid_bits = 34;
  if (longest <= 0) return seconds;
  const int exponent = grid_bits - std::ilogb(longest);
  return std::ldexp(std::nearbyint(std::ldexp(seconds, exponent)), -exponent);
}

}  // namespace

TaskSeconds::TaskSeconds(const PipelineWork& work) {
  double longest = std::max(work.send_forward, work.send_backward);
  for (const ChunkTimes& times : work.chunks) {
    longest = std::max({longest, times.forward, times.backward_input, times.backward_weight});
  }
  for (const ChunkTimes& times : work.chunks) {
    std::array<PerKind, 2> rounded{};
    for (size_t paired = 0; paired < rounded.size(); ++paired) {
      const double share = paired == 0 ? 1 : work.overlapped_pair;
      const double forward = on_grid(share * times.forward, longest);
      const double input = on_grid(share * times.backward_input, longest);
      const double weight = on_grid(share * times.backward_weight, longest);
      PerKind& seconds = rounded[paired];
      seconds[static_cast<size_t>(PipelineTaskKind::forward)] = forward;
      seconds[static_cast<size_t>(PipelineTaskKind::backward)] = input + weight;
      seconds[static_cast<size_t>(PipelineTaskKind::backward_input)] = input;
      seconds[static_cast<size_t>(PipelineTaskKind::backward_weight)] = weight;
    }
    seconds_.push_back(rounded);
  }
  send_forward_ = on_grid(work.send_forward, longest);
  send_backward_ = on_grid(work.send_backward, longest);
}

}  // namespace foretoken
