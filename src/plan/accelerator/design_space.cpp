#include "plan/accelerator/design_space.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// Words first: a capacity in bytes is a number of words of the new width.
bool turns_first(const Knob& a, const Knob& b) {
  return a.kind == KnobKind::word_bits && b.kind != KnobKind::word_bits;
}

bool turn_the_same(const Knob& a, const Knob& b) {
  const auto is_size = [](const Knob& knob) { return knob.kind == KnobKind::capacity || knob.kind == KnobKind::depth; };
  return a.level == b.level && (a.kind == b.kind || (is_size(a) && is_size(b)));
}

}  // namespace

DesignSpace::DesignSpace(AcceleratorDesign base, std::vector<Knob> knobs, const EnergyLibrary& library)
    : base_(std::move(base)), knobs_(std::move(knobs)), library_(library) {
  std::stable_sort(knobs_.begin(), knobs_.end(), turns_first);
  if (knobs_.empty()) {
    throw InputError({.source = base_.architecture.name, .expected = "a design with a number to change: {knob}"});
  }
  for (size_t i = 0; i < knobs_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!turn_the_same(knobs_[i], knobs_[j])) continue;
      throw InputError({.source = base_.architecture.name,
                        .value = knobs_[i].name(),
                        .expected = fmt::format("one knob for a number; {} turns it already", knobs_[j].name())});
    }
  }
}

ChoiceGrid DesignSpace::grid() const {
  ChoiceGrid grid{.allowed = [](const DesignPoint&) { return true; }};
  for (const Knob& knob : knobs_) grid.choices.push_back(static_cast<int>(knob.values.size()));
  return grid;
}

std::optional<DesignPoint> DesignSpace::base_point() const {
  DesignPoint point;
  for (const Knob& knob : knobs_) {
    const double now = knob_value(base_.architecture, knob);
    const auto found = std::find(knob.values.begin(), knob.values.end(), now);
    if (found == knob.values.end()) return std::nullopt;
    point.push_back(static_cast<int>(found - knob.values.begin()));
  }
  return point;
}

AcceleratorDesign DesignSpace::design(const DesignPoint& point) const {
  AcceleratorDesign own = base_;
  for (size_t k = 0; k < knobs_.size(); ++k) set_knob(own.architecture, knobs_[k], value(point, k));
  refill_costs(base_.architecture, own.architecture, own.energies_given, own.areas_given, library_);
  return own;
}

std::string DesignSpace::changes_text(const DesignPoint& point) const {
  std::vector<std::string> parts;
  for (size_t k = 0; k < knobs_.size(); ++k) {
    if (value(point, k) == knob_value(base_.architecture, knobs_[k])) continue;
    parts.push_back(fmt::format("{} {}", knobs_[k].name(), knob_value_text(knobs_[k], value(point, k))));
  }
  return parts.empty() ? "as it is" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace foretoken
