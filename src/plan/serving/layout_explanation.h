// Where the time of a layout goes at the rate that it is run at: what a slow request waits for, and how busy the
// devices are.
#pragma once

#include <functional>
#include <optional>

#include "plan/serving/layout_simulation.h"

namespace foretoken {

// Of the requests around a percentile of TTFT, in the mean: the parts make up the whole.
struct TtftParts {
  double percentile = 99;
  double ttft_ms = 0;
  double queue_ms = 0;     // from the arrival to the first step
  double prefill_ms = 0;   // kernels and communication of the steps that compute the prompt, and pauses between them
  double host_ms = 0;      // the device waits for the host in these steps
  double transfer_ms = 0;  // of two pools: from the end of the prompt to the first token
};

struct LayoutExplanation {
  double rate = 0;  // requests/s of the whole layout
  TtftParts ttft;
  double busy_share = 0;  // of the time that devices run steps
  // Of all devices, idle time included: model FLOPs of their peak, and weights and cache read of their bandwidth.
  // Nothing where steps have no operators, as with drafts.
  std::optional<double> model_flops_utilization, memory_bandwidth_utilization;
};

// One long run at this rate. The percentile is that of the question's TTFT limit, else 99. Nothing where the layout
// does not start or no request completes. What `check_wanted` throws ends the work.
std::optional<LayoutExplanation> explain_layout(const ServingQuestion& question, const Traffic& traffic,
                                                const ServingFacts& facts, const ServingLayout& layout, double rate,
                                                const std::function<void()>& check_wanted = {});

}  // namespace foretoken
