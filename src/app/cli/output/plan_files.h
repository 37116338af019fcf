// The files that a search over serving layouts leaves behind.
#pragma once

#include <string>

#include "app/cli/grammar/options.h"
#include "plan/serving/serving_planner.h"
#include "report/plan/serving_plan.h"

namespace foretoken {

struct PlanFileFlags {
  std::string html, trace_out, csv;

  void declare(Options& options);
  bool any() const { return !html.empty() || !trace_out.empty() || !csv.empty(); }
  // InputError, before the search, for a name that cannot be written to.
  void check() const;
  void write(const ServingPlanner& planner, const ServingPlanReport& report) const;

 private:
  std::string page(const ServingPlanner& planner, const ServingPlanReport& report) const;
  const Options* options_ = nullptr;
};

}  // namespace foretoken
