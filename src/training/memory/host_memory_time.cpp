#include "training/memory/host_memory_time.h"

#include <algorithm>
#include <array>
#include <vector>

#include "training/schedule/pipeline_schedule.h"

namespace foretoken {
namespace {

// Time over which one stage sends activations out, or gets them back, beyond what its computing hides.
double exposed_activations(const TrainingMemory& memory, double forward, double backward, double link) {
  const double way = memory.offloaded.value() / link;
  return std::max(0.0, way - forward) + std::max(0.0, way - backward);
}

double streamed_seconds(const PlanMemory& memory, const TrainingPlan& plan, const PipelineWork& work, double link) {
  std::vector<double> forward(memory.stages.size(), 0), backward = forward;
  for (size_t chunk = 0; chunk < work.chunks.size(); ++chunk) {
    const auto stage = static_cast<size_t>(stage_of_chunk(plan.schedule, work, static_cast<int64_t>(chunk)));
    forward[stage] += work.chunks[chunk].forward;
    backward[stage] += work.chunks[chunk].backward_input + work.chunks[chunk].backward_weight;
  }
  double longest = 0;
  for (size_t stage = 0; stage < memory.stages.size(); ++stage) {
    // Weights come for the forward and for the backward pass.
    const double weights = 2 * memory.stages[stage].away_parameters.value() / link;
    const double exposed = exposed_activations(memory.stages[stage], forward[stage], backward[stage], link) +
                           std::max(0.0, weights - forward[stage] - backward[stage]);
    longest = std::max(longest, static_cast<double>(plan.micro_batches()) * exposed);
  }
  return longest;
}

}  // namespace

HostMemoryTime host_memory_time(const PlanMemory& memory, const TrainingPlan& plan, const TrainingFormats& formats,
                                const PipelineWork& work, const HostMemoryLink& host) {
  HostMemoryTime time;
  if (formats.offloaded_activations > 0 || formats.offloaded_parameters > 0) {
    time.streamed = streamed_seconds(memory, plan, work, host.link.value());
  }
  if (formats.offloaded_optimizer > 0) {
    time.spared = formats.offloaded_optimizer;
    time.optimizer = offload_seconds(memory.most(), offloaded_optimizer(plan, time.spared), host);
  }
  return time;
}

void add_host_memory_time(IterationEstimate& iteration, const HostMemoryTime& time) {
  if (time.streamed <= 0 && time.spared <= 0) return;
  const auto part = [&](TimePart one) -> Estimate& { return iteration.parts[static_cast<size_t>(one)]; };
  const double before = iteration.seconds.value;
  const double left = time.seconds_before_optimizer(before, part(TimePart::optimizer).value);
  part(TimePart::optimizer) = scaled(part(TimePart::optimizer), 1 - time.spared);
  Estimate& offload = part(TimePart::offload);
  offload.value += time.streamed + time.optimizer.value;
  offload.low += time.streamed + time.optimizer.low;
  offload.high += time.streamed + time.optimizer.high;
  offload.kind = std::max(offload.kind, time.optimizer.kind);
  for (Estimate* whole : {&iteration.seconds, &iteration.composed}) {
    *whole = sum_of_independent(std::array{scaled(*whole, left / before), time.optimizer});
  }
  const double factor = iteration.seconds.value / before;
  iteration.tokens_per_second /= factor;
  iteration.tokens_per_second_per_device /= factor;
}

}  // namespace foretoken
