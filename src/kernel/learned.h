// Kernel times from a form and its calibration: the two learned tiers.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/estimate.h"
#include "hardware/device.h"
#include "kernel/forms/form.h"
#include "kernel/forms/list.h"

namespace foretoken {

enum class Tier { best, roofline, cross, measured };
std::string_view tier_name(Tier tier);
std::vector<std::string> tier_names();
std::optional<Tier> tier_from_name(std::string_view name);

// What a learned prediction rests on.
struct LearnedTime {
  Estimate seconds;
  Tier tier = Tier::cross;
  bool inside_envelope = false;  // measured tier: within the sizes measured for this group
};

// The learned tiers of one device. Calibrations are read when first needed. Thread-safe.
class LearnedKernels {
 public:
  // `folder` as in calibration.h; a folder without files gives no predictions.
  // `measured_as` names the device whose sweep applies; empty = none, as for a user's own device file.
  LearnedKernels(const Device& device, std::filesystem::path folder, Caches caches, std::string measured_as);
  explicit LearnedKernels(const Device& device, std::filesystem::path folder, Caches caches = Caches::cold)
      : LearnedKernels(device, std::move(folder), caches, device.name) {}
  ~LearnedKernels();

  // Nothing where no form, no calibration or not all of the device's facts are there. Tier::best takes measured, else
  // cross.
  std::optional<LearnedTime> estimate(const KernelShape& shape, std::string_view variant, Tier tier) const;

 private:
  struct Slot;
  const Slot* slot_of(std::string_view family) const;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretoken
