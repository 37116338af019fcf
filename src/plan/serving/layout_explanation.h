// Where the time of a layout goes at the rate that it is run at.
#pragma once

#include <functional>
#include <optional>

#include "plan/serving/layout_simulation.h"
#include "serving/results/run_explanation.h"

namespace foretoken {

struct LayoutExplanation {
  double rate = 0;        // requests/s of the whole layout
  int64_t in_flight = 0;  // of a closed loop; 0 = none
  RunExplanation run;
};

// One long run at this rate, or of a closed loop with so many requests in flight. The percentile is that of the
// question's TTFT limit, else 99. Nothing where the layout does not start or no request completes. What `check_wanted`
// throws ends the work.
std::optional<LayoutExplanation> explain_layout(const ServingQuestion& question, const Traffic& traffic,
                                                const ServingFacts& facts, const ServingLayout& layout, double load,
                                                const std::function<void()>& check_wanted = {});

}  // namespace foretoken
