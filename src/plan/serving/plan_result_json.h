// What is worked out for layouts as JSON, for stores of results: written and read back, nothing changes.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "plan/serving/layout_simulation.h"

namespace foretoken {

// Of these forms; other numbers where they change.
inline constexpr int plan_result_format = 9;

Json judgement_json(const LayoutJudgement& judgement);
LayoutJudgement read_judgement(const JsonView& json);

// Without the layout, which is part of the key.
Json point_json(const PlanPoint& point);
PlanPoint read_point(const JsonView& json, const ServingLayout& layout, Effort effort);

// Of the latencies, only what stretches judged together need to know.
Json outcome_json(const StretchOutcome& outcome, const StretchTask& task, std::span<const LatencySlo> limits);
StretchOutcome read_outcome(const JsonView& json);

}  // namespace foretoken
