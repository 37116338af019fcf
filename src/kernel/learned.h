// Kernel times from a form and its calibration: the two learned tiers.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/estimate.h"
#include "hardware/catalogue.h"
#include "hardware/device.h"
#include "kernel/calibration_folder.h"
#include "kernel/call_kinds.h"
#include "kernel/forms/form.h"
#include "kernel/forms/list.h"

namespace foretoken {

// sibling: a sweep on a device of the same generation, carried over by the spec sheets. mapped: the best mapping onto a
// described accelerator; nobody can ask for it elsewhere.
enum class Tier { best, roofline, cross, sibling, measured, mapped };
std::string_view tier_name(Tier tier);
std::vector<std::string> tier_names();  // that can be asked for
std::optional<Tier> tier_from_name(std::string_view name);

// What a learned prediction rests on.
struct LearnedTime {
  Estimate seconds;
  Tier tier = Tier::cross;
  bool inside_envelope = false;  // measured tier: within the sizes measured for this group
};

// Where a learned prediction came from, for whoever explains it (explain.h). Pointers live as long as the
// LearnedKernels.
struct LearnedBasis {
  const Form* form = nullptr;
  FormCall call;
  DeviceTraits traits;                // of the device asked about, as the constants read them
  std::vector<double> log_constants;  // what the form was given
  const FormCalibration* cross = nullptr;
  const DeviceCalibration* sweep = nullptr;  // measured and sibling tiers
  std::string group;                         // of the sweep
};

// The learned tiers of one device. Calibrations are read when first needed. Thread-safe.
class LearnedKernels {
 public:
  // A folder without files gives no predictions.
  // `swept` are the devices whose sweeps may apply, nearest first: the device itself and siblings of its generation.
  // The first with a sweep for a form serves it. `more` (may be empty) gives further ones; it is called once, when a
  // form has no sweep among `swept`.
  LearnedKernels(const Device& device, CalibrationFolder folder, Caches caches, const std::vector<Device>& swept,
                 std::function<std::vector<Device>()> more = {});
  explicit LearnedKernels(const Device& device, CalibrationFolder folder, Caches caches = Caches::cold)
      : LearnedKernels(device, std::move(folder), caches, std::vector<Device>{device}) {}
  ~LearnedKernels();

  // Nothing where no form, no calibration or not all of the device's facts are there. Tier::best takes the sweep, its
  // own or a sibling's, else cross. Intervals of a device that is only like another hold the doubt about its
  // generation.
  std::optional<LearnedTime> estimate(const KernelShape& shape, std::string_view variant, Tier tier,
                                      LearnedBasis* basis = nullptr) const;

 private:
  struct Slot;
  const Slot* slot_of(const KernelShape& shape, std::string_view variant) const;
  const Slot* loaded_slot(const FormKind* kind) const;
  std::optional<LearnedTime> estimate_apart(const MixedAttentionShape& batch, std::string_view variant,
                                            Tier tier) const;
  std::vector<double> log_constants_without_sweep(const Slot& slot, const FormCall& call, Tier tier) const;
  CallKind resolve(const Slot& slot, const FormCall& call) const;
  LearnedTime swept_time(const Slot& slot, const CallKind::Sweep& sweep, const FormCall& call) const;
  struct State;
  std::unique_ptr<State> state_;
};

// The devices of the same generation with sweeps in `folder`: the one that this device is declared to be like, then the
// nearest in bandwidth and peak.
std::vector<Device> swept_devices(const Device& device, const HardwareCatalogue& hardware,
                                  const std::filesystem::path& folder);

}  // namespace foretoken
