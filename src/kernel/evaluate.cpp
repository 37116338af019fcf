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

double carried_to_sibling(const Form& form, const FormCall& call, const DeviceTraits& swept, const DeviceTraits& other,
                          std::span<const double> constants, const BoostedTrees& trees, float group_number) {
  ResidualFeatures features;
  const double seconds = seconds_with_residual(form, call, swept, constants, trees, 1, group_number, features);
  int choice = -1;
  const double here = form.seconds(call, swept, constants, choice);
  choice = -1;
  return seconds * (form.seconds(call, other, constants, choice) / here);
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
