#include "compose/computing_memory.h"

#include <algorithm>

#include "compose/two_batch.h"

namespace foretoken {

double seconds_beside_memory(double in_memory, double on_device, double layers) {
  // The first and the last turn have nothing beside them.
  return 2 * std::max(in_memory, on_device) + std::min(in_memory, on_device) / std::max(1.0, layers);
}

StageEstimate beside_memory(const StageEstimate& whole, const StageEstimate& half, const KernelPredictor& predictor) {
  double in_memory = 0, on_device = 0, layers = 0;
  for (const TimedLaunch& one : half.launches) {
    if (!predictor.runs_in_memory(one.launch.shape)) {
      on_device += one.seconds.value;
      continue;
    }
    in_memory += one.seconds.value;
    layers += static_cast<double>(one.launch.count);
  }
  if (in_memory <= 0) return whole;
  StageEstimate result = half;
  result.padding = whole.padding;
  result.memory = whole.memory;
  for (TimedLaunch& one : result.launches) {
    one.launch.count *= 2;
    one.seconds = scaled(one.seconds, 2);
    one.work = scaled(one.work, 2);
  }
  for (Operator& call : result.calls) call.count *= 2;
  if (!half.operators.empty()) result.operators = by_operator(result.calls, result.launches);
  result.kernels = sum_of_launches(result.launches, predictor.correlations());
  const double both = seconds_beside_memory(in_memory, on_device, layers);
  DispatchTime& time = result.time;
  time.communication = 2 * half.time.communication;
  time.kernels = std::max(0.0, both - time.communication - 2 * gaps_in_launches(half));
  time.launch_gap = 2 * half.time.launch_gap;
  time.hidden_attention = 2 * (in_memory + on_device) - both;
  sum_of_halves(whole.time, half.time, time);
  if (time.seconds >= whole.time.seconds) return whole;
  result.seconds = scaled(half.seconds, time.seconds / half.seconds.value);
  return result;
}

}  // namespace foretoken
