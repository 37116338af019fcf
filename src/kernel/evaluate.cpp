#include "kernel/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "kernel/forms/form_math.h"

namespace foretoken {
namespace {

double seconds_and_features(const Form& form, const FormCall& call, const DeviceTraits& traits,
                            std::span<const double> constants, std::optional<float> group_number, int& choice,
                            ResidualFeatures& out) {
  out.count = form.feature_count();
  ensure(out.count + 1 + raw_feature_count <= out.values.size(), "a form has few enough features");
  const double seconds = form.seconds_and_features(call, traits, constants, choice, {out.values.data(), out.count});
  if (group_number) {
    out.values[out.count++] = *group_number;
    for (const float raw : raw_features(call)) out.values[out.count++] = raw;
  }
  return seconds;
}

}  // namespace

std::vector<double> cross_log_constants(const Form& form, const FormCalibration& calibration, const FormCall& call,
                                        const DeviceTraits& traits, std::string_view device) {
  const std::span<const FormConstant> constants = form.constants();
  std::vector<double> sum(constants.size(), 0.0);
  const auto add = [&](std::string_view effect) {
    const auto found = calibration.effects.find(effect);
    if (found == calibration.effects.end()) return;
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += found->second[k];
  };
  for (const std::string& effect : form.effects(call, traits)) add(effect);
  add("device " + std::string(device));
  add(fmt::format("group {} {}", device, call_group(call)));
  for (size_t k = 0; k < sum.size(); ++k)
    sum[k] = std::clamp(sum[k], portable_log(constants[k].least), portable_log(constants[k].most));
  return sum;
}

double unseen_kernel_half_width(const Form& form, const FormCalibration& calibration, const FormCall& call,
                                const DeviceTraits& traits) {
  const std::string effect = form.kernel_effect(call, traits);
  return effect.empty() || calibration.effects.contains(effect) ? 0 : HalfWidths::of_no_rows;
}

std::vector<double> natural_constants(std::span<const double> log_values) {
  std::vector<double> constants;
  constants.reserve(log_values.size());
  for (const double value : log_values) constants.push_back(portable_exp(value));
  return constants;
}

double seconds_with_residual(const Form& form, const FormCall& call, const DeviceTraits& traits,
                             std::span<const double> constants, const BoostedTrees& trees, double strength,
                             std::optional<float> group_number, ResidualFeatures& features) {
  const bool uses_trees = !trees.empty() && strength != 0;
  int choice = -1;
  if (!uses_trees && !group_number) return form.seconds(call, traits, constants, choice);
  const double seconds = seconds_and_features(form, call, traits, constants, group_number, choice, features);
  if (!uses_trees) return seconds;
  const double share = form.residual_share(call, traits, constants, choice);
  return seconds * quick_exp2(strength * share * trees.predict(features.span()) * log2_of_e);
}

double swept_seconds(const Form& form, const FormCall& call, const DeviceTraits& traits,
                     std::span<const double> constants, const DeviceCalibration& sweep, double strength,
                     float group_number, ResidualFeatures& features) {
  int choice = -1;
  const double seconds = seconds_and_features(form, call, traits, constants, group_number, choice, features);
  if (sweep.residual.empty() || strength == 0) return seconds;
  const double share = form.residual_share(call, traits, constants, choice);
  return seconds * quick_exp2(strength * share * sweep.left_over(features.span()) * log2_of_e);
}

namespace {

// Watts for each FLOP/s of the dense 16-bit peak that a board needs to hold it, without asynchronous tensor cores. With
// 0.97e-12 L40S reaches 0.78 of what the others do; A100 and RTX PRO 6000, with 1.28e-12, are not held back.
constexpr double watts_per_flop_rate = 1.25e-12;
// Below that, the power of a chip falls with its clock to the power 2.36 (power.h). Stacked memory leaves nearly all of
// the limit to the chip: an A100 with 250 W reaches 0.83 of one with 400. Beside GDDR, which takes a fixed part of a
// smaller budget, multiplies fall with the limit itself (L4 against L40S).
constexpr double power_over_clock = 2.36;
// Starts and ends of tiles and waits for operands take clocks, however fast the tensor cores are: so much of the time
// that multiplies take at the full rate. Boards at half the rate (GeForce, A10G, L20) lose half of that share. A10G and
// L20, which hold the clock of their sheet, reach 0.95 of their peak in bf16 multiplies of 8192; A100 and RTX PRO 6000
// reach 0.85 to 0.89.
constexpr double lost_beside_multiplies = 0.12;
// Of its bandwidth that a board with inline codes reaches against one without. Streaming kernels take 1.28 to 1.35
// times the sheet's time on P4, T4 and L40S, 1.04 to 1.07 on RTX PRO 6000.
constexpr double inline_ecc_share = 0.82;

constexpr DType multiply_types[] = {DType::tf32, DType::bf16, DType::fp16, DType::fp8,
                                    DType::int8, DType::fp4,  DType::int4};

// How far facts of a sheet are off, as half-widths of logarithms: by themselves, and as a share of how far two sheets
// lie apart. Boards with stacked memory run at the clock of their sheet; cards run up to a tenth above it (an RTX 4090
// holds 166 of its 165 TFLOP/s). H100 and H200 reach the same share of bandwidths that differ by 1.4.
constexpr double steady_clock = 0.02, card_clock = 0.1, clock_share = 0.5;
constexpr double bandwidth_itself = 0.02, bandwidth_share = 0.1;
constexpr double cache_share = 0.3, processor_share = 0.2, exponential_share = 0.5;
// Boards of one asynchronous chip with other power limits: a third of the difference may reach large multiplies. Of the
// rules for power and codes in DRAM above, a third of what they change.
constexpr double power_share = 0.3;
constexpr double host_share = 0.1;  // of a launch, between two hosts

// How much faster the other device multiplies in this format than its 16-bit rate would say. Some kernels reach the
// higher rate and some do not (fp4 on Blackwell Ultra): half of it, as logarithms, is taken, and all of it is open.
double format_gain(const DeviceTraits& swept, const DeviceTraits& other, DType type) {
  constexpr auto base = static_cast<size_t>(DType::bf16);
  const auto own = static_cast<size_t>(type);
  if (swept.peak[own] <= 0 || other.peak[own] <= 0 || swept.peak[base] <= 0 || other.peak[base] <= 0) return 1;
  return std::max(1.0, other.peak[own] / other.peak[base] / (swept.peak[own] / swept.peak[base]));
}

// Of the multiply units' peak that the board's power allows.
double powered_share(const DeviceTraits& device) {
  const double peak = device.peak[static_cast<size_t>(DType::bf16)];
  if (device.asynchronous || device.amd || device.power == 0 || peak == 0) return 1;
  const double share = std::min(1.0, device.power / (watts_per_flop_rate * peak));
  return device.stacked_memory ? portable_pow(share, 1 / power_over_clock) : share;
}

// Of the multiply units' peak that a large multiply reaches, over that of a board at the full rate.
double pipe_share(const DeviceTraits& device) {
  const double full = device.generation->multiplies_per_clock * device.processors * device.clock;
  const double peak = device.peak[static_cast<size_t>(DType::bf16)];
  constexpr double at_the_full_rate = 0.75;  // sheets round
  if (full <= 0 || peak <= 0 || peak > at_the_full_rate * full) return 1;
  return (1 + lost_beside_multiplies) / (1 + lost_beside_multiplies * peak / full);
}

void scale_clock(DeviceTraits& traits, double factor) {
  traits.clock *= factor;
  for (double& peak : traits.peak) peak *= factor;
}

}  // namespace

DeviceTraits powered_traits(const DeviceTraits& device) {
  DeviceTraits traits = device;
  scale_clock(traits, device.held_clock);
  const double share = powered_share(device) * pipe_share(device);
  for (const DType type : multiply_types) traits.peak[static_cast<size_t>(type)] *= share;
  return traits;
}

DeviceTraits sibling_traits(const DeviceTraits& swept, const DeviceTraits& other) {
  DeviceTraits traits = other;
  scale_clock(traits, other.held_clock / swept.held_clock);
  const double share = powered_share(other) / powered_share(swept) * (pipe_share(other) / pipe_share(swept));
  for (const DType type : multiply_types) {
    traits.peak[static_cast<size_t>(type)] *= share / std::sqrt(format_gain(swept, other, type));
  }
  if (other.inline_ecc != swept.inline_ecc) {
    traits.bandwidth *= swept.inline_ecc ? 1 / inline_ecc_share : inline_ecc_share;
  }
  return traits;
}

double carried_residual(const Form& form, const FormCall& call, const DeviceTraits& swept,
                        std::span<const double> constants) {
  if (powered_share(swept) == 1) return 1;
  constexpr double slightly = 0.99;
  DeviceTraits slower = swept;
  for (const DType type : multiply_types) slower.peak[static_cast<size_t>(type)] *= slightly;
  int choice = -1;
  const double before = form.seconds(call, swept, constants, choice);
  const double bound_by_multiplies =
      portable_log(form.seconds(call, slower, constants, choice) / before) / -portable_log(slightly);
  return std::clamp(1 - bound_by_multiplies, 0.0, 1.0);
}

CarriedTime carried_to_sibling(const Form& form, const FormCall& call, const DeviceTraits& swept,
                               const DeviceTraits& other, std::span<const double> constants, double swept_seconds,
                               bool pairs_known) {
  int choice = -1;
  const double here = form.seconds(call, swept, constants, choice);
  const DeviceTraits there_traits = sibling_traits(swept, other);
  int choice_there = -1;
  const double there = form.seconds(call, there_traits, constants, choice_there);

  double squares = 0;
  const auto add = [&](const DeviceTraits& traits, std::span<const double> moved_constants) {
    int same_choice = choice_there;
    const double moved = portable_log(form.seconds(call, traits, moved_constants, same_choice) / there);
    squares += moved * moved;
  };
  const auto move = [&](double half_width, auto change) {
    if (half_width <= 0) return;
    DeviceTraits traits = there_traits;
    change(traits, portable_exp(half_width));
    add(traits, constants);
  };
  const auto scale_peaks = [](DeviceTraits& traits, double factor) {
    for (const DType type : multiply_types) traits.peak[static_cast<size_t>(type)] *= factor;
  };
  const auto apart = [](double a, double b) { return a > 0 && b > 0 ? std::abs(portable_log(a / b)) : 0.0; };
  const double itself = pairs_known ? 0 : 1;
  move((other.stacked_memory ? itself * steady_clock : card_clock) + clock_share * apart(other.clock, swept.clock),
       [&](DeviceTraits& traits, double factor) {
         traits.clock *= factor;
         scale_peaks(traits, factor);
       });
  const double codes = other.inline_ecc != swept.inline_ecc ? -portable_log(inline_ecc_share) : 0;
  move(itself * bandwidth_itself + bandwidth_share * apart(other.bandwidth, swept.bandwidth) + power_share * codes,
       [](DeviceTraits& traits, double factor) { traits.bandwidth *= factor; });
  move(cache_share * apart(other.cache, swept.cache),
       [](DeviceTraits& traits, double factor) { traits.cache *= factor; });
  move(processor_share * apart(other.processors, swept.processors), [&](DeviceTraits& traits, double factor) {
    traits.processors *= factor;
    scale_peaks(traits, factor);
  });
  move(exponential_share * apart(other.exponentials_per_clock, swept.exponentials_per_clock),
       [](DeviceTraits& traits, double factor) { traits.exponentials_per_clock *= factor; });
  move(power_share *
           (other.asynchronous ? apart(other.power, swept.power) : apart(powered_share(other), powered_share(swept))),
       scale_peaks);
  double format = 0;
  for (const DType type : multiply_types)
    format = std::max(format, portable_log(std::sqrt(format_gain(swept, other, type))));
  move(format, [&](DeviceTraits& traits, double /*factor*/) {
    for (const DType type : multiply_types)
      traits.peak[static_cast<size_t>(type)] *= std::sqrt(format_gain(swept, other, type));
  });
  if (pairs_known) return {.seconds = swept_seconds * (there / here), .half_width = std::sqrt(squares)};
  std::array<double, 64> with_other_host{};
  ensure(constants.size() <= with_other_host.size(), "a form has few enough constants");
  const std::span<const FormConstant> names = form.constants();
  for (size_t k = 0; k < constants.size(); ++k) {
    const bool is_launch = names[k].name.starts_with("floor") || names[k].name.starts_with("launch");
    with_other_host[k] = constants[k] * (is_launch ? 1 + host_share : 1);
  }
  add(there_traits, std::span(with_other_host).first(constants.size()));
  return {.seconds = swept_seconds * (there / here), .half_width = std::sqrt(squares)};
}

double form_seconds_with_residual(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                  std::span<const double> log_values, const BoostedTrees& trees, double strength,
                                  std::optional<float> group_number) {
  ResidualFeatures features;
  return seconds_with_residual(form, call, traits, natural_constants(log_values), trees, strength, group_number,
                               features);
}

std::vector<Explained> explain_form(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                    std::span<const double> log_values) {
  const std::vector<double> constants = natural_constants(log_values);
  int choice = -1;
  form.seconds(call, traits, constants, choice);
  return form.explain(call, traits, constants, choice);
}

std::vector<float> residual_features(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                     std::span<const double> log_values, std::optional<float> group_number) {
  ResidualFeatures features;
  int choice = -1;
  seconds_and_features(form, call, traits, natural_constants(log_values), group_number, choice, features);
  return {features.span().begin(), features.span().end()};
}

}  // namespace foretoken
