// Errors of kernels and collectives on their way from calls to a step.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "kernel/error_correlation.h"
#include "training/training_stack.h"

namespace foretoken {

// Calls of one rank, one after the other. Calls of one shape are off by the same share, wherever they run; the others
// go together as the device's calibration says, collectives like a form of kernels. Names of forms and correlations
// must outlive it.
class CallErrors {
 public:
  explicit CallErrors(const ErrorCorrelations& correlations) : correlations_(&correlations) {}

  // `shape` numbers the shapes of calls; nothing: like no other call.
  void add(const Estimate& seconds, std::string_view form, std::optional<size_t> shape = std::nullopt);
  // Shares of the widths that reach the step: less where calls and something else run side by side.
  void add(const CallErrors& others, double times, double below = 1, double above = 1);
  Estimate total() const;

 private:
  struct Call {
    std::optional<size_t> shape;
    std::string_view form;
    Estimate seconds;
  };
  const ErrorCorrelations* correlations_;
  std::vector<Call> calls_;
};

// The larger of `seconds` and what runs beside it: the shares of its widths that are left.
struct WidthShares {
  double below = 1, above = 1;
};
WidthShares widths_beside(const Estimate& seconds, double beside);

// A step's interval: that of the stack's runs, which holds the errors of their own kernels; beyond it, as far as the
// kernels of this step are less certain than theirs. Never narrower than the stack's. The confidence is the weaker one.
Estimate with_stack_interval(const Estimate& composed, const RunInterval& runs, Confidence stack);

}  // namespace foretoken
