#include "accelerator/mapper/objective.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::array<std::pair<std::string_view, MappingMetric>, 4> metric_names{{
    {"energy", MappingMetric::energy},
    {"delay", MappingMetric::delay},
    {"latency", MappingMetric::latency},
    {"edp", MappingMetric::edp},
}};

MappingMetric metric_named(std::string_view name, const std::string& source) {
  std::vector<std::string> names;
  for (const auto& [own, metric] : metric_names) {
    if (own == name) return metric;
    names.emplace_back(own);
  }
  throw InputError({.source = source,
                    .value = printable(name),
                    .expected = "energy, delay, latency or edp, or two of them as in delay,energy",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace

MappingObjective objective_named(std::string_view text, const std::string& source) {
  const auto parts = split(text, ",");
  MappingObjective objective{.first = metric_named(parts.front(), source)};
  if (objective.first == MappingMetric::energy) objective.second = MappingMetric::delay;
  if (parts.size() > 1) objective.second = metric_named(parts[1], source);
  if (parts.size() > 2) metric_named(text, source);
  return objective;
}

std::string_view metric_name(MappingMetric metric) {
  for (const auto& [name, own] : metric_names) {
    if (own == metric) return name;
  }
  throw InternalError("a metric without a name");
}

double metric_value(MappingMetric metric, const RunCosts& costs) {
  switch (metric) {
    case MappingMetric::energy:
      return costs.energy_pj;
    case MappingMetric::delay:
      return costs.cycles;
    case MappingMetric::latency:
      return costs.latency_cycles;
    case MappingMetric::edp:
      break;
  }
  return costs.energy_pj * costs.cycles;
}

RunCosts run_costs(const Evaluation& evaluation) {
  return {
      .energy_pj = evaluation.energy_pj, .cycles = evaluation.cycles, .latency_cycles = evaluation.latency_cycles()};
}

double least_value(MappingMetric metric, const MappingBound& bound) {
  return metric_value(metric, {.energy_pj = bound.energy_pj, .cycles = bound.cycles, .latency_cycles = bound.cycles});
}

MappingScore score_of(const MappingObjective& objective, const RunCosts& costs) {
  return {.first = metric_value(objective.first, costs), .second = metric_value(objective.second, costs)};
}

}  // namespace foretoken
