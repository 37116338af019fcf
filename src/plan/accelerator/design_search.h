// The best designs for some work: designs are asked for, ruled out by closed forms or evaluated, and told, until a
// budget is spent.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/accelerator/design_evaluator.h"
#include "plan/accelerator/design_searcher.h"

namespace foretoken {

// What is made small: one metric, or two whose frontier is looked for.
struct DesignObjective {
  std::vector<MappingMetric> metrics = {MappingMetric::edp};

  // What designs are ranked by: the metric, or the product of both.
  double value(const RunCosts& costs) const;
  std::string name() const;  // "edp", "delay,energy"
};

struct DesignBudget {
  size_t evaluations = 200;  // of mappings; designs that closed forms rule out are free
  size_t round = 8;          // asked for at once; the same for any number of threads
};

struct EvaluatedDesign {
  DesignPoint point;
  DesignCosts costs;
};

struct DesignSearchResult {
  std::string method;
  uint64_t seed = 0;
  std::vector<EvaluatedDesign> designs;  // in the order of their evaluation
  std::vector<double> best_so_far;       // of the objective's value, after each of them; infinity = none can be used
  int64_t ruled_out = 0;                 // by their bounds: no mapping makes them better than what was found before
  bool exhausted = false;                // no design was left to ask for

  const EvaluatedDesign* best(const DesignObjective& objective) const;  // null when none can be used
};

// Deterministic. The searcher is of a grid whose points the evaluator allows; `base` is evaluated first, as the place
// to start from. `tell` hears of each round.
DesignSearchResult search_designs(const DesignObjective& objective, const DesignBudget& budget,
                                  const SearcherKind& method, uint64_t seed, const ChoiceGrid& grid,
                                  const std::optional<DesignPoint>& base, DesignEvaluator& evaluator,
                                  const std::function<void(const DesignSearchResult&)>& tell = {});

// Best first; those that cannot be used are left out.
std::vector<EvaluatedDesign> ranked_designs(std::vector<EvaluatedDesign> designs, const DesignObjective& objective);
// Those that no other beats in both metrics, least of the first one first.
std::vector<EvaluatedDesign> design_frontier(std::vector<EvaluatedDesign> designs, const DesignObjective& objective);

// What no design of the space can beat, and how many are proven to be no better than `found`. Nothing where there are
// more than `most` designs.
struct SpaceBound {
  double value = 0;       // the least bound of any allowed design
  int64_t designs = 0;    // allowed ones
  int64_t no_better = 0;  // of those
};
std::optional<SpaceBound> space_bound(const DesignObjective& objective, const ChoiceGrid& grid,
                                      const DesignEvaluator& evaluator, double found, int64_t most, unsigned threads);

}  // namespace foretoken
