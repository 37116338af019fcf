// The answer to a question about an accelerator's design: search with few tries of mappings, then the best with many.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/accelerator/design_search.h"
#include "plan/accelerator/knob_effects.h"

namespace foretoken {

struct AcceleratorPlanQuestion {
  DesignWork work;
  DesignObjective objective;
  DesignBudget budget;
  std::vector<std::string> methods = {"bayesian"};  // names of searchers; several are compared, the best of all wins
  uint64_t seed = 1;
  size_t seeds = 1;               // searches of each method, with seeds from `seed` on: how much of a result is luck
  size_t finalists = 3;           // of one objective; of two, the designs of the frontier
  int64_t final_tries = 100'000;  // mappings of each layer of the base and the finalists, while they gain something
};

struct AcceleratorPlan {
  double designs = 0;                        // in the space
  DesignCosts base;                          // with final_tries, as are the finalists and the frontier
  DesignCosts base_quickly;                  // with the tries of the searches, to compare them with
  std::vector<DesignSearchResult> searches;  // one for each method and seed
  std::vector<EvaluatedDesign> finalists;    // best first; empty = nothing found keeps the limits
  std::vector<EvaluatedDesign> remapped;     // with final_tries: finalists, and others that might have been
  // The largest relative difference between two final searches of a finalist's mappings: designs that are closer to
  // each other are not told apart.
  double search_noise = 0;
  // By how much the second half of the evaluations lowered the best found, in the search that gained least; 1 where no
  // search had found a design in its first half. What is still gained as a search ends, another seed may gain or miss.
  double late_gain = 0;
  // Designs that may yet be better than the winner, so that another seed may choose one of them: neither mapped with
  // final_tries nor proven no better by their bounds. Of a space too large for bounds: all that were not looked at.
  double undecided = 0;
  std::vector<EvaluatedDesign> frontier;  // of two objectives
  std::optional<RunCosts> winner_least;   // what no mapping onto the winner can beat
  std::optional<SpaceBound> bound;        // of a space that is small enough to look at all its bounds
  std::vector<KnobEffect> effects;
  int64_t evaluations = 0, ruled_out = 0;  // of all searches; a design that two evaluated counts twice

  // Whether no other design can take the winner's place but one that is tied with it.
  bool is_settled() const { return undecided == 0; }
  // Finalists that are no worse than the winner beyond the noise of mappings and of the search, without it.
  size_t ties(const DesignObjective& objective) const;
  const EvaluatedDesign* winner() const { return finalists.empty() ? nullptr : &finalists.front(); }
};

// The same for any number of threads. InputError for an exhaustive search of more designs than the budget, and where
// the base itself cannot run the work. `tell` hears how far the searches are.
AcceleratorPlan plan_accelerator(const AcceleratorPlanQuestion& question, const DesignSpace& space,
                                 const std::function<void(const std::string&)>& tell = {});

}  // namespace foretoken
