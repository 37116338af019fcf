// What a search of mappings makes small.
#pragma once

#include <compare>
#include <span>
#include <string_view>

#include "accelerator/evaluator.h"
#include "accelerator/mapper/lower_bound.h"

namespace foretoken {

enum class MappingMetric {
  energy,   // pJ
  delay,    // cycles, with perfect overlap
  latency,  // cycles, with filling, draining and stalls
  edp,      // energy times delay
};

// The second decides between mappings that are equal by the first.
struct MappingObjective {
  MappingMetric first = MappingMetric::edp;
  MappingMetric second = MappingMetric::energy;
};

struct MappingScore {
  double first = 0, second = 0;
  auto operator<=>(const MappingScore&) const = default;
};

// `energy`, `delay`, `latency`, `edp`, or two of them with a comma between, as in `delay,energy`. InputError for
// others.
// `source` names the text in errors.
MappingObjective objective_named(std::string_view text, const std::string& source = "objective");
std::string_view metric_name(MappingMetric metric);

// What one run of anything costs: an operator, or all layers of a network together.
struct RunCosts {
  double energy_pj = 0;
  double cycles = 0;          // with perfect overlap
  double latency_cycles = 0;  // with filling, draining and stalls
};

RunCosts run_costs(const Evaluation& evaluation);
double metric_value(MappingMetric metric, const RunCosts& costs);
double least_value(MappingMetric metric, const MappingBound& bound);
MappingScore score_of(const MappingObjective& objective, const RunCosts& costs);

}  // namespace foretoken
