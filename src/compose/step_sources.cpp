#include "compose/step_sources.h"

namespace foretoken {
namespace {

double& source_of(StepSources& sources, const TimedOperator& timed) {
  if (!timed.kernel) return timed.seconds.kind <= Confidence::interpolated ? sources.measured : sources.sheets;
  switch (timed.kernel->tier) {
    case Tier::measured:
      return sources.measured;
    case Tier::mapped:
      return sources.mapped;
    case Tier::cross:
    case Tier::sibling:
      return sources.other_devices;
    default:
      return sources.sheets;
  }
}

}  // namespace

StepSources sources_of(const StepEstimate& step) {
  StepSources sources;
  double total = 0;
  for (const StageEstimate& stage : step.stages) {
    for (const TimedOperator& timed : stage.operators) {
      source_of(sources, timed) += timed.seconds.value;
      total += timed.seconds.value;
    }
  }
  if (total == 0) return sources;
  for (double* share : {&sources.measured, &sources.other_devices, &sources.mapped, &sources.sheets}) *share /= total;
  return sources;
}

}  // namespace foretoken
