// What a search over serving layouts found, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/serving/serving_search.h"

namespace foretoken {

struct ServingPlanReport {
  const ServingQuestion& question;
  const Traffic& traffic;
  const ServingSearchResult& result;
};

// The answer in words: the winner, its capacity with its interval, and what it cannot be told apart from.
std::string serving_plan_sentence(const ServingPlanReport& report);
// With how to start it, the best of each kind of hardware, the frontier, and what was ruled out and why.
std::string serving_plan_text(const ServingPlanReport& report);
Json serving_plan_json(const ServingPlanReport& report);
// Every simulated run.
std::string serving_plan_csv(const ServingPlanReport& report);
// Tokens/s of a user across, of a device up: every run that keeps the limits, the frontier, and the TPOT limit.
std::string serving_plan_svg(const ServingPlanReport& report);

// The run that a layout is shown by: at the rate asked for, else at capacity; null = there was none.
const PlanRun* shown_run(const ServingQuestion& question, const PlanPoint& point);
// USD for a million output tokens; nothing where a price is not known.
std::optional<double> usd_per_million(const ServingQuestion& question, const PlanPoint& point, const PlanRun& run);
// A command that a shell reads as one line, though it is broken before words that are beyond the width of a terminal.
std::string shell_lines(const std::string& command);

}  // namespace foretoken
