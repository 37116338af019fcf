#include "plan/accelerator/design_evaluator.h"

#include <fmt/format.h>

#include "accelerator/energy/power.h"
#include "accelerator/mapper/lower_bound.h"
#include "base/error.h"
#include "base/parallel.h"

namespace foretoken {
namespace {

double area_mm2(const Architecture& architecture) {
  return area_um2(architecture) * 1e-6;
}

std::string broken_limit(const DesignCosts& costs, const DesignLimits& limits) {
  if (limits.area_mm2 && costs.area_mm2 > *limits.area_mm2) {
    return fmt::format("{:.4g} mm2, more than {:g}", costs.area_mm2, *limits.area_mm2);
  }
  if (limits.watts && costs.watts > *limits.watts) {
    return fmt::format("{:.4g} W, more than {:g}", costs.watts, *limits.watts);
  }
  return "";
}

}  // namespace

MappedDesigns::MappedDesigns(const DesignSpace& space, DesignWork work) : space_(space), work_(std::move(work)) {
  work_.layers = merged_layers(std::move(work_.layers));
}

bool MappedDesigns::is_allowed(const DesignPoint& point) const {
  const Architecture architecture = space_.design(point).architecture;
  if (!architecture_fault(architecture).empty()) return false;
  return !work_.limits.area_mm2 || area_mm2(architecture) <= *work_.limits.area_mm2;
}

std::optional<RunCosts> MappedDesigns::least(const DesignPoint& point) const {
  const Architecture architecture = space_.design(point).architecture;
  if (!architecture_fault(architecture).empty()) return std::nullopt;
  RunCosts sum;
  for (const AcceleratorLayer& layer : work_.layers) {
    try {
      const MappingSpace mappings(architecture, layer.problem, work_.constraints(layer.problem),
                                  work_.mapper.remainders);
      const MappingBound bound = lower_bound(architecture, layer.problem, mappings, work_.mapper.rules);
      sum.energy_pj += layer.count * bound.energy_pj;
      sum.cycles += layer.count * bound.cycles;
    } catch (const InputError&) {
      return std::nullopt;  // constraints that this design cannot keep
    }
  }
  sum.latency_cycles = sum.cycles;
  return sum;
}

std::vector<DesignCosts> MappedDesigns::evaluate(std::span<const DesignPoint> points) {
  std::vector<DesignCosts> costs(points.size());
  std::vector<size_t> unknown;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto found = known_.find(points[i]);
    if (found == known_.end()) {
      unknown.push_back(i);
    } else {
      costs[i] = found->second;
    }
  }
  for_each_on_threads(work_.mapper.threads, unknown.size(),
                      [&](size_t u) { costs[unknown[u]] = costs_of(space_.design(points[unknown[u]]).architecture); });
  for (const size_t i : unknown) known_.emplace(points[i], costs[i]);
  return costs;
}

DesignCosts MappedDesigns::settled_costs_of(const Architecture& architecture, int64_t tries, uint64_t seed) const {
  MapperOptions options = work_.mapper;
  options.most_tries = tries;
  options.ends_when_settled = true;
  options.seed = seed;
  return costs_of(architecture, options);
}

DesignCosts MappedDesigns::costs_of(const Architecture& architecture, MapperOptions options) const {
  DesignCosts costs{.area_mm2 = area_mm2(architecture), .fault = architecture_fault(architecture)};
  if (!costs.is_usable()) return costs;
  options.threads = 1;
  try {
    const NetworkMap map = map_network(architecture, work_.layers, work_.constraints, options);
    costs.run = {
        .energy_pj = map.totals.energy_pj, .cycles = map.totals.cycles, .latency_cycles = map.totals.latency_cycles};
  } catch (const InputError& error) {
    costs.fault = error.sentence();
    return costs;
  }
  costs.watts = average_watts({.cycles = costs.run.cycles, .energy_pj = costs.run.energy_pj}, architecture);
  costs.fault = broken_limit(costs, work_.limits);
  return costs;
}

}  // namespace foretoken
