// What would halve the cost of a search's winner, or double what it sustains: one change at a time.
#pragma once

#include <string>
#include <vector>

#include "plan/serving/serving_search.h"

namespace foretoken {

// The winner with one thing changed, against the winner itself on as many devices as each uses.
struct SoughtChange {
  std::string change;   // "weights in int4_wo"
  std::string caution;  // what else it changes, for people; empty = nothing
  ServingLayout layout;
  double requests_per_s = 0;  // that it sustains
  double capacity_ratio = 0;  // of the winner's requests/s
  double cost_ratio = 0;      // of the winner's cost of a request at capacity; 0 = a price is not known
  bool is_simulated = false;  // by short runs; else by closed form, as a ratio to the winner's
};

// Formats of weights and cache, drafts, latency limits twice as long, and `others`: devices that were not on offer, as
// many as the winner has. Each by closed form, with the winner's engine on any number of ranks; the best for each goal
// simulated. The largest gain first; those that gain less than a tenth in both are left out.
std::vector<SoughtChange> seek_goals(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
                                     const PlanPoint& winner, const std::vector<HardwareChoice>& others);

}  // namespace foretoken
