// An iteration of an RLHF loop for people and for programs.
#pragma once

#include <string>

#include "base/estimate.h"
#include "base/json.h"
#include "training/scale/rlhf_loop.h"

namespace foretoken {

struct RlhfReport {
  std::string model, cluster;
  RlhfPlan plan;
  RlhfIteration iteration;
  Estimate seconds;  // of the iteration: with all kernels at the lower and at the upper end of their intervals
};

std::string rlhf_text(const RlhfReport& report);
Json rlhf_json(const RlhfReport& report);

}  // namespace foretoken
