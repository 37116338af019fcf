#include "kernel/evaluate.h"

#include <algorithm>
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
    sum[k] = std::clamp(sum[k], std::log(constants[k].least), std::log(constants[k].most));
  return sum;
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

namespace {

// Watts for each FLOP/s of the dense 16-bit peak that a board needs to hold it, without asynchronous tensor cores. With
// 0.97e-12 L40S reaches 0.78 of what the others do; A100 and RTX PRO 6000, with 1.28e-12, are not held back.
constexpr double watts_per_flop_rate = 1.25e-12;
// Of its bandwidth that a board with inline codes reaches against one without. Streaming kernels take 1.28 to 1.35
// times the sheet's time on P4, T4 and L40S, 1.04 to 1.07 on RTX PRO 6000.
constexpr double inline_ecc_share = 0.82;

// Of the multiply units' peak that the board's power allows.
double powered_share(const DeviceTraits& device) {
  const double peak = device.peak[static_cast<size_t>(DType::bf16)];
  if (device.asynchronous || device.amd || device.power == 0 || peak == 0) return 1;
  return std::min(1.0, device.power / (watts_per_flop_rate * peak));
}

}  // namespace

DeviceTraits sibling_traits(const DeviceTraits& swept, const DeviceTraits& other) {
  DeviceTraits traits = other;
  const double power = powered_share(other) / powered_share(swept);
  for (const DType type : {DType::tf32, DType::bf16, DType::fp16, DType::fp8, DType::int8, DType::fp4, DType::int4}) {
    traits.peak[static_cast<size_t>(type)] *= power;
  }
  if (other.inline_ecc != swept.inline_ecc) {
    traits.bandwidth *= swept.inline_ecc ? 1 / inline_ecc_share : inline_ecc_share;
  }
  return traits;
}

double carried_to_sibling(const Form& form, const FormCall& call, const DeviceTraits& swept, const DeviceTraits& other,
                          std::span<const double> constants, const BoostedTrees& trees, float group_number) {
  ResidualFeatures features;
  const double seconds = seconds_with_residual(form, call, swept, constants, trees, 1, group_number, features);
  int choice = -1;
  const double here = form.seconds(call, swept, constants, choice);
  choice = -1;
  return seconds * (form.seconds(call, sibling_traits(swept, other), constants, choice) / here);
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
