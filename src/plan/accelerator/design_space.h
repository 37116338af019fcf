// The designs that knobs make of one accelerator.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accelerator/energy/energy_library.h"
#include "accelerator/formats/architecture_json.h"
#include "plan/accelerator/choice_grid.h"
#include "plan/accelerator/knob.h"

namespace foretoken {

class DesignSpace {
 public:
  // InputError for two knobs that turn the same number, and for none. The library outlives the space.
  DesignSpace(AcceleratorDesign base, std::vector<Knob> knobs, const EnergyLibrary& library);

  const AcceleratorDesign& base() const { return base_; }
  std::span<const Knob> knobs() const { return knobs_; }
  ChoiceGrid grid() const;                        // all allowed
  std::optional<DesignPoint> base_point() const;  // nothing where a knob leaves the base's own value out

  // With energies and areas of the new sizes (refill_costs). architecture_fault may find faults.
  AcceleratorDesign design(const DesignPoint& point) const;
  double value(const DesignPoint& point, size_t knob) const { return knobs_[knob].values[point[knob]]; }
  // "GLB.capacity 64 KiB, RF.x 8": those that differ from the base, or "as it is".
  std::string changes_text(const DesignPoint& point) const;

 private:
  AcceleratorDesign base_;
  std::vector<Knob> knobs_;
  const EnergyLibrary& library_;
};

}  // namespace foretoken
