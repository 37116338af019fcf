// An iteration of an RLHF loop for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "training/scale/rlhf_loop.h"

namespace foretoken {

struct RlhfReport {
  std::string model, cluster;
  RlhfPlan plan;
  RlhfIteration iteration;
};

std::string rlhf_text(const RlhfReport& report);
Json rlhf_json(const RlhfReport& report);

}  // namespace foretoken
