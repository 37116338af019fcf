// The seam between a search and whoever works its layouts out: threads here; with a store of results and other
// processes in stored_evaluator.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "plan/serving/layout_simulation.h"

namespace foretoken {

// Thrown by a `check_wanted`: the search ends at once and answers with what it has.
struct SearchStopped {};

// Answers in the order of the layouts. What comes out for a layout depends on it, the question and the traffic alone:
// ServingQuestion::key(), effort_name() and ServingLayout::key() together name it.
class PlanEvaluator {
 public:
  virtual ~PlanEvaluator() = default;
  virtual std::vector<LayoutJudgement> judge(std::span<const ServingLayout> layouts) = 0;
  virtual std::vector<PlanPoint> evaluate(std::span<const ServingLayout> layouts, Effort effort) = 0;
  // The same, of layouts that were evaluated with less effort.
  virtual std::vector<PlanPoint> evaluate_further(std::span<const PlanPoint> known, Effort effort);
};

// A layout alone is worked out by all threads or processes together, run by run.
constexpr bool is_shared_by_runs(Effort effort) {
  return effort == Effort::promised || effort == Effort::curve || effort == Effort::long_curve;
}

std::vector<ServingLayout> layouts_of(std::span<const PlanPoint> points);

// Places of layouts that share step times: whoever works one out has half the work of the others done.
std::vector<std::vector<size_t>> layouts_by_engines(std::span<const ServingLayout> layouts);

// On so many threads. What it is given outlives it. `check_wanted`, where there is one, is called often, on any of the
// threads; what it throws ends the work of all of them.
std::unique_ptr<PlanEvaluator> threaded_evaluator(const ServingQuestion& question, const ServingFacts& facts,
                                                  const Traffic& traffic, unsigned threads,
                                                  std::function<void()> check_wanted = {});

// USD for a million output tokens; nothing where the price is not known.
std::optional<double> usd_per_million_tokens(const ServingQuestion& question, const ServingLayout& layout,
                                             const PlanRun& run);

}  // namespace foretoken
