#include "training/call_errors.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace foretoken {

void CallErrors::add(const Estimate& seconds, std::string_view form, std::optional<size_t> shape) {
  if (shape) {
    for (Call& other : calls_) {
      if (other.shape != shape) continue;
      other.seconds = {.value = other.seconds.value + seconds.value,
                       .low = other.seconds.low + seconds.low,
                       .high = other.seconds.high + seconds.high,
                       .kind = std::max(other.seconds.kind, seconds.kind)};
      return;
    }
  }
  calls_.push_back({.shape = shape, .form = form, .seconds = seconds});
}

void CallErrors::add(const CallErrors& others, double times, double below, double above) {
  for (const Call& call : others.calls_) {
    const Estimate& one = call.seconds;
    add(scaled({.value = one.value,
                .low = one.value - below * (one.value - one.low),
                .high = one.value + above * (one.high - one.value),
                .kind = one.kind},
               times),
        call.form, call.shape);
  }
}

Estimate CallErrors::total() const {
  KernelSum sum(*correlations_);
  for (const Call& call : calls_) sum.add(call.seconds, call.form);
  return sum.total();
}

WidthShares widths_beside(const Estimate& seconds, double beside) {
  const double now = std::max(seconds.value, beside);
  const double down = seconds.value - seconds.low, up = seconds.high - seconds.value;
  return {.below = down > 0 ? (now - std::max(seconds.low, beside)) / down : 1,
          .above = up > 0 ? (std::max(seconds.high, beside) - now) / up : 1};
}

Estimate with_stack_interval(const Estimate& composed, const RunInterval& runs, Confidence stack) {
  // Logarithms of ratios: independent ones add in quadrature.
  const auto ratio = [](double of_runs, double kernels, double kernels_of_runs) {
    const double own = portable_log(kernels), theirs = portable_log(kernels_of_runs);
    if (own <= theirs) return of_runs;
    const double fitted = portable_log(of_runs);
    return portable_exp(std::sqrt(fitted * fitted + own * own - theirs * theirs));
  };
  const double value = composed.value;
  return {.value = value,
          .low = value / ratio(1 / runs.low, value / composed.low, 1 / runs.kernels_low),
          .high = value * ratio(runs.high, composed.high / value, runs.kernels_high),
          .kind = std::max(composed.kind, stack)};
}

}  // namespace foretoken
