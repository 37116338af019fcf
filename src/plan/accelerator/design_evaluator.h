// What designs cost: the seam between a search and whoever works them out.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accelerator/workload/network_map.h"
#include "plan/accelerator/design_space.h"

namespace foretoken {

struct DesignCosts {
  RunCosts run;  // of all layers
  double area_mm2 = 0;
  double watts = 0;   // mean over the run
  std::string fault;  // why it is no answer: a layer fits nowhere, a limit is broken; empty = it is one

  bool is_usable() const { return fault.empty(); }
};

struct DesignLimits {
  std::optional<double> area_mm2, watts;
};

// What comes out for a point depends on nothing but the point.
class DesignEvaluator {
 public:
  virtual ~DesignEvaluator() = default;
  // Limits that need no search of mappings.
  virtual bool is_allowed(const DesignPoint& point) const = 0;
  // What no mapping of the layers can beat; nothing for a design that cannot be evaluated.
  virtual std::optional<RunCosts> least(const DesignPoint& point) const = 0;
  virtual std::vector<DesignCosts> evaluate(std::span<const DesignPoint> points) = 0;  // in their order
};

struct DesignWork {
  std::vector<AcceleratorLayer> layers;
  ConstraintsFor constraints;
  MapperOptions mapper;  // of one layer; threads are those that share the designs
  DesignLimits limits;
};

// Maps the layers onto each design. Remembers what it has evaluated.
class MappedDesigns : public DesignEvaluator {
 public:
  // The space outlives it.
  MappedDesigns(const DesignSpace& space, DesignWork work);

  bool is_allowed(const DesignPoint& point) const override;
  std::optional<RunCosts> least(const DesignPoint& point) const override;
  std::vector<DesignCosts> evaluate(std::span<const DesignPoint> points) override;
  // Of any design of the same kind, such as the base that knobs leave out; by the same search as evaluate().
  DesignCosts costs_of(const Architecture& architecture) const { return costs_of(architecture, work_.mapper); }
  // With up to so many tries of each layer, as long as they gain something.
  DesignCosts settled_costs_of(const Architecture& architecture, int64_t tries, uint64_t seed) const;

 private:
  DesignCosts costs_of(const Architecture& architecture, MapperOptions options) const;

  const DesignSpace& space_;
  DesignWork work_;
  std::map<DesignPoint, DesignCosts> known_;
};

}  // namespace foretoken
