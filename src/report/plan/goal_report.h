// TTFT goals by priority, for people and for programs.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "serving/results/goal_counts.h"

namespace foretoken {

std::string goals_text(std::span<const GoalCount> counts);
Json goals_json(std::span<const GoalCount> counts);

}  // namespace foretoken
