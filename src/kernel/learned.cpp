#include "kernel/learned.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "kernel/calibration.h"
#include "kernel/evaluate.h"
#include "kernel/forms/call.h"

namespace foretoken {
namespace {

constexpr std::string_view names_of_tiers[] = {"best", "roofline", "cross", "sibling", "measured"};

}  // namespace

std::string_view tier_name(Tier tier) {
  return names_of_tiers[static_cast<size_t>(tier)];
}

std::vector<std::string> tier_names() {
  return {std::begin(names_of_tiers), std::end(names_of_tiers)};
}

std::optional<Tier> tier_from_name(std::string_view name) {
  const auto found = std::find(std::begin(names_of_tiers), std::end(names_of_tiers), name);
  if (found == std::end(names_of_tiers)) return std::nullopt;
  return static_cast<Tier>(found - std::begin(names_of_tiers));
}

// One form on this device: its calibrations, read once.
struct LearnedKernels::Slot {
  const FormKind* kind = nullptr;
  std::unique_ptr<Form> form;
  mutable std::once_flag once;
  mutable std::optional<FormCalibration> cross;
  mutable std::optional<DeviceCalibration> measured;
};

struct LearnedKernels::State {
  std::string device;  // whose sweep applies; empty = none
  TraitsOfDevice traits;
  DeviceTraits swept_traits;  // of the device that was swept
  bool is_sibling = false;    // that device is another one
  std::filesystem::path folder;
  std::vector<Slot> slots = std::vector<Slot>(form_kinds().size());
};

LearnedKernels::LearnedKernels(const Device& device, std::filesystem::path folder, Caches caches,
                               std::optional<Device> swept)
    : state_(std::make_unique<State>()) {
  if (swept) {
    state_->device = swept->name;
    state_->swept_traits = traits_of(*swept).traits;
    state_->is_sibling = swept->name != device.name;
  }
  state_->traits = traits_of(device);
  state_->folder = std::move(folder);
  for (size_t i = 0; i < state_->slots.size(); ++i) {
    state_->slots[i].kind = &form_kinds()[i];
    state_->slots[i].form = form_kinds()[i].make(caches);
  }
}

LearnedKernels::~LearnedKernels() = default;

const LearnedKernels::Slot* LearnedKernels::slot_of(const KernelShape& shape) const {
  const FormKind* kind = form_kind_for(shape);
  if (kind == nullptr) return nullptr;
  const Slot& slot = state_->slots[static_cast<size_t>(kind - form_kinds().data())];
  std::call_once(slot.once, [&] {
    std::error_code error;
    // A file of another form, of another version of the form, or with trees over other features.
    const auto must_fit = [&](const auto& calibration, size_t features, const std::filesystem::path& path) {
      if (calibration.form != kind->name) {
        throw InputError({.source = path.string(),
                          .path = "form",
                          .value = printable(calibration.form),
                          .expected = std::string(kind->name) + ", as the name of the file says"});
      }
      const auto constants = slot.form->constants();
      const bool same =
          std::equal(calibration.constants.begin(), calibration.constants.end(), constants.begin(), constants.end(),
                     [](const std::string& name, const FormConstant& constant) { return name == constant.name; });
      if (!same) {
        throw InputError({.source = path.string(),
                          .path = "constants",
                          .value = "other names",
                          .expected = "those of this foretoken: fit it anew"});
      }
      if (!calibration.residual.empty() && calibration.residual.features() != features) {
        throw InputError({.source = path.string(),
                          .path = "residual.feature_count",
                          .value = std::to_string(calibration.residual.features()),
                          .expected = std::to_string(features) + " features, as this foretoken has: fit it anew"});
      }
    };
    const size_t features = slot.form->feature_count();
    const auto cross = form_calibration_path(state_->folder, kind->name);
    if (std::filesystem::exists(cross, error)) {
      slot.cross = read_form_calibration(cross);
      must_fit(*slot.cross, features, cross);
    }
    const auto measured = device_calibration_path(state_->folder, state_->device, kind->name);
    if (!state_->device.empty() && std::filesystem::exists(measured, error)) {
      slot.measured = read_device_calibration(measured);
      must_fit(*slot.measured, features + 1 + raw_feature_count, measured);
      if (slot.measured->device != state_->device) {
        throw InputError({.source = measured.string(),
                          .path = "device",
                          .value = printable(slot.measured->device),
                          .expected = state_->device + ", as the name of the folder says"});
      }
    }
  });
  return &slot;
}

namespace {

// How much of the doubt about an unseen generation is left about an unseen sibling; from H100 to H200.
constexpr double sibling_share = 0.35;

using MeasuredGroups = decltype(DeviceCalibration::groups);

// The group of a call. One whose variant is not known takes the variant that engines usually run; if that was not
// measured, any with the same formats.
MeasuredGroups::const_iterator measured_group(const DeviceCalibration& measured, const Form& form, const FormCall& call,
                                              const DeviceTraits& traits) {
  const auto exact = measured.groups.find(call_group(call));
  if (exact != measured.groups.end() || !call.variant.empty()) return exact;
  const std::string formats = " " + call_formats(call);
  const std::string_view usual = form.usual_variant(call, traits);
  auto best = measured.groups.end();
  for (auto group = measured.groups.begin(); group != measured.groups.end(); ++group) {
    if (!group->first.ends_with(formats)) continue;
    // "fi_trtllm" also stands for its monolithic and modular builds.
    if (group->first.starts_with(usual)) return group;
    if (best == measured.groups.end()) best = group;
  }
  return best;
}

}  // namespace

std::optional<LearnedTime> LearnedKernels::estimate(const KernelShape& shape, std::string_view variant, Tier tier,
                                                    LearnedBasis* basis) const {
  if (tier == Tier::roofline || !state_->traits.complete) return std::nullopt;
  const Slot* slot = slot_of(shape);
  if (slot == nullptr) return std::nullopt;
  if (state_->traits.traits.amd && !slot->kind->ports_to_amd && !slot->measured) return std::nullopt;
  const FormCall call{.shape = shape, .variant = std::string(variant)};
  const DeviceTraits& traits = state_->traits.traits;
  const auto with_interval = [](double seconds, double half_width, Confidence kind) {
    const double factor = std::exp(half_width);
    return Estimate{.value = seconds, .low = seconds / factor, .high = seconds * factor, .kind = kind};
  };

  const Tier sweep_tier = state_->is_sibling ? Tier::sibling : Tier::measured;
  if (slot->measured && (tier == Tier::best || tier == sweep_tier)) {
    const DeviceCalibration& measured = *slot->measured;
    const DeviceTraits& swept = state_->swept_traits;
    const auto found = measured_group(measured, *slot->form, call, swept);
    if (found != measured.groups.end()) {
      const auto number = static_cast<float>(std::distance(measured.groups.begin(), found));
      double seconds =
          form_seconds_with_residual(*slot->form, call, swept, found->second, measured.residual, 1, number);
      bool inside = true;
      const auto ranges = measured.ranges.find(found->first);
      const auto raw = raw_features(call);
      for (size_t i = 0; ranges != measured.ranges.end() && i < ranges->second.size() && i < raw.size(); ++i) {
        inside = inside && raw[i] >= ranges->second[i].first && raw[i] <= ranges->second[i].second;
      }
      // Beyond the sizes measured, the trees stand still while the form goes on: half as sure again.
      double half_width = measured.half_widths.at(seconds) * (inside ? 1.0 : 1.5);
      if (state_->is_sibling) {
        // What the sweep found, times what the form makes of the other spec sheet.
        const auto bare = [&](const DeviceTraits& device) {
          return form_seconds_with_residual(*slot->form, call, device, found->second, {}, 0, number);
        };
        seconds *= bare(traits) / bare(swept);
        const double ported = slot->cross ? sibling_share * slot->cross->half_widths.at(seconds) : 0;
        half_width = std::hypot(half_width, ported);
      }
      if (basis != nullptr) {
        *basis = {.form = slot->form.get(),
                  .call = call,
                  .traits = traits,
                  .log_constants = found->second,
                  .cross = slot->cross ? &*slot->cross : nullptr,
                  .sweep = &measured,
                  .group = found->first};
      }
      const bool interpolates = inside && !state_->is_sibling;
      return LearnedTime{.seconds = with_interval(seconds, half_width,
                                                  interpolates ? Confidence::interpolated : Confidence::extrapolated),
                         .tier = sweep_tier,
                         .inside_envelope = inside};
    }
  }
  if (!slot->cross || tier == Tier::measured || tier == Tier::sibling) return std::nullopt;
  std::vector<double> logs =
      cross_log_constants(*slot->form, *slot->cross, call, traits, tier == Tier::cross ? "" : state_->device);
  if (slot->measured && tier == Tier::best) {
    const std::span<const FormConstant> constants = slot->form->constants();
    for (size_t k = 0; k < logs.size(); ++k) {
      logs[k] =
          std::clamp(logs[k] + slot->measured->shared[k], std::log(constants[k].least), std::log(constants[k].most));
    }
  }
  if (basis != nullptr) {
    *basis = {.form = slot->form.get(), .call = call, .traits = traits, .log_constants = logs, .cross = &*slot->cross};
  }
  const double seconds = form_seconds_with_residual(*slot->form, call, traits, logs, slot->cross->residual,
                                                    slot->cross->residual_strength, std::nullopt);
  return LearnedTime{.seconds = with_interval(seconds, slot->cross->half_widths.at(seconds), Confidence::extrapolated),
                     .tier = Tier::cross,
                     .inside_envelope = false};
}

std::optional<Device> swept_device(const Device& device, const HardwareCatalogue& hardware,
                                   const std::filesystem::path& folder) {
  std::optional<Device> nearest;
  double nearest_distance = 0;
  for (const std::string& name : hardware.device_names()) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder / name, error)) continue;
    Device candidate = hardware.device(name);
    if (generation_of(candidate) != generation_of(device) || !traits_of(candidate).complete ||
        !traits_of(device).complete)
      continue;
    const DeviceTraits a = traits_of(candidate).traits, b = traits_of(device).traits;
    constexpr auto bf16 = static_cast<size_t>(DType::bf16);
    const double distance =
        std::abs(std::log(a.bandwidth / b.bandwidth)) + std::abs(std::log(a.peak[bf16] / b.peak[bf16]));
    if (nearest && distance >= nearest_distance) continue;
    nearest_distance = distance;
    nearest = std::move(candidate);
  }
  return nearest;
}

}  // namespace foretoken
