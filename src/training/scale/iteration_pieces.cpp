#include "training/scale/iteration_pieces.h"

#include <algorithm>
#include <initializer_list>

#include "base/error.h"

namespace foretoken {
namespace {

// Of a layer, forward and backward; they only say how well jitter of single kernels averages out.
constexpr int64_t kernels_per_layer = 40;
constexpr int64_t tensor_meetings_per_layer = 4;
// Communication comes in so many calls besides: gradients and parameters of a stage, bucket by bucket.
constexpr int64_t data_calls = 10;

double seconds_of(const IterationEstimate& iteration, std::initializer_list<TimePart> parts) {
  double sum = 0;
  for (const TimePart part : parts) sum += iteration.parts[static_cast<size_t>(part)].value;
  return sum;
}

}  // namespace

StepPieces step_pieces(const IterationEstimate& iteration, const TrainingPlan& plan, int64_t layers) {
  ensure(layers > 0, "a model has layers");
  const int64_t layers_of_stage = std::max<int64_t>(1, layers / plan.stages());
  const double compute = seconds_of(iteration, {TimePart::linear, TimePart::attention, TimePart::experts,
                                                TimePart::passes, TimePart::recompute, TimePart::accumulate});
  return {
      .compute_seconds = compute / static_cast<double>(plan.micro_batches()),
      .kernels = kernels_per_layer * layers_of_stage,
      .meetings = tensor_meetings_per_layer * layers_of_stage,
      .micro_batches = plan.micro_batches(),
      .stages = plan.stages(),
      .virtual_stages = plan.virtual_stages,
      .tensor_ranks = plan.parallel.tensor,
      .replicas = plan.parallel.data * plan.parallel.context,
      .exposed_communication_seconds = seconds_of(
          iteration, {TimePart::tensor, TimePart::context, TimePart::expert, TimePart::sharded, TimePart::data}),
      .collectives = tensor_meetings_per_layer * layers_of_stage * plan.micro_batches() + data_calls,
      .other_seconds = seconds_of(iteration, {TimePart::host, TimePart::optimizer, TimePart::offload, TimePart::step}),
      .median_seconds = iteration.seconds.value};
}

}  // namespace foretoken
