#include "kernel/learned.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/random.h"
#include "kernel/calibration.h"
#include "kernel/call_kinds.h"
#include "kernel/evaluate.h"
#include "kernel/forms/attention_variants.h"
#include "kernel/forms/call.h"
#include "kernel/forms/cdna.h"
#include "kernel/forms/eager_form.h"
#include "kernel/forms/form_math.h"
#include "kernel/forms/gemm_form.h"
#include "kernel/forms/moe_kernels.h"
#include "kernel/variants.h"

namespace foretoken {
namespace {

constexpr std::string_view names_of_tiers[] = {"best", "roofline", "cross", "sibling", "measured", "mapped"};
constexpr size_t tiers_to_ask_for = 5;

}  // namespace

std::string_view tier_name(Tier tier) {
  return names_of_tiers[static_cast<size_t>(tier)];
}

std::vector<std::string> tier_names() {
  return {std::begin(names_of_tiers), std::begin(names_of_tiers) + tiers_to_ask_for};
}

std::optional<Tier> tier_from_name(std::string_view name) {
  const auto found = std::find(std::begin(names_of_tiers), std::end(names_of_tiers), name);
  if (found == std::end(names_of_tiers)) return std::nullopt;
  return static_cast<Tier>(found - std::begin(names_of_tiers));
}

namespace {

struct SweptDevice {
  std::string name;
  DeviceTraits traits;
  bool is_sibling = false;  // another device than the one asked about
};

std::vector<SweptDevice> swept_for(const std::string& device, const std::vector<Device>& candidates) {
  std::vector<SweptDevice> swept;
  for (const Device& candidate : candidates) {
    swept.push_back(
        {.name = candidate.name, .traits = traits_of(candidate).traits, .is_sibling = candidate.name != device});
  }
  return swept;
}

}  // namespace

// One form on this device: its calibrations, read once.
struct LearnedKernels::Slot {
  const FormKind* kind = nullptr;
  std::unique_ptr<Form> form;
  mutable std::once_flag once;
  mutable const SweptDevice* swept = nullptr;  // the nearest with a sweep for this form
  mutable std::optional<FormCalibration> cross;
  mutable std::optional<DeviceCalibration> measured;
  mutable CallKinds kinds;
  bool is_empty() const { return !cross && !measured; }
  bool is_sibling() const { return swept != nullptr && swept->is_sibling; }
};

struct LearnedKernels::State {
  explicit State(CalibrationFolder calibrations) : folder(std::move(calibrations)) {}

  const std::vector<SweptDevice>& more_swept() const {
    std::call_once(once, [this] {
      if (find_more) more = swept_for(name, find_more());
    });
    return more;
  }
  // Told without reading it, nor looking for siblings.
  bool has_own_sweep(const FormKind& kind) const {
    std::error_code ignored;
    return std::any_of(swept.begin(), swept.end(), [&](const SweptDevice& device) {
      return !device.is_sibling &&
             std::filesystem::exists(device_calibration_path(folder.path(), device.name, kind.name), ignored);
    });
  }
  // The nearest, whatever it was swept for.
  const SweptDevice* nearest_swept() const {
    if (!swept.empty()) return &swept.front();
    return more_swept().empty() ? nullptr : &more_swept().front();
  }

  std::string name;
  TraitsOfDevice traits;
  DeviceTraits powered;          // for what ports between GPUs
  bool is_like_another = false;  // its generation was never seen
  CalibrationFolder folder;
  std::vector<SweptDevice> swept;  // nearest first
  std::function<std::vector<Device>()> find_more;
  mutable std::once_flag once;
  mutable std::vector<SweptDevice> more;
  Caches caches = Caches::cold;
  std::vector<Slot> slots = std::vector<Slot>(form_kinds().size());
};

LearnedKernels::LearnedKernels(const Device& device, CalibrationFolder folder, Caches caches,
                               const std::vector<Device>& swept, std::function<std::vector<Device>()> more)
    : state_(std::make_unique<State>(std::move(folder))) {
  state_->name = device.name;
  state_->swept = swept_for(device.name, swept);
  state_->find_more = std::move(more);
  state_->traits = traits_of(device);
  state_->powered = powered_traits(state_->traits.traits);
  state_->is_like_another = device.like.has_value();
  state_->caches = caches;
  for (size_t i = 0; i < state_->slots.size(); ++i) {
    state_->slots[i].kind = &form_kinds()[i];
    state_->slots[i].form = form_kinds()[i].make(caches);
  }
}

LearnedKernels::~LearnedKernels() = default;

// Where two forms serve a call whose variant is not known, a sweep of the device itself decides, kernels timed alone
// before kernels between events; without a calibration of one stack's kernels, what is known of the family.
const LearnedKernels::Slot* LearnedKernels::slot_of(const KernelShape& shape, std::string_view variant) const {
  const FormKind* kind = form_kind_for(shape, variant, state_->traits.traits.amd);
  if (kind != nullptr && kind->eager && variant.empty()) {
    const FormKind* timed_alone = form_kind_of(form_family(shape));
    if (timed_alone != nullptr && state_->has_own_sweep(*timed_alone)) return loaded_slot(timed_alone);
  }
  const Slot* slot = loaded_slot(kind);
  const bool is_empty = slot != nullptr && slot->is_empty();
  return is_empty ? loaded_slot(form_kind_of(form_family(shape))) : slot;
}

const LearnedKernels::Slot* LearnedKernels::loaded_slot(const FormKind* kind) const {
  if (kind == nullptr) return nullptr;
  const Slot& slot = state_->slots[static_cast<size_t>(kind - form_kinds().data())];
  std::call_once(slot.once, [&] {
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
    slot.cross = state_->folder.form(kind->name);
    if (slot.cross) must_fit(*slot.cross, features, form_calibration_path(state_->folder.path(), kind->name));
    const auto take_sweep = [&](const SweptDevice& swept) {
      slot.measured = state_->folder.device(swept.name, kind->name);
      if (!slot.measured) return false;
      slot.swept = &swept;
      const auto measured = device_calibration_path(state_->folder.path(), swept.name, kind->name);
      must_fit(*slot.measured, features + 1 + raw_feature_count, measured);
      if (slot.measured->device != swept.name) {
        throw InputError({.source = measured.string(),
                          .path = "device",
                          .value = printable(slot.measured->device),
                          .expected = swept.name + ", as the name of the folder says"});
      }
      return true;
    };
    if (std::any_of(state_->swept.begin(), state_->swept.end(), take_sweep)) return;
    std::any_of(state_->more_swept().begin(), state_->more_swept().end(), take_sweep);
  });
  return &slot;
}

namespace {

// How much of the doubt about an unseen generation is left about an unseen sibling; from H100 to H200. For forms of
// which no two siblings were measured.
constexpr double sibling_share = 0.35;
// Beyond the sizes measured, the trees stand still while the form goes on: half as sure again.
constexpr double beyond_sweep = 1.5;
// Farther out the sweep says less and less, until what is known is what is known of an unseen generation.
constexpr double octaves_to_forget = 2;

Estimate with_interval(double seconds, double half_width, Confidence kind) {
  const double factor = quick_exp2(half_width * log2_of_e);
  return {.value = seconds, .low = seconds / factor, .high = seconds * factor, .kind = kind};
}

// The doubt about a generation that was never seen, on top of what its nearest relative leaves. Fits withhold one
// generation at a time; `withheld` is what they were off by. Without such a fit, as beyond a sweep.
double with_unseen_generation(double half_width, const std::optional<FormCalibration>& withheld, double seconds) {
  if (!withheld) return beyond_sweep * half_width;
  const double unseen = withheld->half_widths.at(seconds);
  return std::sqrt(half_width * half_width + unseen * unseen);
}

using MeasuredGroups = decltype(DeviceCalibration::groups);

// A name that neither the form nor the sweep has ever heard of. Forms that know no names take any.
bool is_unknown_variant(const Form& form, const DeviceCalibration& measured, std::string_view variant) {
  if (variant.empty()) return false;
  const std::vector<std::string_view> known = form.known_variants();
  if (known.empty() || std::find(known.begin(), known.end(), variant) != known.end()) return false;
  if (variant.ends_with(cold_suffix))
    return is_unknown_variant(form, measured, variant.substr(0, variant.size() - cold_suffix.size()));
  const bool is_stacks = std::any_of(form_kinds().begin(), form_kinds().end(), [&](const FormKind& kind) {
    return std::find(kind.variants.begin(), kind.variants.end(), variant) != kind.variants.end();
  });
  if (is_stacks || is_framework_kernel(variant)) return false;
  const std::string start = std::string(variant) + " ";
  return std::none_of(measured.groups.begin(), measured.groups.end(),
                      [&](const auto& group) { return group.first.starts_with(start); });
}

// How far apart the kernels of the same formats lie in this sweep: a name that nobody knows may be any of them, or one
// that was never measured; so at least what is unknown about a generation that was never seen.
double unknown_name_half_width(const Form& form, const DeviceCalibration& measured, const DeviceTraits& traits,
                               const FormCall& call, const std::string& priced_group, double unseen) {
  constexpr double least_doubt = 0.25;
  const auto seconds_of = [&](const auto& group) {
    FormCall other = call;
    other.variant = group_variant(group.first, call);
    int choice = -1;
    return form.seconds(other, traits, natural_constants(group.second), choice);
  };
  const double priced = seconds_of(*measured.groups.find(priced_group));
  double half_width = std::max(unseen, least_doubt);
  for (const auto& group : measured.groups) {
    if (has_formats(group.first, call))
      half_width = std::max(half_width, std::abs(portable_log(seconds_of(group) / priced)));
  }
  return half_width;
}

// Quick for names that the group carries.
bool is_guessed_group(const Form& form, const DeviceCalibration& measured, const std::string& group,
                      std::string_view variant) {
  if (variant.empty() || group.starts_with(variant)) return false;
  if (variant.ends_with(cold_suffix) && group.starts_with(variant.substr(0, variant.size() - cold_suffix.size())))
    return false;
  return is_unknown_variant(form, measured, variant);
}

// The group of a call. One whose variant is not known takes the variant that engines usually run; if that was not
// measured, any with the same formats; a variant of a cold call, its warm measurements. So does a stack's variant in a
// sweep of that stack: it has another kernel there.
MeasuredGroups::const_iterator measured_group(const DeviceCalibration& measured, const FormKind& kind, const Form& form,
                                              const FormCall& call, const DeviceTraits& traits) {
  const auto best_described =
      measured.groups.find(call_group({.shape = call.shape, .variant = form.measured_as(call)}));
  if (best_described != measured.groups.end()) return best_described;
  const auto exact = measured.groups.find(call_group(call));
  if (exact != measured.groups.end()) return exact;
  if (call.variant.ends_with(cold_suffix)) {
    FormCall warm = call;
    warm.variant.resize(warm.variant.size() - cold_suffix.size());
    const auto same_kernel = measured.groups.find(call_group(warm));
    if (same_kernel != measured.groups.end()) return same_kernel;
  }
  const bool names_kernel = !call.variant.empty() && !form.is_of_another_machine(call);
  if (names_kernel && kind.variants.empty() && !is_unknown_variant(form, measured, call.variant)) return exact;
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

std::vector<double> LearnedKernels::log_constants_without_sweep(const Slot& slot, const FormCall& call,
                                                                Tier tier) const {
  // What is odd about the device that was swept for this form; without a sweep, about the nearest that was fitted.
  std::string_view own_effects;
  const SweptDevice* nearest = slot.swept != nullptr || tier == Tier::cross ? slot.swept : state_->nearest_swept();
  if (tier != Tier::cross && nearest != nullptr) own_effects = nearest->name;
  std::vector<double> logs = cross_log_constants(*slot.form, *slot.cross, call, state_->traits.traits, own_effects);
  if (slot.measured && tier != Tier::cross) {
    const std::span<const FormConstant> constants = slot.form->constants();
    for (size_t k = 0; k < logs.size(); ++k) {
      logs[k] = std::clamp(logs[k] + slot.measured->shared[k], portable_log(constants[k].least),
                           portable_log(constants[k].most));
    }
  }
  return logs;
}

CallKind LearnedKernels::resolve(const Slot& slot, const FormCall& call) const {
  CallKind kind{.variant = call.variant};
  const Form& form = *slot.form;
  if (slot.measured) {
    const DeviceCalibration& measured = *slot.measured;
    const auto found = measured_group(measured, *slot.kind, form, call, slot.swept->traits);
    if (found != measured.groups.end()) {
      kind.sweep = CallKind::Sweep{.group = found->first,
                                   .group_number = static_cast<float>(std::distance(measured.groups.begin(), found)),
                                   .constants = natural_constants(found->second)};
      const auto ranges = measured.ranges.find(found->first);
      if (ranges != measured.ranges.end()) kind.sweep->ranges = ranges->second;
    }
  }
  if (slot.cross) {
    kind.cross = natural_constants(log_constants_without_sweep(slot, call, Tier::cross));
    kind.known = natural_constants(log_constants_without_sweep(slot, call, Tier::best));
    kind.unseen_half_width = unseen_kernel_half_width(form, *slot.cross, call, state_->powered);
    if (kind.sweep && (slot.is_sibling() || form.is_of_another_machine(call))) {
      const std::vector<double>& elsewhere = slot.is_sibling() ? kind.cross : kind.known;
      for (const size_t constant : form.machine_constants()) kind.sweep->constants[constant] = elsewhere[constant];
    }
  }
  return kind;
}

LearnedTime LearnedKernels::swept_time(const Slot& slot, const CallKind::Sweep& sweep, const FormCall& call) const {
  const DeviceCalibration& measured = *slot.measured;
  ResidualFeatures features;
  const double strength =
      slot.is_sibling() ? carried_residual(*slot.form, call, slot.swept->traits, sweep.constants) : 1;
  double seconds = swept_seconds(*slot.form, call, slot.swept->traits, sweep.constants, measured, strength,
                                 sweep.group_number, features);
  float octaves_outside = 0;  // of the farthest size
  const std::span<const float> raw = features.raw();
  for (size_t i = 0; i < sweep.ranges.size() && i < raw.size(); ++i)
    octaves_outside = std::max({octaves_outside, sweep.ranges[i].first - raw[i], raw[i] - sweep.ranges[i].second});
  const double assumed = assumed_half_width(call);
  const bool inside = octaves_outside <= 0 && assumed == 0;
  double half_width =
      measured.half_widths.at(seconds) * measured.width_factor(sweep.group) * (inside ? 1.0 : beyond_sweep);
  if (!measured.layers.empty()) half_width *= measured.layer_factor(sweep.group, call_layer(call));
  if (slot.is_sibling()) {
    const HalfWidths* pairs =
        slot.cross && slot.cross->sibling_half_widths ? &*slot.cross->sibling_half_widths : nullptr;
    const CarriedTime carried = carried_to_sibling(*slot.form, call, slot.swept->traits, state_->traits.traits,
                                                   sweep.constants, seconds, pairs != nullptr);
    seconds = carried.seconds;
    if (pairs != nullptr) {
      half_width = pairs->at(seconds) * (inside ? 1.0 : beyond_sweep);
    } else {
      half_width = portable_hypot(half_width, slot.cross ? sibling_share * slot.cross->half_widths.at(seconds) : 0);
    }
    half_width = portable_hypot(half_width, carried.half_width);
  }
  if (octaves_outside > 0 && slot.cross) {
    const double forgotten = 1 - quick_exp2(-octaves_outside / octaves_to_forget);
    half_width = portable_hypot(half_width, forgotten * slot.cross->half_widths.at(seconds));
  }
  half_width = portable_hypot(half_width, assumed);
  const bool is_guessed = is_guessed_group(*slot.form, measured, sweep.group, call.variant);
  if (is_guessed) {
    const double unseen = slot.cross ? slot.cross->half_widths.at(seconds) : 0;
    half_width = portable_hypot(
        half_width, unknown_name_half_width(*slot.form, measured, slot.swept->traits, call, sweep.group, unseen));
  }
  if (state_->is_like_another) half_width = with_unseen_generation(half_width, slot.cross, seconds);
  const bool interpolates = inside && !is_guessed && !slot.is_sibling();
  return {
      .seconds = with_interval(seconds, half_width, interpolates ? Confidence::interpolated : Confidence::extrapolated),
      .tier = slot.is_sibling() ? Tier::sibling : Tier::measured,
      .inside_envelope = inside};
}

std::optional<LearnedTime> LearnedKernels::estimate(const KernelShape& shape, std::string_view variant, Tier tier,
                                                    LearnedBasis* basis) const {
  if (tier == Tier::roofline || !state_->traits.complete) return std::nullopt;
  if (const auto* batch = std::get_if<MixedAttentionShape>(&shape)) {
    if (const KernelShape plain = simplest_shape(*batch); plain.index() != shape.index())
      return estimate(plain, variant, tier, basis);
    const bool both = batch->prompt_count() > 0 && batch->decodes > 0;
    if (both && attention_variant(variant, equal_parts(*batch).calls[0], state_->traits.traits).decodes_apart)
      return estimate_apart(*batch, variant, tier);
  }
  if (const auto* experts = std::get_if<MoeShape>(&shape); experts != nullptr && variant.empty())
    variant = kernel_of_received(*experts, state_->traits.traits);
  const Slot* slot = slot_of(shape, variant);
  if (slot == nullptr) return std::nullopt;
  if (state_->traits.traits.amd && !slot->kind->ports_to_amd && !slot->kind->amd && !slot->measured)
    return std::nullopt;
  // Names of other makers' kernels say nothing here.
  if (slot->kind->amd && !variant.starts_with(aiter_kernel)) variant = {};
  // A sweep in fp32 says little about a framework's kernels in other formats.
  if (tier == Tier::best && slot->kind->eager && form_kind_for(shape) != slot->kind) tier = Tier::cross;
  // A framework's call of a kernel that other forms know: the kernel they would take.
  const bool is_other = is_framework_kernel(variant) && (!slot->kind->fp32 || variant == framework_kernel);
  FormCall call{
      .shape = shape, .variant = std::string(is_other ? std::string_view() : variant), .keys = state_->caches};
  if (names_layout(call.variant) && (!slot->measured || !slot->measured->groups.contains(call_group(call))))
    call.variant = without_layout(call.variant);
  std::optional<uint64_t> key = slot->form->kind_key(call);
  if (key) *key ^= fnv1a(call_formats(call));  // together they say what the call's group is
  const CallKind* kind = key ? slot->kinds.find(*key, call.variant) : nullptr;
  CallKind fresh;
  if (kind == nullptr) {
    fresh = resolve(*slot, call);
    fresh.key = key.value_or(0);
    if (key) kind = slot->kinds.keep(fresh);
    if (kind == nullptr) kind = &fresh;
  }

  const Tier sweep_tier = slot->is_sibling() ? Tier::sibling : Tier::measured;
  const FormCalibration* cross = slot->cross ? &*slot->cross : nullptr;
  if (kind->sweep && (tier == Tier::best || tier == sweep_tier)) {
    if (basis != nullptr) {
      *basis = {.form = slot->form.get(),
                .call = call,
                .traits = sibling_traits(slot->swept->traits, state_->traits.traits),
                .log_constants = slot->measured->groups.at(kind->sweep->group),
                .cross = cross,
                .sweep = &*slot->measured,
                .group = kind->sweep->group};
    }
    return swept_time(*slot, *kind->sweep, call);
  }
  if (!slot->cross || tier == Tier::measured || tier == Tier::sibling) return std::nullopt;
  if (basis != nullptr) {
    *basis = {.form = slot->form.get(),
              .call = call,
              .traits = state_->powered,
              .log_constants = log_constants_without_sweep(*slot, call, tier),
              .cross = cross};
  }
  ResidualFeatures features;
  const double seconds =
      seconds_with_residual(*slot->form, call, state_->powered, tier == Tier::cross ? kind->cross : kind->known,
                            slot->cross->residual, slot->cross->residual_strength, std::nullopt, features);
  double half_width =
      portable_hypot(slot->cross->half_widths.at(seconds), assumed_half_width(call), kind->unseen_half_width);
  if (state_->is_like_another) half_width = with_unseen_generation(half_width, slot->cross, seconds);
  return LearnedTime{.seconds = with_interval(seconds, half_width, Confidence::extrapolated),
                     .tier = Tier::cross,
                     .inside_envelope = false};
}

// Two launches, one after the other. Their errors have the same causes, so the intervals add up.
std::optional<LearnedTime> LearnedKernels::estimate_apart(const MixedAttentionShape& batch, std::string_view variant,
                                                          Tier tier) const {
  MixedAttentionShape prompts = batch, decodes = batch;
  prompts.decodes = prompts.decode_keys = prompts.longest_decode = 0;
  decodes.prompts = {};
  const std::optional<LearnedTime> first = estimate(prompts, variant, tier), second = estimate(decodes, variant, tier);
  if (!first || !second) return std::nullopt;
  const Estimate launches[] = {first->seconds, second->seconds};
  return LearnedTime{.seconds = sum_of_correlated(launches),
                     .tier = std::min(first->tier, second->tier),
                     .inside_envelope = first->inside_envelope && second->inside_envelope};
}

std::vector<Device> swept_devices(const Device& device, const HardwareCatalogue& hardware,
                                  const std::filesystem::path& folder) {
  struct Candidate {
    double distance = 0;
    Device device;
  };
  std::vector<Candidate> candidates;
  if (!traits_of(device).complete) return {};
  const DeviceTraits own = traits_of(device).traits;
  for (const std::string& name : hardware.device_names()) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder / name, error)) continue;
    Device other = hardware.find_device(name);
    if (generation_of(other) != generation_of(device) || !traits_of(other).complete) continue;
    const DeviceTraits traits = traits_of(other).traits;
    constexpr auto bf16 = static_cast<size_t>(DType::bf16);
    double distance = std::abs(portable_log(traits.bandwidth / own.bandwidth)) +
                      std::abs(portable_log(traits.peak[bf16] / own.peak[bf16]));
    if (device.like && device.like->name == name) distance = -1;  // declared, whatever the sheets say
    candidates.push_back({distance, std::move(other)});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  std::vector<Device> devices;
  for (Candidate& candidate : candidates) devices.push_back(std::move(candidate.device));
  return devices;
}

}  // namespace foretoken
