// What a search over serving layouts found, for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "plan/serving/launch_command.h"
#include "report/plan/serving_plan.h"

namespace foretoken {

// The answer in words: the winner, its capacity with its interval, and what it cannot be told apart from.
std::string serving_plan_sentence(const ServingPlanReport& report);
// With how to start it, the best of each kind of hardware, the frontier, and what was ruled out and why.
std::string serving_plan_text(const ServingPlanReport& report);
// The lines that start the layout's servers.
std::string launch_text(const ServingPlanReport& report, const ServingLayout& layout,
                        const std::optional<HostPlace>& shared = {});
Json launch_json(const ServingPlanReport& report, const ServingLayout& layout,
                 const std::optional<HostPlace>& shared = {});
Json serving_plan_json(const ServingPlanReport& report);
// Every simulated run.
std::string serving_plan_csv(const ServingPlanReport& report);
// Tokens/s of a user across, of a device up: every run that keeps the limits, the frontier, and the TPOT limit.
std::string serving_plan_svg(const ServingPlanReport& report);

}  // namespace foretoken
