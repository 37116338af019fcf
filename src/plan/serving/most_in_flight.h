// How many requests a layout may always have in flight within the limits: the next one is sent when one ends.
#pragma once

#include <cstdint>
#include <functional>

#include "plan/serving/layout_simulation.h"

namespace foretoken {

// 0 where not even one keeps the limits. `known`: the layout as requests that arrive at a rate were simulated. The
// number is within 2% of the most, judged as surely as what is promised (Effort::promised), and found by the runs of a
// search for the best layout too. What `check_wanted` throws ends the work.
int64_t most_in_flight(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
                       const PlanPoint& known, const std::function<void()>& check_wanted = {});

}  // namespace foretoken
