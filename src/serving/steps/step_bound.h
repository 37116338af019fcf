// Both ends of the step times' intervals, for runs that take one of them throughout.
#pragma once

#include <cstdint>

#include "base/estimate.h"

namespace foretoken {

// Which bound of the step times the run takes.
enum class StepBound : uint8_t { value, low, high };

inline double at_bound(const Estimate& estimate, StepBound bound) {
  return bound == StepBound::value ? estimate.value : bound == StepBound::low ? estimate.low : estimate.high;
}

}  // namespace foretoken
