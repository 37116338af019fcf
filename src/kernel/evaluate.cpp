#include "kernel/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "kernel/forms/call.h"

namespace foretoken {
namespace {

constexpr size_t most_constants = 64;
constexpr size_t most_features = 64;

// exp of a log vector, on the stack.
struct Constants {
  std::array<double, most_constants> values{};
  size_t count = 0;
  std::span<const double> span() const { return {values.data(), count}; }
};

Constants exponentials(std::span<const double> logs) {
  Constants result;
  result.count = logs.size();
  for (size_t i = 0; i < logs.size(); ++i) result.values[i] = std::exp(logs[i]);
  return result;
}

struct Features {
  std::array<float, most_features> values{};
  size_t count = 0;
  std::span<const float> span() const { return {values.data(), count}; }
};

void fill_features(const Form& form, const FormCall& call, const DeviceTraits& traits, const Constants& constants,
                   int choice, std::optional<float> group_number, Features& out) {
  out.count = form.feature_count();
  form.features(call, traits, constants.span(), choice, {out.values.data(), out.count});
  if (!group_number) return;
  out.values[out.count++] = *group_number;
  for (const float raw : raw_features(call)) out.values[out.count++] = raw;
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

double form_seconds_with_residual(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                  std::span<const double> log_values, const BoostedTrees& trees, double strength,
                                  std::optional<float> group_number) {
  const Constants constants = exponentials(log_values);
  int choice = -1;
  const double seconds = form.seconds(call, traits, constants.span(), choice);
  if (trees.empty() || strength == 0) return seconds;
  Features features;
  fill_features(form, call, traits, constants, choice, group_number, features);
  const double share = form.residual_share(call, traits, constants.span(), choice);
  return seconds * std::exp(strength * share * trees.predict(features.span()));
}

std::vector<Explained> explain_form(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                    std::span<const double> log_values) {
  const Constants constants = exponentials(log_values);
  int choice = -1;
  form.seconds(call, traits, constants.span(), choice);
  return form.explain(call, traits, constants.span(), choice);
}

std::vector<float> residual_features(const Form& form, const FormCall& call, const DeviceTraits& traits,
                                     std::span<const double> log_values, std::optional<float> group_number) {
  const Constants constants = exponentials(log_values);
  int choice = -1;
  form.seconds(call, traits, constants.span(), choice);
  Features features;
  fill_features(form, call, traits, constants, choice, group_number, features);
  return {features.span().begin(), features.span().end()};
}

}  // namespace foretoken
