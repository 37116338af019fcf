#include "validate/steps/step_validation.h"

namespace foretoken {

PredictedRow in_milliseconds(double measured_ms, const Estimate& seconds) {
  return {
      .measured = measured_ms, .predicted = seconds.value * 1e3, .low = seconds.low * 1e3, .high = seconds.high * 1e3};
}

}  // namespace foretoken
