// What would halve the cost of a search's winner, or double what it sustains: one change at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/serving/serving_search.h"

namespace foretoken {

// The cheapest layout with a change that serves the rate asked for.
struct ChangeAtRate {
  ServingLayout layout;
  double requests_per_s = 0;  // that it sustains
  double cost_ratio = 0;      // of the winner's USD for an hour; of devices where no price is known; 0 = not comparable
  bool is_simulated = false;
};

// The winner with one thing changed, against SoughtBase on as many devices as each uses.
struct SoughtChange {
  std::string change;   // "weights in int4_wo"
  std::string caution;  // what else it changes, for people; empty = nothing
  ServingLayout layout;
  double requests_per_s = 0;            // that it sustains
  double capacity_ratio = 0;            // of the winner's requests/s
  double cost_ratio = 0;                // of the winner's cost of a request at capacity; 0 = a price is not known
  bool is_simulated = false;            // by short runs; else by closed form, as a ratio to the winner's
  std::optional<ChangeAtRate> at_rate;  // nothing where no rate is asked for, or none serves it

  // What the change costs where it is asked about: at the rate, else at capacity; 0 = not known.
  double asked_cost_ratio(bool has_rate) const { return has_rate ? (at_rate ? at_rate->cost_ratio : 0) : cost_ratio; }
};

// What changes are judged against: the winner, or what is better where nothing is changed and layouts are searched as
// those of changes are.
struct SoughtBase {
  ServingLayout layout;
  double requests_per_s = 0;
  std::optional<ServingLayout> at_rate =
      {};  // the cheapest that serves the rate asked for, where that is not the winner
  bool is_winner = true;
};

struct SoughtGoals {
  std::optional<SoughtBase> base;     // nothing where there is no winner, and nothing sustains any rate
  std::vector<SoughtChange> changes;  // the largest gain first; those that gain
                                      // less than a tenth are left out
  bool stopped = false;               // before all changes were judged and the best simulated
};

// Formats of weights and cache, drafts, higher limits of a step, latency limits twice as long, and `others`: devices
// that were not on offer, as many as the winner has (for the rate asked for, up to four times as many). Each by closed
// form, with the winner's engine on any number of ranks; the best for each goal simulated. `check_wanted`, where there
// is one, is called often: at SearchStopped the answer is what is known by then.
SoughtGoals seek_goals(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
                       const PlanPoint& winner, const std::vector<HardwareChoice>& others,
                       const std::function<void()>& check_wanted = {});

}  // namespace foretoken
